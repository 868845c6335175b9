"""The hot tier's tail in memory, and its gravestones."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from threadkeep.domain.bounds import GRAVESTONE_MS, LEAF_MS, TAIL_BYTES_MAX, TAIL_LOAD_MS, TAIL_MESSAGES_MAX, TAIL_MS
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.domain.tail import Erased, Tail
from threadkeep.stores.memory_conversation import Conversation, MemoryTier
from threadkeep.stores.tail_elements import (
    SEVERAL_ELEMENT,
    FirstKind,
    first_kind,
    id_of,
    kind_of_new,
    parent_of,
    to_binary,
    to_element,
)
from threadkeep.stores.tail_path import ROOM_BYTES, tail_of


class TailInMemory(MemoryTier):
    """The tail of `HotStore`."""

    def read_tail(
        self,
        key: ConversationKey,
        *,
        leaf: str | None = None,
        limit: int,
        reader: str | None = None,
        wants_first: bool = False,
    ) -> Tail | Erased:
        """See `HotStore.read_tail`."""
        conversation = self._conversation(key)
        if conversation.is_buried:
            return Erased()
        end = _path_end(conversation, leaf)
        path = [] if end is UNSET else _walk(conversation, end, limit)
        is_whole = end is not UNSET and (parent_of(path[-1]) if path else end) is None
        is_enough = end is not UNSET and (
            is_whole or len(path) >= min(limit, TAIL_MESSAGES_MAX) or not _has_room(conversation)
        )
        is_loading = not is_enough and self._is_loading(conversation, reader)
        first = _first_known(conversation) if wants_first and not is_whole else b""
        return tail_of(key, owner=conversation.owner, leaf=end, path=path, first=first, is_loading=is_loading)

    def load(
        self,
        key: ConversationKey,
        stored: Sequence[StoredMessage],
        *,
        owner: str,
        newest: str | UnsetType | None = UNSET,
        first: StoredMessage | UnsetType = UNSET,
        reader: str | None = None,
        lives_ms: int | None = None,
    ) -> None:
        """See `HotStore.load`."""
        now_ms, conversation = self._clock.now_ms(), self._conversation(key)
        if conversation.loading is not None and conversation.loading[0] == reader:
            conversation.loading = None
        if conversation.is_buried:
            return
        if newest is not UNSET:
            conversation.register.confirm(newest, now_ms=now_ms, void_ms=self._limits.claim_void_ms)
        conversation.owner = owner
        conversation.register_ends_ms = now_ms + (LEAF_MS if lives_ms is None else min(LEAF_MS, lives_ms))
        tail_ms = TAIL_MS if lives_ms is None else min(TAIL_MS, lives_ms)
        if first is not UNSET and not conversation.has_several:
            known = _first_known(conversation)
            older = [id_of(known)] if known else []
            if first.message.id <= min([*older, *conversation.tail], default=first.message.id):
                element = to_element(first)
                _set_first(conversation, first_kind(first, element), element)
        conversation.first_ends_ms = now_ms + tail_ms
        self._keep(conversation, stored, tail_ms)

    def note_several(self, key: ConversationKey) -> None:
        """See `HotStore.note_several`."""
        now_ms, conversation = self._clock.now_ms(), self._conversation(key)
        if not conversation.is_buried:
            _set_several(conversation)
            if conversation.register_ends_ms <= now_ms:
                conversation.register_ends_ms = now_ms + LEAF_MS

    def forget_tail(self, key: ConversationKey) -> None:
        """See `HotStore.forget_tail`."""
        conversation = self._conversation(key)
        conversation.tail, conversation.first = {}, None

    def bury(self, key: ConversationKey) -> tuple[int, tuple[str, ...]]:
        """See `HotStore.bury`."""
        now_ms, buried = self._clock.now_ms(), self._conversation(key)
        self._conversations[key] = Conversation(gravestone_ends_ms=now_ms + GRAVESTONE_MS)
        there = (
            buried.register_ends_ms > now_ms,
            buried.live,
            buried.leases,
            buried.lagging,
            buried.tail,
            buried.first,
            buried.loading,
            *buried.streams,
            *(stream for stream, record in buried.streams.items() if record.log),
        )
        return sum(map(bool, there)), (*buried.leases, *buried.lagging)

    def _note_first(self, conversation: Conversation, stored: StoredMessage) -> None:
        """The message is in the table; before the register is told. One dated back takes the place of the first."""
        message, known, element = stored.message.id, _first_known(conversation), to_element(stored)
        kind = kind_of_new(stored, element)
        if conversation.has_several:
            return
        if known and _is_another_root(conversation, message, kind):
            _set_several(conversation)
        elif message < id_of(known) if known else _is_certainly_first(conversation, message):
            _set_first(conversation, "unknown" if known and kind == "whole" else kind, element)
        conversation.first_ends_ms = self._clock.now_ms() + TAIL_MS

    def _is_loading(self, conversation: Conversation, reader: str | None) -> bool:
        """Whether somebody else is; where nobody is, the reader is from now on."""
        if conversation.loading is None and reader is not None:
            conversation.loading = (reader, self._clock.now_ms() + TAIL_LOAD_MS)
        return conversation.loading is not None and conversation.loading[0] != reader

    def _keep(self, conversation: Conversation, stored: Sequence[StoredMessage], lives_ms: int) -> None:
        """Have them in the tail, and the tail within its bounds."""
        if not stored:
            return
        for each in stored:
            conversation.tail.setdefault(each.message.id, to_element(each))
        conversation.tail = dict(sorted(conversation.tail.items()))
        while len(conversation.tail) > TAIL_MESSAGES_MAX or _taken_bytes(conversation) > TAIL_BYTES_MAX:
            del conversation.tail[next(iter(conversation.tail))]
        conversation.tail_ends_ms = self._clock.now_ms() + lives_ms


def _path_end(conversation: Conversation, leaf: str | None) -> str | UnsetType | None:
    """The newest settled message on the way to that leaf, or to the present one; UNSET where the tier is not sure.

    What is claimed or sealed may be in the table without our having heard of it.
    """
    end: str | UnsetType | None = leaf
    live = {stream: record for stream, record in conversation.streams.items() if not record.settled}
    if leaf is None:
        end = conversation.register.end()
        if end is UNSET:
            return UNSET
        end = max([*live, *([] if end is None else [end])], default=None)
    while isinstance(end, str) and end in live:
        if live[end].seal is not None:
            return UNSET
        end = live[end].facts.parent
    return end


def _walk(conversation: Conversation, end: str | None, limit: int) -> list[bytes]:
    """The path from there, newest first, as far as the tail has it."""
    path: list[bytes] = []
    while end is not None and end in conversation.tail and len(path) < limit:
        path.append(conversation.tail[end])
        end = parent_of(path[-1])
    return path


def _first_known(conversation: Conversation) -> bytes:
    """The first message's element where it is a prompt, its id where it is none; empty where it is not known."""
    if conversation.has_several:
        return SEVERAL_ELEMENT
    if conversation.first is not None:
        return conversation.first
    return b"" if conversation.first_id is None else to_binary(conversation.first_id)


