"""What a viewer was told, as tests look at it."""

from __future__ import annotations

from threadkeep_client import Update, text_of


class Told:
    """The updates that came, in their order."""

    def __init__(self) -> None:
        self.updates: list[Update] = []

    @property
    def kinds(self) -> list[str]:
        """What was told, with runs of deltas as one."""
        kinds = [update.kind for update in self.updates]
        return [kind for place, kind in enumerate(kinds) if kind != "delta" or kinds[place - 1] != "delta"]

    def streamed(self) -> str:
        """The text as the ops tell it, from the last restart on."""
        text = ""
        for update in self.updates:
            text = "" if update.kind == "restarted" else text
            text += "".join(op[2] for op in update.ops if op[0] == "text")
        return text

    def settled(self) -> str:
        """The text of the message that came last."""
        message = self.updates[-1].message
        assert message is not None
        return text_of(message["parts"])
