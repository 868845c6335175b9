"""Valkey dies in the middle of an answer: 20 points, and every answer stands complete in the table."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from local.keys import SigningKey
from tests.support.gateway.deployment import Deployment, deployed
from tests.support.killing.server import KillableValkey, killable_valkey
from tests.support.killing.tier import absence_borne, hot_tier
from tests.support.killing.uploads import ServedUploads, served_uploads
from threadkeep import container
from threadkeep.domain.bounds import FRAME_BYTES_MAX
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey
from threadkeep_client import subscription
from threadkeep_client.producer import Producer
from threadkeep_client.viewer import Viewer
from threadkeep_client.wire import text_of
from threadkeep_client.writing import ProducerSettings, Window

PIECES: Final = 40
SIZES: Final = (600, 8_000, 28_000, 60_000, 240_000)
"""Of the answers, in bytes: two that fit a frame as a close's body, three that do not."""
BACK_AFTER_S: Final = 0.1
PRODUCER: Final = ProducerSettings(window=Window(early_s=0.004, late_s=0.01), patience_s=0.3, outage_s=20.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kill:
    """One death.

    Attributes:
        number: of 20.
        before: the piece before which it comes; `PIECES` is after the last one and before the close.
        size_bytes: of the answer.
        comes_back: empty, a moment later, on the same port; else never.
        in_flight: what was said may be on its way or not yet sent; else all of it was acknowledged.
    """

    number: int
    before: int
    size_bytes: int
    comes_back: bool
    in_flight: bool

    def __str__(self) -> str:
        back = "comes-back" if self.comes_back else "stays-away"
        how = "in-flight" if self.in_flight else "between"
        return f"{self.number}-piece-{self.before}-of-{self.size_bytes}-bytes-{how}-{back}"

    @property
    def is_outlived(self) -> bool:
        """Whether the answer goes on after the return; else both come to their end at about the same time."""
        return self.comes_back and self.before < PIECES // 2

    @property
    def pieces(self) -> list[str]:
        """What is said: no piece like another, letters of one to four bytes."""
        each = self.size_bytes // PIECES
        heads = [f"[{number}]" for number in range(PIECES)]
        return [head + ("aé€😀" * each)[: max(0, each - len(head)) * 2 // 5] for head in heads]


KILLS: Final = [
    Kill(
        number=number,
        before=round(number * PIECES / 19),
        size_bytes=SIZES[number % 5],
        comes_back=number % 2 == 0,
        in_flight=number // 2 % 2 == 0 and number > 0,
    )
    for number in range(20)
]


def test_the_points_are_spread_over_short_and_long_answers() -> None:
    assert len({kill.before for kill in KILLS}) == 20
    assert (KILLS[0].before, KILLS[-1].before) == (0, PIECES)
    assert sum(kill.comes_back for kill in KILLS) == 10
    assert sum(kill.is_outlived for kill in KILLS) == 5
    assert {(kill.size_bytes, kill.comes_back) for kill in KILLS} == {(size, back) for size in SIZES for back in (0, 1)}
    for kill in KILLS:
        assert 0.75 < len("".join(kill.pieces).encode()) / kill.size_bytes < 1.1
    assert max(len("".join(kill.pieces).encode()) for kill in KILLS) >= 200_000


@pytest.fixture(scope="module")
def key() -> SigningKey:
    return SigningKey.generate()


@pytest.fixture(autouse=True)
def quick_farewell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Giving a lease back to a hot tier that never comes back is not waited for as long as in life."""
    monkeypatch.setattr(subscription, "_LEAVE_S", 0.2)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scene:
    """The service, the Valkey under it, and the store beside that.

    Attributes:
        away: what was noted of the hot tier's absence.
    """

    deployment: Deployment
    valkey: KillableValkey
    uploads: ServedUploads
    away: list[str]


@pytest.fixture
async def scene(key: SigningKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    with killable_valkey(tmp_path) as valkey, hot_tier(valkey.address) as hot, served_uploads() as uploads:
        async with deployed(hot, key) as deployment:
            services = dataclasses.replace(deployment.services, uploads=uploads)
            with absence_borne() as away, monkeypatch.context() as patch:
                patch.setattr(container, "services", lambda: services)
                yield Scene(deployment=deployment, valkey=valkey, uploads=uploads, away=away)
                await deployment.gateway.settle()


@pytest.mark.parametrize("kill", KILLS, ids=str)
async def test_the_answer_is_complete_in_the_table(scene: Scene, kill: Kill) -> None:
    deployment, said = scene.deployment, "".join(kill.pieces)
    async with (
        deployment.client() as asker,
        deployment.client("produce", "worker") as worker,
        asyncio.timeout(30),
    ):
        conversation = (await asker.create_conversation())["id"]
        question = (await asker.create_message(conversation, "Why?", parent=None))["id"]
        answer = worker.produce(conversation, parent=question, settings=PRODUCER)
        async with asker.watch(conversation, stream=answer.id) as viewer:
            async with asyncio.TaskGroup() as tasks:
                shown = tasks.create_task(follow(viewer, said))
                async with answer:
                    first_epoch = answer.epoch
                    await say(answer, kill, scene.valkey, tasks)
            assert shown.result() == said
    stored = deployment.services.warm.read_message(ConversationKey("acme", conversation), answer.id)
    assert stored is not None
    assert stored.message.status == "complete"
    assert json.loads(encode(stored.message.parts)) == [{"type": "text", "text": said}]
    assert answer.outcome is not None
    assert answer.outcome.kind == "settled"
    assert stored.epoch == answer.epoch
    # Else nothing was endured: the absence was met, or the emptiness after it.
    assert scene.away or answer.epoch > first_epoch
    if kill.is_outlived:
        assert answer.epoch > first_epoch
    if not kill.comes_back:
        assert answer.epoch == first_epoch
        assert bool(scene.uploads.objects) == (len(said.encode()) > FRAME_BYTES_MAX)


async def say(answer: Producer, kill: Kill, valkey: KillableValkey, tasks: asyncio.TaskGroup) -> None:
    """Say all of it, and have Valkey killed at its point, and perhaps come back."""
    returning: asyncio.Task[None] | None = None
    for number, piece in enumerate([*kill.pieces, ""]):
        if number == kill.before:
            if not kill.in_flight:
                await answer.flush()
            await asyncio.to_thread(valkey.kill)
            returning = tasks.create_task(come_back(valkey)) if kill.comes_back else None
        if number == PIECES - 1 and kill.is_outlived and returning is not None:
            await returning
            await answer.flush()
        await answer.text(piece)
        await asyncio.sleep(0.002)


async def come_back(valkey: KillableValkey) -> None:
    """Start it again, empty, after a moment."""
    await asyncio.sleep(BACK_AFTER_S)
    await asyncio.to_thread(valkey.start)


async def follow(viewer: Viewer, said: str) -> str:
    """What a viewer shows of an answer in the end; until then it shows beginnings of it."""
    settled = []
    async for update in viewer:
        if update.message is not None:
            settled.append(text_of(update.message["parts"]))
        elif update.answer is not None:
            assert said.startswith(update.answer.text)
    assert len(settled) == 1
    return settled[0]
