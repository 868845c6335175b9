"""A segment is a file that others read without us: here DuckDB, as it lies in the bucket."""

from __future__ import annotations

import json
import re
from datetime import UTC
from pathlib import Path
from typing import Any

import duckdb

from tests.support.conversations import NOW_MS, awkward_object, message, noise, text_parts
from threadkeep.domain import ids, times
from threadkeep.domain.bounds import FRAME_BYTES_MAX
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.stores.cold_memory import ColdMemory

RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook.md"
REGION = "eu-central-1"
KEY = ConversationKey("acme", ids.mint(NOW_MS))


def archived(folder: Path, said: list[StoredMessage]) -> str:
    """Archive them, and lay what is in the bucket out as files; a pattern that finds the segments."""
    cold = ColdMemory(REGION)
    manifest = cold.write(KEY, said, now_ms=NOW_MS)
    assert len(manifest.members) > 1
    for object_key, content in cold.buckets[REGION].objects.items():
        path = folder / object_key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return str(folder / "segments" / "*" / "*" / "*.jsonl.zst")


def ask(question: str, pattern: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as database:
        return database.execute(question, [pattern]).fetchall()


def test_duckdb_reads_all_members_of_a_segment_as_one_file(tmp_path: Path) -> None:
    said: list[StoredMessage] = []
    for number in range(350):
        parent = said[-1].message.id if said else None
        role = ("user", "assistant")[number % 2]
        told = message(KEY, text_parts(f"message {number}"), now_ms=NOW_MS + number, parent=parent, role=role)
        said.append(StoredMessage(told, number))
    pattern = archived(tmp_path, said)
    rows = ask("SELECT id::VARCHAR, parent::VARCHAR, role, epoch, parts[1].text FROM read_json(?) ORDER BY id", pattern)
    assert rows == [
        (stored.message.id, stored.message.parent, stored.message.role, stored.epoch, f"message {number}")
        for number, stored in enumerate(said)
    ]
    assert ask("SELECT role, count(*) FROM read_json(?) GROUP BY role ORDER BY role", pattern) == [
        ("assistant", 175),
        ("user", 175),
    ]


def test_an_id_tells_duckdb_when_a_message_was_created(tmp_path: Path) -> None:
    said = [StoredMessage(message(KEY, now_ms=NOW_MS + 1_001 * number)) for number in range(150)]
    pattern = archived(tmp_path, said)
    (question,) = re.findall(r"SELECT epoch_ms\(.*?\) AS created_at", RUNBOOK.read_text("utf-8"))
    rows = ask(f"{question} FROM read_json(?) ORDER BY id", pattern)
    assert [times.to_rfc3339(round(at.replace(tzinfo=UTC).timestamp() * 1_000)) for (at,) in rows] == [
        stored.message.created_at for stored in said
    ]


def test_duckdb_reads_awkward_json_and_long_messages_as_lines_of_their_own(tmp_path: Path) -> None:
    awkward = awkward_object()
    assert b"\n" in encode(awkward)
    said = [
        StoredMessage(
            message(
                KEY,
                text_parts(noise(FRAME_BYTES_MAX + 1)) if number == 60 else (awkward,),
                now_ms=NOW_MS + number,
                metadata=awkward,
            )
        )
        for number in range(120)
    ]
    pattern = archived(tmp_path, said)
    columns = "{id: 'VARCHAR', parts: 'JSON', metadata: 'JSON', bytes: 'BIGINT', body: 'VARCHAR'}"
    question = f"SELECT id, parts, metadata, bytes, body FROM read_json(?, columns={columns}) ORDER BY id"  # noqa: S608
    rows = ask(question, pattern)
    assert [row[0] for row in rows] == [stored.message.id for stored in said]
    meant = json.loads(encode(awkward))
    for number, (_, parts, metadata, size, body) in enumerate(rows):
        assert json.loads(metadata) == meant
        if number == 60:
            assert (parts, size) == (None, len(encode(said[60].message.parts)))
            assert (tmp_path / body).is_file()
        else:
            assert (json.loads(parts), size, body) == ([meant], None, None)
