"""The search for what must not be logged is not blind: each way out is tried with a planted leak."""

from __future__ import annotations

import json
import logging

import pytest
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_xray_sdk.core.emitters.udp_emitter import UDPEmitter
from aws_xray_sdk.core.models.segment import Segment

from tests.support.canaries import Canaries, listening

PROMPT = 'my "diagnosis" is\nunknown'
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl"


@pytest.fixture
def canaries() -> Canaries:
    canaries = Canaries()
    body = json.dumps({"action": "message.create", "parts": [{"type": "text", "text": PROMPT}], "ref": "a-ref-of-mine"})
    canaries.note_event({"body": body})
    canaries.note_event({"headers": {"Sec-WebSocket-Protocol": f"threadkeep.v1, bearer.{TOKEN}"}})
    return canaries


def test_a_prompt_in_a_log_line_is_found(canaries: Canaries) -> None:
    with listening(canaries):
        Logger(service="leaky").info("refused", why=f"cannot store {PROMPT}")
    assert len(canaries.found()) == 1


def test_a_token_in_a_librarys_warning_is_found(canaries: Canaries) -> None:
    log = logging.getLogger("a.library")
    handler = logging.StreamHandler()
    log.addHandler(handler)
    with listening(canaries):
        log.warning("GET /?token=%s", TOKEN)
    log.removeHandler(handler)
    assert canaries.found()


def test_a_prompt_in_a_metrics_dimension_is_found(canaries: Canaries) -> None:
    metrics = Metrics(namespace="Leaky", service="leaky")
    with listening(canaries):
        metrics.add_dimension(name="title", value=PROMPT)
        metrics.add_metric(name="Requests", unit=MetricUnit.Count, value=1)
        metrics.flush_metrics()
    assert canaries.found()


def test_a_prompt_in_a_trace_is_found(canaries: Canaries) -> None:
    segment = Segment("leaky")
    segment.put_metadata("prompt", PROMPT)
    segment.close()
    emitter = UDPEmitter()
    with listening(canaries):
        emitter.send_entity(segment)
    emitter._socket.close()
    assert canaries.found()


def test_what_is_no_secret_may_be_logged(canaries: Canaries) -> None:
    with listening(canaries):
        Logger(service="tidy").info("refused", action="message.create", ref="a-ref-of-mine")
    assert canaries.heard
    assert not canaries.found()
