"""The order of verdicts of docs/protocol.md, section 3.1, on the pure reference."""

from __future__ import annotations

from typing import Any

import pytest

from threadkeep.domain.streams import (
    DEAD,
    SILENT,
    TOO_LONG,
    Accepted,
    Closed,
    Diverged,
    Duplicate,
    Facts,
    Fenced,
    Gap,
    Held,
    PastEnd,
    Reopen,
    Seal,
    Stream,
    TooLarge,
    Unknown,
    Writer,
    judge_append,
    judge_close,
    judge_open,
    judge_time,
    next_epoch,
)

EPOCH, NOW_MS = 1_000, 5_000
ANN = Writer("ann", "run-1")
COMPLETE, STOPPED = Seal(status="complete"), Seal(status="stopped")


def stream(
    *log: bytes, seal: Seal | None = None, sealed_by: tuple[int, int] | None = None, ends_ms: int | None = None
) -> Stream:
    return Stream(
        epoch=EPOCH,
        writer=ANN,
        facts=Facts(parent=None, role="assistant"),
        lease_ms=0,
        silent_ms=0,
        long_ms=0,
        log=list(log),
        seal=seal,
        sealed_by=sealed_by,
        ends_ms=ends_ms,
    )


@pytest.mark.parametrize(
    ("known", "held", "now_ms", "expected"), [(7, 0, 3, 8), (0, 7, 3, 8), (7, 7, 9, 9), (7, 8, 9, 9), (0, 0, 0, 1)]
)
def test_an_epoch_is_beyond_all_that_anyone_has_seen(known: int, held: int, now_ms: int, expected: int) -> None:
    assert next_epoch(known=known, held=held, now_ms=now_ms) == expected


@pytest.mark.parametrize(
    ("writer", "held", "takeover", "expected"),
    [
        # the same run: a repeated open
        (ANN, None, False, Reopen(EPOCH, keep_log=True)),
        (ANN, None, True, Reopen(EPOCH, keep_log=True)),
        # the same run, naming the epoch it held: it holds everything
        (ANN, EPOCH, False, Reopen(NOW_MS, keep_log=False)),
        (ANN, 0, True, Reopen(NOW_MS, keep_log=False)),
        (ANN, EPOCH - 1, False, Reopen(NOW_MS, keep_log=False)),
        # another that held an epoch: fenced where the stream is beyond it
        (Writer("ann", "run-2"), EPOCH - 1, False, Fenced()),
        (Writer("ann", "run-2"), EPOCH - 1, True, Fenced()),
        (Writer("ann", "run-2"), EPOCH, False, Reopen(NOW_MS, keep_log=False)),
        (Writer("bob", "run-1"), 9_000, True, Reopen(9_001, keep_log=False)),
        # another that takes over
        (Writer("bob", "run-1"), None, True, Reopen(NOW_MS, keep_log=True)),
        # anyone else
        (Writer("bob", "run-1"), None, False, Held()),
        (Writer("ann", "run-2"), None, False, Held()),
    ],
)
def test_open(writer: Writer, held: int | None, expected: object, *, takeover: bool) -> None:
    judged = judge_open(stream(b"[]"), writer=writer, held=held, takeover=takeover, now_ms=NOW_MS)
    assert judged == expected
    sealed = stream(b"[]", seal=STOPPED, sealed_by=(EPOCH, 1))
    assert judge_open(sealed, writer=writer, held=held, takeover=takeover, now_ms=NOW_MS) == Closed(STOPPED)


def test_a_takeover_within_the_clocks_tick_still_raises_the_epoch() -> None:
    judged = judge_open(stream(), writer=Writer("bob", "run-2"), held=None, takeover=True, now_ms=EPOCH)
    assert judged == Reopen(EPOCH + 1, keep_log=True)


APPENDS: list[tuple[dict[str, Any], object, object]] = [
    # what is asked for, the verdict while the stream is open, the verdict once it is sealed
    ({"epoch": EPOCH + 1}, Unknown(), Unknown()),
    ({"epoch": EPOCH + 1, "principal": "bob"}, Unknown(), Unknown()),
    ({"principal": "bob"}, Unknown(), Unknown()),
    ({"principal": "bob", "epoch": EPOCH - 1}, Unknown(), Unknown()),
    ({"epoch": EPOCH - 1}, Fenced(), Fenced()),
    ({"epoch": EPOCH - 1, "offset": 9}, Fenced(), Fenced()),
    ({"offset": 2}, Accepted(3), Closed(STOPPED)),
    ({"offset": 1, "ops": b"[2]"}, Duplicate(2), Closed(STOPPED)),
    ({"offset": 0, "ops": b"[1]"}, Duplicate(1), Closed(STOPPED)),
    ({"offset": 0, "ops": b"[2]"}, Diverged(), Closed(STOPPED)),
    ({"offset": 0, "ops": b"[1] "}, Diverged(), Closed(STOPPED)),
    ({"offset": 3}, Gap(2), Closed(STOPPED)),
]


