"""Every queue takes a job once, whole, and not before its time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import msgspec
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from threadkeep.domain.bounds import QUEUE_DELAY_S_MAX
from threadkeep.domain.errors import WarmThrottled
from threadkeep.domain.model import ConversationKey
from threadkeep.ports import DueEntry, JobQueue
from threadkeep.stores import aws_config
from threadkeep.stores.queue_memory import QueueMemory
from threadkeep.stores.queue_sqs import QueueSQS

REGION = "us-east-1"
JOB = DueEntry(ConversationKey("a#b ünï 🙂", "01a0c450-6c00-7745-89d2-49210750a2df"), "2026-11-29T12:00:00.000Z")


class Subject(msgspec.Struct, frozen=True):
    """A queue, and what lies in it with each job's delay in seconds."""

    queue: JobQueue
    lying: Callable[[], list[tuple[bytes, int]]]


@pytest.fixture(params=["memory", "sqs"])
def subject(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Subject]:
    if request.param == "memory":
        memory = QueueMemory()
        yield Subject(memory, lambda: memory.jobs)
        return
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        client = boto3.client("sqs", region_name=REGION, config=aws_config.STORE)
        sent: list[tuple[bytes, int]] = []

        def note(params: dict[str, Any], **_event: Any) -> None:
            sent.append((params["MessageBody"].encode(), params["DelaySeconds"]))

        client.meta.events.register("provide-client-params.sqs.SendMessage", note)
        url = client.create_queue(QueueName="jobs")["QueueUrl"]
        yield Subject(QueueSQS(client, url), lambda: sent)
        counted = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        there, delayed = counted["ApproximateNumberOfMessages"], counted["ApproximateNumberOfMessagesDelayed"]
        assert int(there) + int(delayed) == len(sent)


def test_a_job_lies_there_whole_and_at_once(subject: Subject) -> None:
    subject.queue.send(JOB)
    ((body, delay_s),) = subject.lying()
    assert (msgspec.json.decode(body, type=DueEntry), delay_s) == (JOB, 0)


def test_the_same_job_lies_there_twice(subject: Subject) -> None:
    for _ in range(2):
        subject.queue.send(JOB)
    assert [msgspec.json.decode(body, type=DueEntry) for body, _ in subject.lying()] == [JOB, JOB]


def test_a_job_may_wait_for_a_quarter_of_an_hour(subject: Subject) -> None:
    subject.queue.send(JOB, delay_s=QUEUE_DELAY_S_MAX)
    assert [delay_s for _, delay_s in subject.lying()] == [15 * 60]


@pytest.mark.parametrize("delay_s", [-1, QUEUE_DELAY_S_MAX + 1])
def test_no_job_may_wait_longer_or_be_early(subject: Subject, delay_s: int) -> None:
    with pytest.raises(ValueError, match="delayed"):
        subject.queue.send(JOB, delay_s=delay_s)
    assert subject.lying() == []


def test_a_queue_that_throttles_is_not_available_just_now() -> None:
    client: Any = boto3.client("sqs", region_name=REGION, aws_access_key_id="a", aws_secret_access_key="b")
    with Stubber(client) as stubber:
        stubber.add_client_error("send_message", service_error_code="RequestThrottled", http_status_code=403)
        with pytest.raises(WarmThrottled):
            QueueSQS(client, "https://sqs.us-east-1.amazonaws.com/000000000000/jobs").send(JOB)


def test_a_job_that_is_put_back_is_given_again_after_that_time_and_not_after_the_queues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        client = boto3.client("sqs", region_name=REGION, config=aws_config.STORE)
        url = client.create_queue(QueueName="jobs", Attributes={"VisibilityTimeout": "600"})["QueueUrl"]
        queue = QueueSQS(client, url)
        queue.send(JOB)
        (taken,) = client.receive_message(QueueUrl=url)["Messages"]
        assert "Messages" not in client.receive_message(QueueUrl=url)
        queue.put_back(taken["ReceiptHandle"], delay_s=0)
        (again,) = client.receive_message(QueueUrl=url, AttributeNames=["ApproximateReceiveCount"])["Messages"]
        assert again["Body"] == taken["Body"]
        assert again["Attributes"]["ApproximateReceiveCount"] == "2"
