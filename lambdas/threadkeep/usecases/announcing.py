"""Announcing: what the table's stream tells of, handed on to those who act on it. Knows the table and queues only.

An erasure begins here, in every region, since the tombstone's item reaches every region's stream. And here it is seen
when something lands beside a tombstone, whoever wrote it and however late: it is removed again.

And what other regions write is told here, to those who watch. Where it has taken the place of what ranks before it,
that is put back (docs/decisions/0045).
"""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.domain.bounds import CONTESTED_AGAIN_MS
from threadkeep.domain.erasure import ErasureJob, Landed
from threadkeep.domain.news import News
from threadkeep.ports import HeadReplaced, Replaced
from threadkeep.usecases.services import Services


def judge(services: Services, landed: Sequence[Landed | None]) -> list[ErasureJob | None]:
    """What each of these new items has to have done, None for nothing; asks for all tombstones at once.

    Of several that landed late beside one tombstone the first stands for all.

    Raises:
        WarmUnavailable: it is not known which of them lie beside a tombstone.
    """
    others = {item.key: None for item in landed if item is not None and not item.is_tombstone}
    late = set(services.erasures.gone(tuple(others))) if others else set()
    jobs: list[ErasureJob | None] = []
    for item in landed:
        if item is None or not (item.is_tombstone or item.key in late):
            jobs.append(None)
            continue
        if not item.is_tombstone:
            late.discard(item.key)
        jobs.append(
            ErasureJob(
                tenant=item.key.tenant,
                conversation=item.key.conversation,
                stage="first" if item.is_tombstone else "late",
            )
        )
    return jobs


def hand_on(services: Services, job: ErasureJob) -> None:
    """Have the region's objects and table cleared, and its hot tier; done twice, it is the same.

    Raises:
        WarmUnavailable: one of the queues did not take it.
    """
    services.erase_queue.send(job)
    services.tell_queue.send(job)


def put_back(services: Services, replaced: Replaced) -> bool:
    """Put back what a write of another region has taken the place of, if that ranks before it; whether it was put.

    Every region that sees it does so, and the later ones find it done. Beside a tombstone nothing comes back. What is
    put before that has come lands beside it somewhere, and goes again (`judge`).

    Raises:
        WarmUnavailable: it could not be put, or it is not known whether the conversation was deleted.
    """
    if not replaced.is_undue or services.erasures.gone([replaced.key]):
        return False
    if isinstance(replaced, HeadReplaced):
        return services.replaced.put_head(replaced.key, replaced.was)
    return services.replaced.put_message(replaced)


def tell(services: Services, news: Sequence[News], *, again: bool = False) -> None:
    """Have the region's hot tier and its viewers told; told twice, it does no harm.

    Args:
        services: the ports.
        news: what they are told.
        again: tell them a second time, when nobody uses any more what was read before the first.

    Raises:
        WarmUnavailable: the queue did not take it.
    """
    for each in news:
        services.tell_queue.send(each)
        if again:
            services.tell_queue.send(each, delay_s=CONTESTED_AGAIN_MS // 1_000)
