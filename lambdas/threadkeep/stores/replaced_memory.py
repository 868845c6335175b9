"""Items that another region's write has taken the place of, put back in memory: the reference, and a fake for tests."""

from __future__ import annotations

from threadkeep.domain import times
from threadkeep.domain.archive import entomb_ms
from threadkeep.domain.contests import Ending, Head
from threadkeep.domain.model import Conversation, ConversationKey, StoredMessage
from threadkeep.ports import MessageReplaced
from threadkeep.stores import warm_items
from threadkeep.stores.warm_memory import WarmMemory


class ReplacedMemory:
    """`threadkeep.ports.ReplacedItems` on a warm tier in memory."""

    def __init__(self, warm: WarmMemory) -> None:
        self._warm = warm

    def put_head(self, key: ConversationKey, head: Head) -> bool:
        """See `ReplacedItems`."""
        self._warm.check_available()
        standing = self._warm.standing_head(key)
        if standing is None or not head.claim.ranks_before(standing.claim):
            return False
        self._warm.put_standing_head(key, head)
        return True

    def put_message(self, replaced: MessageReplaced) -> bool:
        """See `ReplacedItems`."""
        self._warm.check_available()
        standing = self._warm.messages.get(replaced.key, {}).get(replaced.message)
        if standing is None or not replaced.was.ranks_before(ending_of(standing)):
            return False
        item = replaced.image
        packed = item.get(warm_items.WHOLE, item[warm_items.BODY])["B"]
        self._warm.messages[replaced.key][replaced.message] = warm_items.stored_from(replaced.key, item, packed)
        return True

    def give_to(self, key: ConversationKey, conversation: Conversation) -> None:
        """See `ReplacedItems`."""
        self._warm.check_available()
        if key not in self._warm.listed_with:
            return
        self._warm.listed_with[key] = conversation.owner
        self._warm.active_at[key] = conversation.active_at
        if conversation.expires_ms is not None:
            due_at = times.to_rfc3339(entomb_ms(conversation.expires_ms))
            self._warm.due_at[key] = min(due_at, self._warm.due_at.get(key, due_at))


def ending_of(stored: StoredMessage) -> Ending:
    """How a message came to its end."""
    return Ending(is_complete=stored.message.status == "complete", epoch=stored.epoch)
