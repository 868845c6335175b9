"""Reading in batches: what is left unprocessed is asked for again, a bounded while, and nothing is dropped."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.support.conversations import NOW_MS
from threadkeep.domain import ids
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.stores.batch_get import ATTEMPTS_MAX, KEYS_MAX, batch_get
from threadkeep.stores.warm_items import primary_key

TABLE = "table"


class SlowTable:
    """Has every item, and leaves the last of the keys unprocessed for some while."""

    def __init__(self, *, left_out: int, times: int) -> None:
        self.left_out = left_out
        self.times = times
        self.calls: list[int] = []
        self.consistent: set[bool] = set()

    def batch_get_item(self, *, RequestItems: dict[str, Any]) -> dict[str, Any]:  # noqa: N803 -- boto3's name
        keys = RequestItems[TABLE]["Keys"]
        self.consistent.add(RequestItems[TABLE]["ConsistentRead"])
        self.calls.append(len(keys))
        if len(self.calls) > self.times:
            return {"Responses": {TABLE: keys}, "UnprocessedKeys": {}}
        given, left = keys[: -self.left_out], keys[-self.left_out :]
        # Alone, keys left out come back without any table among the responses.
        return {"Responses": {TABLE: given} if given else {}, "UnprocessedKeys": {TABLE: {"Keys": left}}}


def keys_of(count: int) -> list[dict[str, Any]]:
    return [primary_key(ConversationKey("acme", ids.mint(NOW_MS)), "head") for _ in range(count)]


def read(table: SlowTable, keys: list[dict[str, Any]]) -> tuple[set[str], list[float]]:
    pauses: list[float] = []
    found = batch_get(cast("Any", table), TABLE, keys, pauses.append)
    return {partition for partition, _ in found}, pauses


def test_three_of_twenty_five_left_out_twice_are_read_all_the_same() -> None:
    table, keys = SlowTable(left_out=3, times=2), keys_of(25)
    found, pauses = read(table, keys)
    assert found == {key["pk"]["S"] for key in keys}
    assert table.calls == [25, 3, 3]
    assert [pause <= bound for pause, bound in zip(pauses, (0.1, 0.2), strict=True)] == [True, True]
    assert table.consistent == {True}


def test_what_stays_unprocessed_is_a_loud_error() -> None:
    table = SlowTable(left_out=3, times=100)
    with pytest.raises(WarmUnavailable, match="3 keys left unprocessed"):
        read(table, keys_of(25))
    assert len(table.calls) == ATTEMPTS_MAX


def test_many_keys_are_read_in_batches_that_the_api_takes() -> None:
    table, keys = SlowTable(left_out=1, times=0), keys_of(2 * KEYS_MAX + 1)
    found, pauses = read(table, keys)
    assert found == {key["pk"]["S"] for key in keys}
    assert table.calls == [KEYS_MAX, KEYS_MAX, 1]
    assert pauses == []


def test_no_keys_are_no_call() -> None:
    table = SlowTable(left_out=1, times=0)
    assert read(table, []) == (set(), [])
    assert table.calls == []
