"""An answer in one of two regions, or begun anew in the other."""

from __future__ import annotations

from typing import Any

from tests.support.house import PHONE, WORKER, Frame, House
from tests.support.regions import Regions


class RegionalAnswer:
    """A conversation with a question that both regions know; the answer may be written in either."""

    def __init__(self, regions: Regions) -> None:
        self.regions = regions
        self.conversation = regions.eu.conversation()
        self.question = regions.eu.message(self.conversation)
        regions.settle()
        self.stream = regions.eu.new_id()

    def open(self, house: House, **fields: Any) -> Frame:
        """Begin it, or take it over."""
        place = {"message": self.stream, "parent": self.question, "role": "assistant", "producer": "run-1"}
        opened: Frame = house.ok(WORKER, "stream.open", conversation=self.conversation, **place, **fields)
        return opened

    def append(self, house: House, opened: Frame, text: str) -> None:
        """Its one piece."""
        place = {"stream": self.stream, "epoch": opened["epoch"], "offset": 0, "ops": [["text", 0, text]]}
        house.ok(WORKER, "stream.append", conversation=self.conversation, **place)

    def close(self, house: House, opened: Frame) -> None:
        """Complete, behind that piece."""
        place = {"stream": self.stream, "epoch": opened["epoch"], "offset": 1, "status": "complete"}
        house.ok(WORKER, "stream.close", conversation=self.conversation, **place)

    def stored(self, house: House) -> Frame | None:
        """The answer, where the region's own table has it."""
        page = house.ok(PHONE, "message.list", conversation=self.conversation, leaf="all")["messages"]
        return next((message for message in page if message["id"] == self.stream), None)
