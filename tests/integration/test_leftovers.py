"""The search for keys that are left for ever is not blind."""

from __future__ import annotations

from typing import Any

from valkey import Valkey

from local.state import Address
from tests.support.hot import Talk, client_of, hot_valkey
from tests.support.leftovers import keys_left_for_ever, keys_of_nobody
from threadkeep.stores.hot_keys import HotKeys


def test_a_stream_is_left_for_ever_only_if_no_index_names_it(valkey_cluster: Address) -> None:
    client = client_of(valkey_cluster, is_cluster=True)
    talk = Talk(hot_valkey(client))
    state = HotKeys(talk.key).state(talk.stream)
    talk.written(b"[1]")
    assert state in keys_left_for_ever(valkey_cluster)
    talk.file()
    assert state not in keys_left_for_ever(valkey_cluster)
    client.close()


def test_any_other_key_without_an_end_is_found(valkey_cluster: Address) -> None:
    with Valkey(host=valkey_cluster.host, port=valkey_cluster.port) as untyped:
        server: Any = untyped
        server.set("planted", "x")
        assert "planted" in keys_left_for_ever(valkey_cluster)
        assert "planted" in keys_of_nobody(valkey_cluster)
        server.delete("planted")
        assert "planted" not in keys_left_for_ever(valkey_cluster)
