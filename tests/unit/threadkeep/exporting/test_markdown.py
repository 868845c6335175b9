"""Markdown is for people: what was said, by whom, after what."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.support.conversations import conversation, message
from tests.unit.threadkeep.exporting.conversations import FORMS, Story, damaged, parts, written
from threadkeep.domain.model import ConversationKey
from threadkeep.exporting import Entry

MARKDOWN = FORMS["markdown"]


def text(story: Story, entries: list[Entry] | None = None) -> str:
    return written(MARKDOWN, story.head, story.messages if entries is None else entries).decode()


def said(*values: dict[str, Any]) -> str:
    """A file of one message, behind its heading."""
    head = conversation()
    content = written(MARKDOWN, head, [message(ConversationKey("acme", head.id), parts(*values))]).decode()
    return content.partition("## User")[2].partition("\n\n")[2]


def test_a_conversation_begins_with_its_title_and_each_message_with_who_and_when() -> None:
    story = Story()
    found = [line for line in text(story).splitlines() if line.startswith("#") and "kein Titel" not in line]
    assert found == [
        '# Reise nach "Kyōto" 🎨',
        f"## User · {story.question.created_at}",
        f"## Assistant · model-1 · {story.first.created_at}",
        f"## Assistant · model-2 · {story.second.created_at}",
        f"## Tool · {story.tool.created_at}",
        f"## Assistant · {story.last.created_at}",
    ]


def test_it_begins_when_the_conversation_did_and_no_time_of_activity_contradicts_its_messages() -> None:
    story = Story()
    story.head = msgspec.structs.replace(story.head, active_at="2001-01-01T00:00:00.000Z")
    assert text(story).splitlines()[2] == f"Begun {story.head.created_at}"
    assert "2001" not in text(story)


def test_a_message_that_does_not_follow_the_one_above_says_what_it_follows() -> None:
    story = Story()
    notes = [line for line in text(story).splitlines() if line.startswith("*") and line.endswith("*")]
    assert notes == [f"*follows the message of {story.question.created_at}, stopped*", "*failed*"]


def test_a_second_root_says_that_it_begins_anew() -> None:
    story = Story()
    assert "*begins anew*" in text(story, [story.question, story.add(None, "user", {"type": "text", "text": "Neu"})])


def test_texts_stand_as_they_were_written_and_nothing_breaks_out_of_a_block() -> None:
    assert said({"type": "text", "text": "a\n\n```py\nb\n```"}) == "a\n\n```py\nb\n```\n\n"
    call = said({"type": "tool_call", "call_id": "c", "name": "f`x\ny", "arguments": "```\n# x"})
    assert call == "Tool call `` f`x y ``\n\n````json\n```\n# x\n````\n\n"
    assert said({"type": "tool_result", "output": "````"}) == "Tool result\n\n`````\n````\n`````\n\n"
    assert said({"type": "reasoning", "text": "a\nb"}) == "> *Reasoning*\n> \n> a\n> b\n\n"


def test_what_has_no_words_of_its_own_stands_as_json() -> None:
    for value in (
        {"type": "data", "x": [1.0]},
        {"type": "text", "text": 7},
        {"x": 1},
        {"type": "tool_result", "output": "o", "error": {"code": "x"}},
        {"type": "blob", "ref": "r"},
    ):
        assert said(value).startswith("```json\n{")


def test_nul_is_shown_as_markdowns_readers_show_it() -> None:
    assert said({"type": "text", "text": "a\0b"}) == "a\ufffdb\n\n"


def test_what_could_not_be_read_is_told() -> None:
    story = Story()
    found = text(story, [story.question, damaged(story.second, story.tool), story.last])
    assert f"*2 messages could not be read, from {story.second.created_at} to {story.tool.created_at}.*" in found
    assert f"*follows the message of {story.tool.created_at}, failed*" in found


def test_conversations_are_divided_and_one_without_a_title_has_a_heading() -> None:
    one = b"".join(MARKDOWN.conversation(conversation(title="  a\nb "), [], is_first=True)).decode()
    other = b"".join(MARKDOWN.conversation(conversation(), [], is_first=False)).decode()
    assert one.startswith("# a b\n\n")
    assert other.startswith("---\n\n# Conversation\n\n")
