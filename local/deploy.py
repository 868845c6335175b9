"""A real `cdk bootstrap` and `cdk deploy` into the emulator."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import boto3
import msgspec
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local.errors import LocalCloudError
from local.keys import SigningKey
from local.processes import ProcessGroup, ProcessTable, require_alive
from local.state import ACCOUNT, REGION, STAGE, Address
from local.tools import CDK, NODE_FOLDER
from stacks import naming

_BOOTSTRAP_S: Final = 120.0
_DEPLOY_S: Final = 400.0
_JWKS_BUCKET: Final = "threadkeep-local-jwks"
_JWKS_OBJECT: Final = "jwks.json"
SECOND_PASS_MINUTES: Final = 0.1
"""Nobody who looks at an erasure here should wait for half an hour."""
_DEATH_S: Final = 0.1
"""The sockets of a killed program close a moment before it counts as dead."""
_SECRET: Final = "test"  # noqa: S105 - the emulator takes any; its root is the account's number as the key's id


class Outputs(msgspec.Struct, frozen=True, kw_only=True):
    """What the stacks say of themselves; URLs and buckets by region."""

    table: str
    urls: dict[str, str]
    buckets: dict[str, str]

    @classmethod
    def from_file(cls, path: Path, regions: Sequence[str]) -> Outputs:
        """Read what ``cdk deploy --outputs-file`` wrote, stack by stack.

        Raises:
            LocalCloudError: an output is missing.
        """
        stacks: dict[str, dict[str, str]] = json.loads(path.read_text())
        found = {
            f"{stack.removeprefix(naming.stage_id(STAGE) + '-')} {name}": value
            for stack, outputs in stacks.items()
            for name, value in outputs.items()
        }
        try:
            return cls(
                table=found["State TableName"],
                urls={region: found[f"Realtime-{region} Url"] for region in regions},
                buckets={region: found[f"Cold-{region} BucketName"] for region in regions},
            )
        except KeyError as missing:
            raise LocalCloudError(f"cdk deploy gave no output {missing}, only {sorted(found)}: {path}") from missing


class Deployment:
    """The app's way into one emulator.

    Args:
        table: where the programs that run are written down.
        app: folder of the app's ``cdk.json``.
        work: for what they write; deleted with the cloud.
        logs: where their output goes.
        endpoint: of the emulator.
        needs: the groups without which it cannot go on.
        regions: where to deploy, the home region first.
        settings: those of the deployment that are to differ, plain values.
    """

    def __init__(
        self,
        *,
        table: ProcessTable,
        app: Path,
        work: Path,
        logs: Path,
        endpoint: str,
        needs: tuple[ProcessGroup, ...],
        regions: Sequence[str] = (REGION,),
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._table = table
        self._app = app
        self._work = work
        self._logs = logs
        self._endpoint = endpoint
        self._needs = needs
        self._regions = regions
        self._different = settings

    def bootstrap(self) -> None:
        """`cdk bootstrap`, outside the app's folder: inside it would synthesize the app first (10 s).

        Raises:
            LocalCloudError: it failed.
        """
        places = [f"aws://{ACCOUNT}/{region}" for region in self._regions]
        self._cdk("bootstrap", *places, cwd=self._work, timeout_s=_BOOTSTRAP_S)

    def deploy(self, *, valkeys: Mapping[str, Address], key: SigningKey) -> Outputs:
        """Write the settings, put the key set where the authorizer finds it, and `cdk deploy` all stacks.

        Args:
            valkeys: the Valkey of each region.
            key: signs the tokens.

        Raises:
            LocalCloudError: it failed.
        """
        settings = self._work / "settings.toml"
        settings.write_text(self._settings(valkeys=valkeys, key=key, jwks_url=self._put_jwks(key)))
        outputs = self._work / "outputs.json"
        options = {
            "--context": f"settings={settings}",
            "--outputs-file": str(outputs),
            "--output": str(self._work / "cdk.out"),
            "--require-approval": "never",
            "--concurrency": "8",
            "--progress": "events",
        }
        words = [word for option in options.items() for word in option]
        self._cdk("deploy", "**", *words, cwd=self._app, timeout_s=_DEPLOY_S)
        return Outputs.from_file(outputs, self._regions)

    def _settings(self, *, valkeys: Mapping[str, Address], key: SigningKey, jwks_url: str) -> str:
        settings: dict[str, Any] = {
            "target": "local",
            "stage": STAGE,
            "regions": [*self._regions],
            "account": ACCOUNT,
            "jwks_url": jwks_url,
            "jwt_issuer": key.issuer,
            "jwt_audience": key.audience,
            "query_token": True,
            "erasure_second_pass_minutes": SECOND_PASS_MINUTES,
            "local_endpoint": self._endpoint,
            **self._different,
        }
        # A JSON string, number, list or boolean of these plain values is the same in TOML.
        plain = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
        hot = "".join(f'{region} = "{address}"\n' for region, address in valkeys.items())
        return plain + f'[hot_endpoint]\n{hot}[model]\nkind = "recorded"\n'

    def _put_jwks(self, key: SigningKey) -> str:
        reading = {
            "Effect": "Allow",
            "Principal": "*",  # a key set is for everyone
            "Action": "s3:GetObject",
            "Resource": f"arn:aws:s3:::{_JWKS_BUCKET}/*",
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [reading]})
        once = Config(retries={"total_max_attempts": 1})
        s3 = aws_session().client("s3", endpoint_url=self._endpoint, config=once)
        try:
            s3.create_bucket(Bucket=_JWKS_BUCKET)
            s3.delete_public_access_block(Bucket=_JWKS_BUCKET)
            s3.put_bucket_policy(Bucket=_JWKS_BUCKET, Policy=policy)
            s3.put_object(Bucket=_JWKS_BUCKET, Key=_JWKS_OBJECT, Body=key.to_jwks().encode())
        except (BotoCoreError, ClientError) as error:
            time.sleep(_DEATH_S)
            require_alive(self._needs)  # if one is gone, that is the reason
            raise LocalCloudError(f"the key set cannot be put into the AWS emulator: {error}") from error
        return f"{self._endpoint}/{_JWKS_BUCKET}/{_JWKS_OBJECT}"

    def _cdk(self, command: str, *words: str, cwd: Path, timeout_s: float) -> None:
        if not CDK.exists():
            raise LocalCloudError(f"the CDK command line is not installed ({CDK} is missing): run `make setup`")
        self._table.run(
            f"cdk {command}",
            [str(NODE_FOLDER / "node"), str(CDK.resolve()), command, *words, "--ci", "--no-color", "--no-notices"],
            environment=self._environment(os.environ),
            log=self._logs / f"{command}.log",
            cwd=cwd,
            timeout_s=timeout_s,
            needs=self._needs,
        )

    def _environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The developer's own (for proxies and caches) less every word of AWS: nothing may reach a real account."""
        kept = {name: value for name, value in inherited.items() if not name.startswith(("AWS_", "CDK_"))}
        temporary = self._work / "tmp"
        temporary.mkdir(exist_ok=True)
        programs = (str(NODE_FOLDER), str(Path(sys.executable).parent), inherited.get("PATH", os.defpath))
        return kept | {
            "PATH": os.pathsep.join(programs),
            "TMPDIR": str(temporary),
            "AWS_ENDPOINT_URL": self._endpoint,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": ACCOUNT,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "PYTHONPATH": "",
        }


def aws_session() -> boto3.Session:
    """A session as the emulator's root, whatever the environment holds. Clients of it take an ``endpoint_url``."""
    return boto3.Session(region_name=REGION, aws_access_key_id=ACCOUNT, aws_secret_access_key=_SECRET)
