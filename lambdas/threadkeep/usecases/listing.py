"""Pages of messages, newest first: the path from a leaf, or every branch. The cursor of a page is an id of a message.

Ids are a total order that nothing moves in: whatever is written, archived or deleted between two pages, each message
that was there all the while comes exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from msgspec import Raw

from threadkeep.domain import frames, ids
from threadkeep.domain.archive import Damaged
from threadkeep.domain.bounds import PAGE_ITEMS_MAX, PATH_STEPS_MAX, TAIL_MESSAGES_MAX
from threadkeep.domain.commands import ListMessages
from threadkeep.domain.errors import ArchiveDamaged, Refused
from threadkeep.domain.model import Caller, ConversationKey, Message, StoredMessage
from threadkeep.usecases.newest import Opened, Wanted, end_of_path, look, open_newest
from threadkeep.usecases.services import Reply, Services, authorize
from threadkeep.usecases.tiers import History, Tiers


def list_messages(services: Services, caller: Caller, command: ListMessages) -> Reply:
    """A page of messages. As many as a frame takes.

    The cursor names the message that comes next (path), or the last one read (all).
    """
    check_cursor(command.cursor)
    if command.leaf == "all":
        return _list_all(services, caller, command)
    if command.cursor is not None or _is_bounded(command):
        return _page(_open_older(services, caller, command), command)
    wanted = Wanted(leaf=command.leaf, limit=command.limit, is_enough=fill_a_frame, after=command.after)
    return _page(open_newest(services, caller, command.conversation, wanted), command)


def check_cursor(cursor: str | None) -> None:
    """Refuse what no page can have given."""
    if cursor is not None and not ids.is_id(cursor):
        raise Refused("bad_request", "`cursor` must be one that a page gave.")


def page_reply(
    messages: Sequence[Raw], *, cursor: str | None, tier: str, damaged: Sequence[Damaged], missing: str | None = None
) -> Reply:
    """A page as it goes to the client. Where it ends or begins with what is ``missing``, it says so."""
    if cursor is None and not messages:
        cursor = missing
    reply: Reply = {"messages": messages, "cursor": cursor, "tier": tier}
    if damaged:
        reply["damaged"] = damaged
    if missing is not None and missing == cursor:
        reply["incomplete"] = True
    return reply


def _list_all(services: Services, caller: Caller, command: ListMessages) -> Reply:
    key = authorize(services, caller, command.conversation, fresh=True)
    history = History(Tiers.of(services), key, batch=command.limit)
    before = min(filter(None, (command.before, command.cursor)), default=None)
    page = history.page(before=before, after=command.after, limit=command.limit)
    found = [stored.message for stored in page.messages]
    fitted = frames.fit_page(found)
    while True:
        more = page.more or len(fitted) < len(found)
        cursor = found[len(fitted) - 1].id if fitted and more else None
        between = [message.id for message in found[: len(fitted)]]
        # What reaches over a cursor was told by the page that gave it; over a `before`, by nobody.
        damaged = history.damaged_in(before=command.cursor, down_to=cursor, between=between)
        if len(fitted) <= 1 or frames.holds(fitted, damaged):
            break
        fitted.pop()
    return page_reply(fitted, cursor=cursor, tier=history.tier, damaged=damaged)


def _is_bounded(command: ListMessages) -> bool:
    """Whether the path is to begin below its leaf."""
    return command.before is not None and (command.leaf is None or command.before <= command.leaf)


def _open_older(services: Services, caller: Caller, command: ListMessages) -> Opened:
    """The path from a place in it.

    A message that ``before`` names is taken for one of the path, and the path goes on from its parent: whether it is
    one could be told only by walking to it from the leaf, which costs the more the older it is. As far as the hot tier
    holds the path to a leaf that is named, it tells without a step. Where ``before`` names no message there is no other
    way than that walk, so it is made, some steps in each request.

    Raises:
        Refused: ``bad_request`` for a message that is known to be of another branch.
    """
    key = authorize(services, caller, command.conversation, fresh=True)
    tiers = Tiers.of(services)
    history = History(tiers, key, batch=command.limit + 1)
    if command.cursor is not None:
        return Opened(history.path(command.cursor, after=command.after), history)
    if command.leaf is not None:
        with suppress(ArchiveDamaged):  # it may be there, and what lies before it is read all the same
            if not tiers.has_message(key, command.leaf):
                end_of_path(services, history, command.leaf)
    if command.before is not None and (history.find(command.before) is not None or history.is_lost(command.before)):
        if command.leaf is not None and _passes_over(services, key, command.leaf, command.before):
            raise Refused("bad_request", "`before` names a message that is not on the way to `leaf`.")
        return Opened(history.path(command.before, after=command.after), history)
    history = History(tiers, key, batch=PAGE_ITEMS_MAX)
    start, _ = end_of_path(services, history, command.leaf)
    return Opened(history.path(start, after=command.after), history)


def _passes_over(services: Services, key: ConversationKey, leaf: str, message: str) -> bool:
    """Whether the path to that leaf, as the hot tier holds it, begins above the message and goes on below it."""
    tail = look(services, key, Wanted(leaf=leaf, limit=TAIL_MESSAGES_MAX, is_enough=fill_a_frame))
    held = [] if tail is None else [stored.message for stored in tail.messages]
    if not held or held[0].id < message or any(one.id == message for one in held):
        return False
    return held[-1].parent is None or held[-1].parent < message


def _page(opened: Opened, command: ListMessages) -> Reply:
    found: list[Message] = []
    following: str | None = None

    def taken() -> Iterator[Message]:
        nonlocal following
        for steps, stored in enumerate(opened.messages, 1):
            following = stored.message.parent
            if command.before is None or stored.message.id < command.before:
                found.append(stored.message)
                yield stored.message
            if len(found) == command.limit or steps == PATH_STEPS_MAX:
                return
        following = opened.history.missing  # the path has come to an end: its root, or what is still to come

    fitted = frames.fit_page(taken())
    history = opened.history
    while True:
        if len(fitted) < len(found):
            following = found[len(fitted)].id
        if command.after is not None and following is not None and following <= command.after:
            following = None
        damaged = history.damaged_down_to(following)
        if len(fitted) <= 1 or frames.holds(fitted, damaged):
            break
        fitted.pop()
    return page_reply(fitted, cursor=following, tier=history.tier, damaged=damaged, missing=history.missing)


def fill_a_frame(messages: Sequence[StoredMessage]) -> bool:
    """Whether they are more than a frame takes."""
    return len(frames.fit_page(stored.message for stored in messages)) < len(messages)
