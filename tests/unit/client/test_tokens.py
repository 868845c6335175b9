from __future__ import annotations

import jwt
import pytest

from threadkeep_client.errors import ConnectionFailedError
from threadkeep_client.tokens import TokenKeeper, expires_at


def token(exp: float) -> str:
    return jwt.encode({"exp": int(exp)}, "k" * 32, algorithm="HS256")


@pytest.mark.parametrize("opaque", ["", "opaque", "a.b.c", "a.e30.c", "a.eyJleHAiOiJ4In0.c", "a.W10.c"])
def test_a_token_without_an_end_has_none(opaque: str) -> None:
    assert expires_at(opaque) is None


async def test_a_token_is_renewed_a_minute_before_its_end() -> None:
    now = 1_000.0
    given = [token(now + 300), token(now + 900)]
    keeper = TokenKeeper(lambda: given.pop(0), lambda: now)
    first = await keeper.get()
    now += 239
    assert await keeper.get() == first
    now += 2
    assert await keeper.get() != first
    assert given == []


async def test_a_refused_token_is_asked_for_anew_from_a_function_only() -> None:
    given = iter(["a", "b"])

    async def source() -> str:
        return next(given)

    keeper = TokenKeeper(source)
    assert [await keeper.get(), await keeper.get()] == ["a", "a"]
    keeper.refuse()
    assert await keeper.get() == "b"
    assert keeper.renewable
    fixed = TokenKeeper("t")
    fixed.refuse()
    assert await fixed.get() == "t"
    assert not fixed.renewable


async def test_a_source_that_raises_is_a_failed_connection_with_its_cause() -> None:
    def source() -> str:
        raise KeyError("secret")

    with pytest.raises(ConnectionFailedError, match=r"raised KeyError$") as failed:
        await TokenKeeper(source).get()
    assert isinstance(failed.value.__cause__, KeyError)
