"""The responder on a real Valkey, whose memory it loses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from valkey import Valkey

from local.state import Address
from tests.support.hot import client_of, hot_valkey
from tests.support.house import House, house
from threadkeep.domain.commands import AppendStream
from threadkeep.domain.json_values import encode
from threadkeep.ports import AnswerRequest
from threadkeep.responder.recorded import Recorded, read_answers
from threadkeep.responder.respond import Answering, Settings
from threadkeep.responder.transport import DirectTransport, ProduceCommand, producing
from threadkeep.usecases.services import Reply, Services
from threadkeep.usecases.tiers import Tiers

__all__ = ["house"]

ANSWER = read_answers()[1]


class Losing(DirectTransport):
    """Loses what the hot tier holds of everything, after some of its appends."""

    def __init__(self, services: Services, server: Any, lost_after: frozenset[int]) -> None:
        super().__init__(services, producing("acme", "ann"))
        self.appends = 0
        self.losses = 0
        self._server = server
        self._lost_after = lost_after

    def send(self, command: ProduceCommand) -> Reply:
        reply = super().send(command)
        if isinstance(command, AppendStream):
            self.appends += 1
            if self.appends in self._lost_after:
                self.losses += 1
                self._server.flushall()
        return reply


@pytest.fixture
def server(valkey_cluster: Address) -> Iterator[Any]:
    with Valkey(host=valkey_cluster.host, port=valkey_cluster.port) as client:
        yield client


@pytest.mark.parametrize("lost_after", [(), (1,), (5,), (2, 4, 6)], ids=str)
def test_an_answer_is_kept_whole_whatever_valkey_forgets(
    house: House, valkey_cluster: Address, server: Any, lost_after: tuple[int, ...]
) -> None:
    conversation = house.conversation()
    request = AnswerRequest(
        tenant="acme",
        user="ann",
        conversation=conversation,
        parent=house.message(conversation, text=ANSWER.question),
        reply=house.new_id(),
    )
    client = client_of(valkey_cluster, is_cluster=True)
    house.replace(hot=hot_valkey(client))
    transport = Losing(house.services, server, frozenset(lost_after))
    answering = Answering(
        tiers=Tiers.of(house.services), model=Recorded((ANSWER,), pieces_a_second=400), settings=Settings()
    )
    try:
        assert answering.respond(request, transport) == "complete"
    finally:
        client.close()
    stored = house.warm.read_message(house.key(conversation), request.reply)
    assert stored is not None
    assert stored.message.status == "complete"
    assert encode(stored.message.parts) == encode([{"type": "text", "text": ANSWER.answer}])
    assert transport.losses == len(lost_after)
