"""The announcer: the one consumer of the table's stream in a region.

Its mapping gives it new items; where there are other regions, changed heads, messages and registers of streams too.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from threadkeep import container, telemetry
from threadkeep.ports import HeadReplaced, Replaced
from threadkeep.stores.table_stream import read_landed, read_news, read_replaced
from threadkeep.usecases.announcing import hand_on, judge, put_back, tell


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Hand on what each record asks for. From the first that fails on they all come again, as a stream has it.

    Asking for the tombstones fails for the whole batch, which then comes again as well.
    """
    services = container.services()
    records = event["Records"]
    telemetry.count("ChangesRead", len(records))
    jobs = judge(services, [read_landed(record) for record in records])
    failed = []
    handed_on = Counter[str]()
    told = 0
    for record, job in zip(records, jobs, strict=True):
        news = read_news(record, services.region) if job is None else ()
        replaced = read_replaced(record)
        try:
            if job is not None:
                hand_on(services, job)
            if replaced is not None and put_back(services, replaced):
                _note_put_back(replaced)
            tell(services, news, again=replaced is not None)
        except Exception as error:  # noqa: BLE001 -- those before it are done
            telemetry.note_fault("A change could not be handed on; it comes again", error)
            failed = [{"itemIdentifier": record["dynamodb"]["SequenceNumber"]}]
            break
        told += len(news)
        if job is not None:
            handed_on[job.stage] += 1
    telemetry.count("ErasuresBegun", handed_on["first"])
    telemetry.count("LandedLate", handed_on["late"])
    telemetry.count("NewsHandedOn", told)
    return {"batchItemFailures": failed}


def _note_put_back(replaced: Replaced) -> None:
    """For somebody to look at: two regions had not heard of each other, and one of two users was told too much."""
    conversation = replaced.key.conversation
    if isinstance(replaced, HeadReplaced):
        telemetry.count("HeadsPutBack")
        telemetry.note(
            "Two users had one conversation's id; the earlier has it", conversation=replaced.key.conversation
        )
    else:
        telemetry.count("MessagesPutBack")
        telemetry.note(
            "A message was put back in place of a lesser one", conversation=conversation, message=replaced.message
        )


handler = telemetry.instrumented(_handle)
