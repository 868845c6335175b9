"""Records of the table's stream, as far as we read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from threadkeep.domain import ids
from threadkeep.domain.erasure import Landed
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.news import HeadNews, MessageNews, News, RootsNews, StreamNews
from threadkeep.ports import HeadReplaced, MessageReplaced, Replaced
from threadkeep.schema import (
    PARTITION_KEY,
    REGION_ATTRIBUTE,
    SORT_GONE,
    SORT_HEAD,
    SORT_KEY,
    SORT_LIVE,
    SORT_MESSAGE,
    SORT_ROOTS,
)
from threadkeep.stores import contest_items, live_items, table_keys
from threadkeep.stores.contest_items import OWNER


def read_landed(record: dict[str, Any]) -> Landed | None:
    """The new item of a conversation that the record tells of.

    None for what else there is: items that changed or went, receipt lines, and items of no conversation.
    """
    keys = record["dynamodb"]["Keys"]
    partition, sort_key = str(keys[PARTITION_KEY]["S"]), str(keys[SORT_KEY]["S"])
    if record["eventName"] != "INSERT" or sort_key.startswith(SORT_GONE + "#"):
        return None
    key = table_keys.key_of(partition)
    return Landed(key, is_tombstone=sort_key == SORT_GONE) if ids.is_id(key.conversation) else None


def read_news(record: dict[str, Any], region: str) -> tuple[News, ...]:
    """What the record tells of another region's doings that those who watch in ours have to hear of.

    Where there is one region no item names its writer, and there are no news.
    """
    change = record["dynamodb"]
    keys, image = change["Keys"], change.get("NewImage")
    if image is None:
        return ()
    key, sort_key = table_keys.key_of(str(keys[PARTITION_KEY]["S"])), str(keys[SORT_KEY]["S"])
    if sort_key.startswith(SORT_LIVE):
        is_ours = live_items.region_of(sort_key) == region
        return () if is_ours else tuple(_streams_begun(key, image, change.get("OldImage")))
    replaced = read_replaced(record)
    if isinstance(replaced, HeadReplaced):
        # Whoever wrote it: what our functions and our hot tier know of the owner before has to go.
        return (HeadNews(tenant=key.tenant, conversation=key.conversation, is_other=True),)
    if image.get(REGION_ATTRIBUTE, {"S": region})["S"] == region:
        return ()
    return _news_of(key, sort_key, is_new=record["eventName"] != "MODIFY")


def _news_of(key: ConversationKey, sort_key: str, *, is_new: bool) -> tuple[News, ...]:
    """What an item means that another region wrote."""
    if sort_key.startswith(SORT_MESSAGE):
        message = table_keys.message_of(sort_key)
        return (MessageNews(tenant=key.tenant, conversation=key.conversation, message=message, is_other=not is_new),)
    if sort_key == SORT_ROOTS:
        return (RootsNews(tenant=key.tenant, conversation=key.conversation),)
    # A new conversation is watched by nobody.
    is_changed_head = sort_key == SORT_HEAD and not is_new
    return (HeadNews(tenant=key.tenant, conversation=key.conversation),) if is_changed_head else ()


def read_replaced(record: dict[str, Any]) -> Replaced | None:
    """The item in the place of which the record has another one: a head of another owner, or any message."""
    change = record["dynamodb"]
    keys, now, was = change["Keys"], change.get("NewImage"), change.get("OldImage")
    if now is None or was is None:
        return None
    key, sort_key = table_keys.key_of(str(keys[PARTITION_KEY]["S"])), str(keys[SORT_KEY]["S"])
    if sort_key.startswith(SORT_MESSAGE):
        return MessageReplaced(
            key=key,
            message=table_keys.message_of(sort_key),
            was=contest_items.ending_of(was),
            now=contest_items.ending_of(now),
            image=contest_items.from_stream(was),
        )
    if sort_key == SORT_HEAD and was[OWNER] != now[OWNER]:
        return HeadReplaced(key=key, was=contest_items.head_from(was), now=contest_items.claim_of_head(now))
    return None


def _streams_begun(key: ConversationKey, image: dict[str, Any], before: dict[str, Any] | None) -> Iterator[StreamNews]:
    """The streams that an item names and did not name before, or not in that epoch."""
    known = {} if before is None else {name: live.epoch for name, (live, _) in live_items.streams_of(before).items()}
    for name, (live, _) in live_items.streams_of(image).items():
        if known.get(name) != live.epoch:
            yield StreamNews(
                tenant=key.tenant,
                conversation=key.conversation,
                stream=live.stream,
                epoch=live.epoch,
                parent=live.parent,
                role=live.role,
                region=live.region,
                endpoint=live.endpoint or "",
            )