def _set_first(conversation: Conversation, kind: str, element: bytes) -> None:
    conversation.first = element if kind == "whole" else None
    conversation.first_id = id_of(element) if kind == "id" else None


def _set_several(conversation: Conversation) -> None:
    conversation.first, conversation.first_id, conversation.has_several = None, None, True


def _is_another_root(conversation: Conversation, message: str, kind: FirstKind) -> bool:
    """Whether it is a root beside the first message that is known, and one of the two is a prompt.

    A prompt that is older than that may be its own root, come late from another region.
    """
    known = id_of(_first_known(conversation))
    if kind == "child" or message == known:
        return False
    return conversation.first is not None or (kind != "id" and message > known)


def _is_certainly_first(conversation: Conversation, message: str) -> bool:
    """Whether nothing older can be in the table: the register knows it to be empty, nothing older is on its way."""
    on_its_way = (*conversation.register.claims, *conversation.live)
    return conversation.register.settled is None and message <= min(on_its_way, default=message)


def _taken_bytes(conversation: Conversation) -> int:
    return sum(map(len, conversation.tail.values()))


def _has_room(conversation: Conversation) -> bool:
    """Whether a loader could add older messages: where it could not, nobody has to wait for one."""
    return len(conversation.tail) < TAIL_MESSAGES_MAX and _taken_bytes(conversation) <= ROOM_BYTES
