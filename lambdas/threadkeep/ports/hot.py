"""The live tier, as the use cases see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from msgspec import UNSET, UnsetType

from threadkeep.domain.leaf import ClaimVerdict
from threadkeep.domain.model import ConversationKey, LiveStream, StoredMessage
from threadkeep.domain.streams import (
    AppendVerdict,
    Due,
    ExpireVerdict,
    Facts,
    Full,
    OpenVerdict,
    ResumeVerdict,
    Seal,
    Sealed,
    SealedUnopened,
    SealVerdict,
    Writer,
)
from threadkeep.domain.tail import Erased, Tail


class HotStore(Protocol):
    """The live tier: lossy, one conversation in one slot, one step a verb. Every method raises `HotUnavailable`."""

    def open(
        self,
        key: ConversationKey,
        stream: str,
        *,
        writer: Writer,
        facts: Facts,
        held: int | None = None,
        takeover: bool = False,
        fork: bool = False,
        leaf: str | None = None,
        parent_settled: bool = True,
    ) -> OpenVerdict | Erased:
        """Open a stream. ``leaf`` is the newest message that the table was just seen to hold, as `claim`'s is.

        A new stream is the conversation's leaf until it settles, as if it were claimed. ``parent_settled`` says
        whether the table holds the parent (a root's always is). Of a new stream's place is judged, in this order:
        parent other than the leaf, without ``fork`` → `StaleLeaf`; parent live → `ParentOpen`; parent not settled →
        `ParentMissing`; too many live streams → `Full`.

        A known stream keeps its parent and role: whoever may go on with it, and names others, hears `PlaceDiffers`.
        The rest of ``facts`` is taken where its log begins anew.

        The leaf is judged for a new stream only, and not for one whose producer names the epoch it ``held``: that
        one is going on with an answer whose place was judged when it began.
        """
        ...

    def append(
        self,
        key: ConversationKey,
        stream: str,
        *,
        principal: str,
        epoch: int,
        offset: int,
        ops: bytes,
        ends_ms: int | UnsetType | None = UNSET,
    ) -> AppendVerdict:
        """Append one batch of ops and renew the lease.

        With ``ends_ms``, when the conversation's retention ends as it now stands (None: never): from now on that holds.
        """
        ...

    def seal(
        self, key: ConversationKey, stream: str, *, principal: str, epoch: int, offset: int, seal: Seal
    ) -> SealVerdict:
        """Fix the end of a stream; later appends are refused."""
        ...

    def stop(self, key: ConversationKey, stream: str, seal: Seal) -> Sealed | SealedUnopened:
        """Seal it whoever holds it, unless it is sealed: then by the seal that stands.

        Of a stream that is not (yet) known the seal alone is left for `SETTLED_STATE_MS`: opened meanwhile, it is
        closed.
        """
        ...

    def expire(self, key: ConversationKey, stream: str) -> ExpireVerdict:
        """Seal it if its time has run out, judged and written in one step.

        A stream that is dead, silent or too long is sealed so. `Sealed` also where an old seal was never finished;
        `Alive` while there is time; `Unknown` where nothing is left to do.
        """
        ...

    def settle(self, key: ConversationKey, stored: StoredMessage) -> tuple[str, ...]:
        """Drop the log of a stream whose message is stored; its state stays for late writers. Returns the viewers.

        The message counts as filled, see `fill`.
        """
        ...

    def claim(
        self,
        key: ConversationKey,
        message: str,
        *,
        parent: str | None,
        fork: bool,
        confirmed: str | UnsetType | None = UNSET,
    ) -> ClaimVerdict | Erased:
        """Claim the place of a message before it is put. The same message again gets its place again.

        ``confirmed`` is the newest message that a strongly consistent read has just found in the table (None: there
        is none); UNSET: not asked, and then a register that is not sure of its leaf says `LeafUnknown`. With it a
        claim older than `CLAIM_VOID_MS` that the table lacks is void, a fresh one stands.

        Judged in this order: a live stream's id → `IdTaken`; parent other than the leaf, without ``fork`` →
        `StaleLeaf`; parent live → `ParentOpen`; parent claimed, newer than all that was confirmed → `ParentPending`.
        Whether any other parent is in the table is for the caller to know.
        """
        ...

    def fill(self, key: ConversationKey, stored: StoredMessage) -> tuple[str, ...]:
        """The message is in the table: its claim is filled, and the leaf advances to it if that was lost in between.

        It is kept in the tail too, in page form. Where the register knows that there was none before, or the message is
        older than the conversation's first as known here, it is the first one from now on: if it `is_prompt` and takes
        no more than `TAIL_FIRST_BYTES_MAX` it is kept, as long as the tail. A root beside a first message that is known
        here counts as `note_several` where one of the two is a prompt; where that cannot be told from an older root's
        coming late, what the first is, is not known any more. Beside a gravestone nothing is kept. Returns the viewers.
        """
        ...

    def read_tail(
        self,
        key: ConversationKey,
        *,
        leaf: str | None = None,
        limit: int,
        reader: str | None = None,
        wants_first: bool = False,
    ) -> Tail | Erased:
        """The newest messages of the path to a leaf (None: to the present one), at most ``limit`` of them: one command.

        Where the tail holds less than that of the path and does not reach its root, a ``reader`` (a nonce of the
        call's own) that finds nobody loading takes the lease on loading for `TAIL_LOAD_MS` (``is_loading`` False: go
        and `load`), and finds ``is_loading`` True where somebody else has it. So too where the beginning is not known.
        Where the tail is full nobody loads: what they found would have no room.

        ``wants_first``: with the conversation's first message, see `Tail`, where the path does not reach its root.

        The beginning is not known where a newer message may be in the table without the tier's having heard of it: one
        that is claimed, a stream that is sealed.
        """
        ...

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
        """Keep messages of a path (page form) in the tail, and give the reader's lease back.

        ``newest`` is the newest message that a strongly consistent read has just found in the table, of which the
        register is told as `claim`'s ``confirmed`` tells it. ``first`` is the conversation's first message, of whatever
        role, as some read has found it; where an older one is here, that stands. ``lives_ms``: nothing of this is
        kept longer (retention). Of the tail's messages the newest stay, at most `TAIL_MESSAGES_MAX` and
        `TAIL_BYTES_MAX`. Beside a gravestone nothing is kept.
        """
        ...

    def note_several(self, key: ConversationKey) -> None:
        """The table says that several messages are roots, one of them a prompt.

        From now on `SEVERAL` is told in place of a first message, whatever one some reader still tells of, as long as
        the register stands, which stands no longer for it. Beside a gravestone nothing is kept.
        """
        ...

    def forget_tail(self, key: ConversationKey) -> None:
        """Forget the tail and the first message: the table has another message than they may have under its id."""
        ...

    def bury(self, key: ConversationKey) -> tuple[int, tuple[str, ...]]:
        """The conversation was deleted: drop all that is here of it and leave a gravestone for `GRAVESTONE_MS`.

        While it stands, `open`, `claim` and `read_tail` say `Erased`, and `fill`, `settle`, `load` and `subscribe`
        keep nothing. Returns how many keys there were and the viewers, who are forgotten too. Again: the same, with
        what has come since.
        """
        ...

    def release(self, key: ConversationKey, message: str) -> None:
        """Give a claim back: the put failed, and it is certain that the message is not in the table."""
        ...

    def resume(
        self, key: ConversationKey, stream: str, *, epoch: int, offset: int, connection: str | None = None
    ) -> ResumeVerdict:
        """A page of the log from that place, or from 0 where that place is of another epoch.

        Unless there are more pages, the connection lags no longer, if it did (`mark_lagging`).
        """
        ...

    def live(self, key: ConversationKey) -> tuple[LiveStream, ...]:
        """The conversation's live streams, in order of their ids."""
        ...

    def subscribe(self, key: ConversationKey, connection: str, *, lease_ms: int) -> Full | Erased | None:
        """Make the connection a viewer for so long, one that does not lag; again before that to renew."""
        ...

    def unsubscribe(self, key: ConversationKey, connections: Sequence[str]) -> None:
        """Remove viewers, gone ones too."""
        ...

    def forget_viewers(self, key: ConversationKey) -> None:
        """Remove all viewers, those that lag too: some of them may watch no longer, and nobody knows which."""
        ...

    def mark_lagging(self, key: ConversationKey, connections: Sequence[str]) -> None:
        """Frames were dropped for these viewers: they are named no more until they have resumed or subscribe again."""
        ...

    def viewers(self, key: ConversationKey) -> tuple[str, ...]:
        """Connections whose lease runs and that do not lag."""
        ...

    def file(self, key: ConversationKey, stream: str) -> None:
        """Enter a stream in the deadline index, to be looked at when its first lease ends; before it is opened.

        The entry lies in another slot than the stream: the other way round a stream could be without one, and be
        forgotten. An entry that is not due yet stands as it is.
        """
        ...

    def due(self, limit: int) -> tuple[Due, ...]:
        """Entries to be looked at now, the oldest first."""
        ...

    def refile(self, due: Due, until_ms: int) -> None:
        """Look at it again then (ms, the hot tier's clock)."""
        ...

    def unfile(self, due: Due) -> None:
        """Remove an entry whose stream is no more, unless it was filed anew since it was read."""
        ...

    def scan_live(self) -> Iterator[tuple[ConversationKey, str]]:
        """Every stream that has not settled, whatever the index knows. Slow: it goes through all keys."""
        ...
