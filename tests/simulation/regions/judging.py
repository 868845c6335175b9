"""What must hold of two regions once they have seen each other again and everything has calmed down."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import msgspec

from tests.simulation.network import Frame
from tests.simulation.regions.deployment import Deployment
from tests.simulation.regions.table import rank_of
from tests.simulation.regions.trouble import Kind
from tests.simulation.regions.world import HOME, Answer, World
from threadkeep.domain.model import StoredMessage
from threadkeep.stores.manifests_memory import ManifestsMemory
from threadkeep.usecases.tiers import History, Tiers


def judge(world: World) -> None:
    """Look at everything.

    Raises:
        AssertionError: a promise was broken. The message says which.
    """
    _judge_replicas(world)
    _judge_contests(world)
    world.contention.judge()
    if world.kind is not Kind.EVACUATION:
        _require(not world.table.opened_knowingly, f"opened, though it lives elsewhere: {world.table.opened_knowingly}")
    if world.is_gentle:
        lost = [run.name for answer in world.answers.values() for run in answer.runs if run.outcome in ("", "lost")]
        _require(not lost, f"never came to an end: {lost}")
    if world.deleted:
        _judge_erasure(world)
        return
    table = _history(world, world.regions[HOME])
    for region in world.regions.values():
        _require(_history(world, region) == table, f"{region.name} reads another history than {HOME}")
    messages = {name: json.loads(msgspec.json.encode(kept.message)) for name, kept in table.items()}
    for name, message in world.accepted.items():
        _require(name in messages, f"the accepted message {name} is lost")
        _require(messages[name]["parts"] == message["parts"], f"the accepted message {name} is another one")
    for answer in world.answers.values():
        _judge_answer(world, answer, table, messages)
    for region in world.regions.values():
        losses = sum(other.losses for other in world.regions.values() if other is not region)
        _judge_hot(region, others_losses=losses)
    for viewer in world.viewers:
        for name, message in messages.items():
            shown = viewer.shown.get(name)
            _require(shown is not None and shown.settled, f"{viewer.client.name} does not show {name} as settled")
            _require(shown is not None and shown.text == _text(message), f"{viewer.client.name} shows another {name}")
    _judge_reads(world, messages)
    _judge_title(world)


def _judge_replicas(world: World) -> None:
    """Nothing stands differently in two regions."""
    _require(world.table.under_way == 0, "something is still under way between the regions")
    first, *others = (region.replica.items() for region in world.regions.values())
    for other in others:
        differing = sorted(
            address.sort_key for address in first.keys() | other.keys() if first.get(address) != other.get(address)
        )
        _require(not differing, f"the replicas differ: {differing}")


def _judge_contests(world: World) -> None:
    """Of all that was ever stored under an id, what ranks first stands, wherever it still stands."""
    for region in world.regions.values():
        for address, value in region.replica.items().items():
            better = [one for one in world.table.ranks.get(address, ()) if one.ranks_before(rank_of(value))]
            _require(not better, f"{region.name} has {address.sort_key} otherwise than it was: {better}")


def _judge_answer(world: World, answer: Answer, table: dict[str, StoredMessage], messages: dict[str, Frame]) -> None:
    message = messages.get(answer.stream)
    losses = sum(region.losses for region in world.regions.values())
    if message is None:
        opened = [run for run in answer.runs if run.acknowledged or run.outcome == "complete"]
        _require(not opened or losses > 0, "an answer that was begun is in no table")
        return
    text = _text(message)
    _require(any(run.text.startswith(text) for run in answer.runs), f"the table holds a mixture: {text!r}")
    if message["status"] == "complete":
        _require(any(run.text == text for run in answer.runs), f"complete, but cut: {text!r}")
    complete = [run for run in answer.runs if run.outcome == "complete"]
    is_twice = any(one.address.sort_key == f"m#{answer.stream}" for one in world.table.overwritten)
    if len(world.table.opened.get(answer.stream, ())) > 1 or (is_twice and world.kind is Kind.EVACUATION):
        # Begun in two regions, before one had heard of the other, or ended in one while the other was gone: one stands.
        _require(not complete or message["status"] == "complete", f"told ok, it is {message['status']}")
        _require(not complete or any(run.text == text for run in complete), f"told ok, the table holds {text!r}")
        return
    _require(not is_twice, "settled twice")
    for run in complete:
        _require(message["status"] == "complete", f"{run.name} was told ok, it is {message['status']}")
        _require(run.text == text, f"{run.name} was told ok, the table holds {text!r}")
    for run in answer.runs:
        if run.epoch == table[answer.stream].epoch and not losses:
            said = run.text[: run.acknowledged]
            _require(text.startswith(said), f"{run.name} lost acknowledged text: {said!r}, kept {text!r}")


def _judge_hot(region: Deployment, *, others_losses: int) -> None:
    # What another one told that it goes on with, and has lost since, is waited for until that is believed no more.
    told_elsewhere = {
        stream
        for talk in region.warm.live.values()
        for other, streams in talk.items()
        if other != region.name and others_losses
        for stream in streams
    }
    live = [name for talk in region.hot._conversations.values() for name in talk.live if name not in told_elsewhere]
    _require(not live, f"still running in {region.name}: {live}")
    filed = [name for _, name in region.hot._deadlines if name not in told_elsewhere]
    _require(not filed, f"still filed in {region.name}: {filed}")
    # What a lost hot tier forgot is believed until its time is over; nobody else's is.
    own = [streams for talk in region.warm.live.values() if (streams := talk.get(region.name))]
    told = [name for streams in own for name in streams if name not in told_elsewhere]
    _require(not told or region.losses > 0, f"{region.name} still believes that something lives: {told}")


def _judge_reads(world: World, messages: dict[str, Frame]) -> None:
    """Both regions read the same path, from the newest message to its root: out of their caches, if these are right."""
    if not messages:
        return
    expected: list[str] = []
    name: str | None = max(messages)
    while name is not None:
        expected.append(name)
        name = messages[name]["parent"]
    for reader in world.readers:
        read = world.last_read[reader.client.home]
        _require(read is not None, f"in {reader.client.home} nobody could read")
        found = [message["id"] for message in read or ()]
        _require(found == expected, f"in {reader.client.home} the path is {found}, not {expected}")
        if world.table.overwritten and world.regions[reader.client.home].losses:
            continue  # a hot tier that falls back has again what it had been told to forget, until its time is over
        texts = [_text(message) for message in read or ()]
        _require(texts == [_text(messages[one]) for one in expected], f"{reader.client.home} reads other texts")


def _judge_title(world: World) -> None:
    """A title is one that somebody gave: of two at once the later one, as a whole."""
    heads = [region.warm._heads[world.key] for region in world.regions.values() if world.key in region.warm._heads]
    titles = {"new", *(renamed.title for renamed in world.renamed)}
    _require(all(head.title in titles for head in heads), "nobody gave that title")
    if any(renamed.is_acknowledged for renamed in world.renamed):
        _require(all(head.title != "new" for head in heads), "an acknowledged title is lost")


def _judge_erasure(world: World) -> None:
    """Gone in both regions, out of every store, with a receipt that says so."""
    for region in world.regions.values():
        items = [one.sort_key for one in region.replica.items() if one.key == world.key]
        left = [sort_key for sort_key in items if not sort_key.startswith("gone")]
        _require(not left, f"left in the table of {region.name}: {left}")
        _require(not world.buckets[region.name].objects, f"left in the bucket of {region.name}")
        held = region.hot._conversations.get(world.key)
        # One that falls back after the second pass has again what both had taken, until its time is over.
        if held is not None and region.fell_back_ms < region.warm.gone[world.key].second_pass_ms:
            rest = (held.streams, held.stopped, held.owner, held.tail, held.leases, held.lagging)
            _require(not any(rest), f"left in the hot tier of {region.name}: {rest}")
        receipt = world.receipts[region.name]
        _require(receipt is not None and "code" not in receipt, f"no receipt in {region.name}: {receipt}")
        erasure: Any = receipt and receipt["erasure"]
        _require(erasure["state"] == "done", f"the receipt in {region.name} is {erasure}")


def _history(world: World, region: Deployment) -> dict[str, StoredMessage]:
    """Every message of the conversation, out of the table and the segments, as that region has them."""
    bare = dataclasses.replace(region.services, warm=region.warm, manifests=ManifestsMemory(region.warm), others=None)
    tiers = Tiers.of(bare)
    page = History(tiers, world.key, batch=100).page(limit=100)
    return {kept.message.id: kept for kept in page.messages}


def _text(message: Frame) -> str:
    return "".join(part["text"] for part in message["parts"])


def _require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 -- reads as a sentence
    if not holds:
        raise AssertionError(otherwise)