@pytest.mark.parametrize(("asked", "while_open", "once_sealed"), APPENDS)
def test_append(asked: dict[str, Any], while_open: object, once_sealed: object) -> None:
    request: dict[str, Any] = {"principal": "ann", "epoch": EPOCH, "offset": 2, "ops": b"[3]", "now_ms": NOW_MS} | asked
    log = (b"[1]", b"[2]")
    assert judge_append(stream(*log), **request) == while_open
    assert judge_append(stream(*log, seal=STOPPED, sealed_by=(EPOCH, 2)), **request) == once_sealed
    assert judge_append(None, **request) == Unknown()
    # where the retention may have ended: whoever may write is told so, whatever they would write
    is_writers = not isinstance(while_open, Unknown | Fenced)
    assert judge_append(stream(*log, ends_ms=NOW_MS + 1), **request) == while_open
    assert judge_append(stream(*log, ends_ms=NOW_MS), **request) == (PastEnd() if is_writers else while_open)
    assert judge_append(stream(*log, ends_ms=NOW_MS, seal=STOPPED, sealed_by=(EPOCH, 2)), **request) == once_sealed


@pytest.mark.parametrize(
    ("offset", "ops", "expected"),
    [
        (2, b"[34]", Accepted(3)),
        (2, b"[345]", TooLarge()),
        (1, b"[2]", Duplicate(2)),
        (1, b"[2345]", Diverged()),
        (3, b"[345]", Gap(2)),
    ],
)
def test_an_append_that_would_be_accepted_is_judged_by_its_size_too(offset: int, ops: bytes, expected: object) -> None:
    grown = stream(b"[1]", b"[2]")
    grown.log_bytes = 6
    assert (
        judge_append(grown, principal="ann", epoch=EPOCH, offset=offset, ops=ops, now_ms=NOW_MS, bytes_max=10)
        == expected
    )


@pytest.mark.parametrize(
    ("lease_ms", "silent_ms", "long_ms", "expected", "due_ms"),
    [
        (NOW_MS + 1, NOW_MS + 2, NOW_MS + 3, None, NOW_MS + 1),
        (NOW_MS + 3, NOW_MS + 1, NOW_MS + 2, None, NOW_MS + 1),
        (NOW_MS, NOW_MS - 1, NOW_MS - 2, DEAD, NOW_MS - 2),
        (NOW_MS + 1, NOW_MS, NOW_MS - 2, SILENT, NOW_MS - 2),
        (NOW_MS + 1, NOW_MS + 1, NOW_MS, TOO_LONG, NOW_MS),
    ],
)
def test_time(lease_ms: int, silent_ms: int, long_ms: int, expected: Seal | None, due_ms: int) -> None:
    judged = stream()
    judged.lease_ms, judged.silent_ms, judged.long_ms, judged.old_ms = lease_ms, silent_ms, long_ms, 7
    assert judge_time(judged, now_ms=NOW_MS) == expected
    assert judged.due_ms() == due_ms
    judged.seal = STOPPED
    assert judged.due_ms() == 7


@pytest.mark.parametrize(
    ("asked", "while_open", "once_sealed"),
    [
        ({"epoch": EPOCH + 1}, Unknown(), Unknown()),
        ({"principal": "bob"}, Unknown(), Unknown()),
        ({"principal": "bob", "epoch": EPOCH - 1}, Unknown(), Unknown()),
        ({"epoch": EPOCH - 1}, Fenced(), Fenced()),
        # repeated after its own seal, it gets the one that was set
        ({"offset": 2}, COMPLETE, STOPPED),
        ({"offset": 1}, Diverged(), Closed(STOPPED)),
        ({"offset": 3}, Gap(2), Closed(STOPPED)),
    ],
)
def test_close(asked: dict[str, Any], while_open: object, once_sealed: object) -> None:
    request: dict[str, Any] = {"principal": "ann", "epoch": EPOCH, "offset": 2, "seal": COMPLETE} | asked
    log = (b"[1]", b"[2]")
    assert judge_close(stream(*log), **request) == while_open
    assert judge_close(stream(*log, seal=STOPPED, sealed_by=(EPOCH, 2)), **request) == once_sealed
    settled = stream(seal=STOPPED, sealed_by=(EPOCH, 2))
    assert judge_close(settled, **request) == once_sealed
    assert judge_close(None, **request) == Unknown()
