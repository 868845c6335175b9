"""Contexts: the end of a path that a model is to read before it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import UNSET, Raw

from threadkeep.domain import frames
from threadkeep.domain.archive import Damaged
from threadkeep.domain.bounds import PAGE_ITEMS_MAX
from threadkeep.domain.commands import ReadContext
from threadkeep.domain.errors import Refused
from threadkeep.domain.frames import MESSAGE_BYTES_MAX
from threadkeep.domain.model import Caller, ConversationKey, Message, StoredMessage
from threadkeep.domain.tail import Several, is_prompt
from threadkeep.usecases.listing import check_cursor, fill_a_frame, page_reply
from threadkeep.usecases.newest import Opened, Wanted, open_newest
from threadkeep.usecases.pairs import Pairs
from threadkeep.usecases.selecting import Bounds, Selection, select
from threadkeep.usecases.services import Reply, Services, authorize
from threadkeep.usecases.tiers import History, Tiers


def read(services: Services, caller: Caller, command: ReadContext) -> Reply:
    """The newest messages of a path within the caller's bounds and a frame, oldest first."""
    check_cursor(command.cursor)
    if caller.produces and command.leaf is None and command.cursor is None:
        # The present leaf may be of another turn than the one that is to be answered.
        raise Refused("bad_request", "With `produce`, `leaf` says which message is to be answered.")
    opened = _open(services, caller, command)
    bounds = Bounds(
        messages_max=command.max_messages, tokens_max=command.max_tokens, size_max=MESSAGE_BYTES_MAX, size=_size
    )
    path = (stored.message for stored in opened.messages)
    history = opened.history
    selection = select(path, bounds, partial(_prompt, history, opened.first))
    page, following, damaged = _page(selection, history)
    reply = page_reply(page, cursor=following, tier=history.tier, damaged=damaged, missing=history.missing)
    return reply | {"truncated": following is not None or bool(damaged) or "incomplete" in reply}


def read_whole(
    tiers: Tiers, key: ConversationKey, leaf: str, *, messages_max: int, tokens_max: int
) -> tuple[Message, ...]:
    """The end of the path to ``leaf``, oldest first, with all parts; see `select`.

    A message whose parts no bucket can give comes without them.

    Raises:
        WarmUnavailable: a store cannot be read.
    """
    history = History(tiers, key, batch=min(messages_max, PAGE_ITEMS_MAX))
    path = (stored.message for stored in history.path(leaf))
    bounds = Bounds(messages_max=messages_max, tokens_max=tokens_max)
    selection = select(path, bounds, partial(_prompt, history, history.first))
    ahead = () if selection.ahead is None else (selection.ahead,)
    return tuple(_whole(tiers, key, message) for message in (*ahead, *reversed(selection.newest_first)))


def _open(services: Services, caller: Caller, command: ReadContext) -> Opened:
    if command.cursor is None:
        # With a bound on tokens all of the newest messages are looked through for system ones.
        is_enough = fill_a_frame if command.max_tokens is None else _never
        wanted = Wanted(leaf=command.leaf, limit=command.max_messages, is_enough=is_enough, first=True)
        return open_newest(services, caller, command.conversation, wanted)
    key = authorize(services, caller, command.conversation, fresh=True)
    history = History(Tiers.of(services), key, batch=min(command.max_messages, PAGE_ITEMS_MAX))
    return Opened(history.path(command.cursor), history)


def _prompt(
    history: History, read_first: Callable[[], StoredMessage | Several | None], oldest: Message
) -> Message | None:
    """What the path begins with, as far as it is known where no older message of it was looked at than that one."""
    first = read_first()
    if isinstance(first, Several):
        first = history.root_above(oldest)
    return first.message if first is not None and is_prompt(first.message) else None


def _page(selection: Selection, history: History) -> tuple[list[Raw], str | None, list[Damaged]]:
    """What a frame takes of the selection, oldest first; the message that comes next; and the damage on the way there.

    The newest and the calls that it answers go first. Of the others it ends before the newest that does not fit, or
    whose call does not: the cursor passes no message that was left out.
    """
    chosen, near = selection.newest_first, selection.newest_first[: selection.near]
    pairs = Pairs(chosen)
    first = {message.id for message in chosen[:1]}
    first |= pairs.calls_of(chosen[0].id) if chosen else set()
    ahead = [] if selection.ahead is None else [selection.ahead]
    others = [*ahead, *(message for message in chosen if message.id not in first)]
    order = [*(message for message in chosen if message.id in first), *others]
    page = {message.id: fitted for message, fitted in zip(order, _fit(order), strict=False)}
    while True:
        lacking = pairs.unanswerable(page) - first
        ends = (place for place, message in enumerate(near) if message.id not in page or message.id in lacking)
        end = next(ends, len(near))
        following = near[end].id if end < len(near) else selection.following
        damaged = history.damaged_down_to(following)
        out = lacking | {m.id for m in near[end:] if m.id in page and m.id not in first and m.role != "system"}
        if not out and not frames.holds(page.values(), damaged):
            out = {message.id for message in [one for one in others if one.id in page][-1:]}
        if not out:
            break
        page = {message: fitted for message, fitted in page.items() if message not in out}
    in_order = [*ahead, *reversed(chosen)]
    return [page[message.id] for message in in_order if message.id in page], following, damaged


def _fit(newest_first: Sequence[Message]) -> list[Raw]:
    """As they fit one frame; without their parts where what has to be in it is larger than that."""
    if sum(map(_size, newest_first)) <= MESSAGE_BYTES_MAX:
        return [frames.fit(message) for message in newest_first]
    return frames.fit_together(newest_first)


def _size(message: Message) -> int:
    return len(bytes(frames.fit(message))) + 1


def _never(_messages: object) -> bool:
    return False


def _whole(tiers: Tiers, key: ConversationKey, message: Message) -> Message:
    if message.parts is not UNSET:
        return message
    stored = tiers.read_message(key, message.id)
    return message if stored is None else stored.message
