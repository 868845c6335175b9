"""The local cloud as a whole: Valkey, the emulator, and the app deployed into it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final

from local import emulator, valkey
from local.attending import attended
from local.deploy import Deployment
from local.emulator import start_emulator
from local.errors import LocalCloudError
from local.first_answer import PATIENCE_S, first_answers
from local.first_news import NEWS_S, first_news
from local.interrupts import shielded
from local.keys import SigningKey
from local.processes import ProcessGroup, ProcessTable, require_alive
from local.progress import Steps
from local.state import REGION, Address, CloudState, RegionState
from local.tools import ROOT
from local.valkey import start_valkey
from stacks import bundle

FOLDER: Final = ROOT / ".local"
STATE_FILE: Final = "cloud.json"
_KEY_FILE: Final = "key.pem"
_PROCESSES_FILE: Final = "processes.json"
_STOP_GRACE_S: Final = max(emulator.STOP_GRACE_S, valkey.STOP_GRACE_S)


class Cloud:
    """One local cloud, with everything it writes in a folder of its own.

    ``cloud.json`` (see `CloudState`) lies in the folder while it is ready, ``processes.json`` while anything runs,
    ``logs/`` stays. As a context manager it is started and stopped; `start` alone leaves it running.

    Args:
        folder: made if absent.
        steps: shows what happens.
        app: folder of the app's ``cdk.json``.
        settings: those of the deployment that are to differ (`stacks.settings.Settings`), plain values.
        regions: where it is deployed, the home region first.
    """

    def __init__(
        self,
        folder: Path,
        steps: Steps,
        *,
        app: Path = ROOT,
        settings: Mapping[str, Any] = MappingProxyType({}),
        regions: Sequence[str] = (REGION,),
    ) -> None:
        self.folder: Final = folder
        self._steps = steps
        self._app = app
        self._settings = settings
        self._regions = regions
        folder.mkdir(parents=True, exist_ok=True)
        self._table = ProcessTable.load(folder / _PROCESSES_FILE)

    @property
    def state(self) -> CloudState | None:
        """Of a cloud that is ready and alive; None for none, and for what is left of a dead one."""
        state = CloudState.from_file(self.folder / STATE_FILE)
        return state if state is not None and self._table.groups and self.is_alive() else None

    @property
    def is_left_over(self) -> bool:
        """Whether there is something here to clear away."""
        return any((self.folder / name).exists() for name in (STATE_FILE, _PROCESSES_FILE, _KEY_FILE, "work"))

    def is_alive(self) -> bool:
        """Whether all that was started still runs."""
        return all(group.alive() for group in self._table.groups)

    def require_alive(self) -> None:
        """Check it.

        Raises:
            LocalCloudError: something died; names it and its log.
        """
        require_alive(self._table.groups)

    def start(self) -> CloudState:
        """Start and deploy all. If a step fails or is interrupted, stop what was started.

        Raises:
            LocalCloudError: a step failed; says which, and where its log is.
        """
        try:
            return self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop exactly what was started, in reverse order, and delete all but the logs. Interrupts wait for the end."""
        with shielded():
            (self.folder / STATE_FILE).unlink(missing_ok=True)
            for group in reversed(self._table.groups):
                self._table.stop(group, grace_s=_STOP_GRACE_S)
            (self.folder / _KEY_FILE).unlink(missing_ok=True)
            _remove(self._work)

    def __enter__(self) -> CloudState:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._steps.step("Stop"):
            self.stop()

    @property
    def _work(self) -> Path:
        return self.folder / "work"

    def _start(self) -> CloudState:
        logs, work, step = self.folder / "logs", self._work, self._steps.step
        work.mkdir()
        with step("Code bundle"):
            _build_bundle()
        groups: list[ProcessGroup] = []
        valkeys: dict[str, Address] = {}
        with step("Valkey, one node in cluster mode" + (" a region" if len(self._regions) > 1 else "")):
            for region in self._regions:
                name = "valkey" if region == REGION else f"valkey-{region}"
                said = "Valkey" if region == REGION else f"Valkey of {region}"
                hot, valkeys[region] = start_valkey(self._table, work / name, log=logs / f"{name}.log", name=said)
                groups.append(hot)
        with step("AWS emulator"):
            cloud, endpoint = start_emulator(self._table, work / "emulator", log=logs / "emulator.log")
        key = SigningKey.generate()
        key.to_file(self.folder / _KEY_FILE)
        deployment = Deployment(
            table=self._table,
            app=self._app,
            work=work,
            logs=logs,
            endpoint=endpoint,
            needs=(*groups, cloud),
            regions=self._regions,
            settings=self._settings,
        )
        with step("cdk bootstrap"):
            deployment.bootstrap()
        with step("cdk deploy"):
            outputs = deployment.deploy(valkeys=valkeys, key=key)
        home, *others = (
            RegionState(region=region, url=outputs.urls[region], bucket=outputs.buckets[region], valkey=valkeys[region])
            for region in self._regions
        )
        state = CloudState(
            region=home.region,
            url=home.url,
            bucket=home.bucket,
            valkey=home.valkey,
            others=tuple(others),
            endpoint=endpoint,
            table=outputs.table,
            issuer=key.issuer,
            audience=key.audience,
            key_file=_KEY_FILE,
            kid=key.kid,
        )
        with step("First answer (cold start)"):
            token = key.mint_token(sub="local", tenant="local", scope=["chat"])
            answering = first_answers([region.url for region in (state, *others)], token)
            asyncio.run(attended("the first answer", answering, check=self.require_alive, timeout_s=2 * PATIENCE_S))
        if others:
            with step("First news of each other"):
                token = key.mint_token(sub="first-news", tenant="first-news", scope=["chat"])
                telling = first_news([region.url for region in (state, *others)], token)
                asyncio.run(attended("the first news", telling, check=self.require_alive, timeout_s=NEWS_S))
        state.to_file(self.folder / STATE_FILE)
        return state


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the folder: commands that start or stop its cloud exclude each other.

    Raises:
        LocalCloudError: another one is at it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LocalCloudError(
                f"another `make demo`, `make up` or `make down` is at work in {folder}: wait for it, or interrupt it"
            ) from error
        yield
    finally:
        os.close(handle)


def _remove(folder: Path) -> None:
    """Delete a cloud's working folder.

    The emulator leaves a copy of the bundle for every worker, thousands of files in all: side by side they go faster
    than one by one, many times so on a busy disk.
    """
    copies = [path for path in (folder / "emulator" / "tmp").glob("*") if path.is_dir()]
    with ThreadPoolExecutor() as threads:
        list(threads.map(shutil.rmtree, copies))
    if folder.exists():
        shutil.rmtree(folder)


def _build_bundle() -> None:
    try:
        bundle.build(ROOT, "host")
    except bundle.BundleError as error:
        raise LocalCloudError(str(error)) from error
