"""News of other regions, told to those who watch here, and to this region's hot tier: the herald's other part.

What a region writes is replicated to this one's table, whose announcer hands it on. Told twice it does no harm, and
told late neither: a viewer knows what is old by ids and epochs.
"""

from __future__ import annotations

import msgspec

from threadkeep.domain import frames, times
from threadkeep.domain.model import Conversation, ConversationKey
from threadkeep.domain.news import HeadNews, MessageNews, News, RootsNews, StreamNews
from threadkeep.usecases.conversations import with_activity
from threadkeep.usecases.gaps import read_in_page
from threadkeep.usecases.services import Services
from threadkeep.usecases.viewers import tell, tell_all


def tell_news(services: Services, news: News) -> None:
    """Tell it.

    Raises:
        HotUnavailable: the hot tier could not be reached, and has not been told.
        WarmUnavailable: the table could not be read.
    """
    key = ConversationKey(news.tenant, news.conversation)
    match news:
        case MessageNews():
            _tell_message(services, key, news)
        case RootsNews():
            services.hot.note_several(key)  # else it would keep what a reader found in the table just before that came
        case HeadNews():
            _tell_head(services, key, news)
        case StreamNews():
            _tell_stream(services, key, news)


def _tell_message(services: Services, key: ConversationKey, news: MessageNews) -> None:
    stored = read_in_page(services.warm, key, news.message)
    if stored is None:
        return  # it was erased since, or archived
    head = services.warm.read_head(key)
    lives_ms = None
    if isinstance(head, Conversation):
        now_ms = services.clock.now_ms()
        if head.is_expired(now_ms):
            return  # the news comes late, and the hot tier is to keep nothing of it
        lives_ms = head.lives_ms(now_ms)
    if news.is_other:
        services.hot.forget_tail(key)  # it keeps what it has, since a message never changes
    # Settled, not filled: should a stream of that id live here as well, it has its end with that.
    viewers = services.hot.settle(key, stored)
    if isinstance(head, Conversation) and lives_ms is not None:
        # Told late, the message would be kept from now on as long as a new one.
        services.hot.load(key, (stored,), owner=head.owner, lives_ms=lives_ms)
    tell(services, key, viewers, frames.message_created(stored.message))


def _tell_head(services: Services, key: ConversationKey, news: HeadNews) -> None:
    head = services.warm.read_head(key)
    if not isinstance(head, Conversation) or head.is_expired(services.clock.now_ms()):
        return
    if news.is_other:
        _hand_over(services, key, head)
    else:
        tell_all(services, key, frames.conversation_updated(with_activity(services, key.tenant, head)))


def _hand_over(services: Services, key: ConversationKey, head: Conversation) -> None:
    """Whatever trusts that somebody else is the owner forgets it.

    Nobody knows whose the connections are that watch: all of them have to come again, which its owner's do when their
    subscription is renewed.
    """
    now_ms = services.clock.now_ms()
    head = msgspec.structs.replace(head, active_at=times.to_rfc3339(now_ms))
    services.replaced.give_to(key, head)
    services.owners.forget(key)
    services.hot.load(key, (), owner=head.owner, lives_ms=head.lives_ms(now_ms))
    services.hot.forget_viewers(key)


def _tell_stream(services: Services, key: ConversationKey, news: StreamNews) -> None:
    if services.others is None or news.region not in services.others.names:
        return  # evacuated: whoever went there would find nobody
    frame = frames.stream_opened(
        key.conversation,
        news.stream,
        epoch=news.epoch,
        parent=news.parent,
        role=news.role,
        region=news.region,
        endpoint=news.endpoint,
    )
    tell_all(services, key, frame)
