"""What two regions contend for: a conversation's id, and the items that one of them writes over the other's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from threadkeep.domain.contests import Claim, Ending, Head
from threadkeep.domain.model import Conversation, ConversationKey


class IdClaims(Protocol):
    """Who claims a conversation's id in our region: told to the others, who ask for it. Raises `WarmUnavailable`.

    Every region writes its own and no other's, once: so none of them can be written over before it was seen.
    """

    def put(self, key: ConversationKey, claim: Claim) -> Claim | None:
        """Claim the id here, unless somebody does already, whose claim is returned then."""
        ...


class HeadReplaced(msgspec.Struct, frozen=True):
    """A conversation's head is another owner's now."""

    key: ConversationKey
    was: Head
    now: Claim

    @property
    def is_undue(self) -> bool:
        """Whether what was there ranks before what is."""
        return self.was.claim.ranks_before(self.now)


class MessageReplaced(msgspec.Struct, frozen=True):
    """A message is another one now.

    Attributes:
        image: the item that it was, whole, as the table's stream has it.
    """

    key: ConversationKey
    message: str
    was: Ending
    now: Ending
    image: Mapping[str, Any]

    @property
    def is_undue(self) -> bool:
        """Whether what was there ranks before what is."""
        return self.was.ranks_before(self.now)


Replaced = HeadReplaced | MessageReplaced


class ReplacedItems(Protocol):
    """Items that another region's write has taken the place of. Raises `WarmUnavailable`."""

    def put_head(self, key: ConversationKey, head: Head) -> bool:
        """Put a head back in place of another owner's that it ranks before; False where none such stands (any more)."""
        ...

    def put_message(self, replaced: MessageReplaced) -> bool:
        """Put a message back in place of one that it ranks before; False where none such stands (any more)."""
        ...

    def give_to(self, key: ConversationKey, conversation: Conversation) -> None:
        """Have it listed with its owner's, and with nobody else's, and fall due by the end of its own retention.

        Its ``active_at`` is noted, and has to be now: the pulse is written as a whole, and what another region has
        noted in it meanwhile must not become older by that.
        """
        ...
