"""A synthesized network, as the tests look at it."""

from __future__ import annotations

from typing import Any

from tests.infra.synthesized import Resource

REGIONS = ("eu-central-1", "us-east-1")
INSIDE = {"connection", "send", "stream", "history", "sweeper", "herald", "produce"}
"""The functions that talk to Valkey."""


class Net:
    """A region's network."""

    def __init__(self, template: dict[str, Any]) -> None:
        self._resources: dict[str, Resource] = template["Resources"]
        self.outputs: dict[str, Any] = template.get("Outputs", {})

    def all(self, kind: str) -> dict[str, dict[str, Any]]:
        """Properties of all resources of a type."""
        return {name: one["Properties"] for name, one in self._resources.items() if one["Type"] == kind}

    @property
    def types(self) -> set[str]:
        return {one["Type"] for one in self._resources.values()}

    def group(self, description: str) -> str:
        """The security group of that description."""
        groups = self.all("AWS::EC2::SecurityGroup")
        (name,) = [name for name, group in groups.items() if group["GroupDescription"] == description]
        return name

    @property
    def subnets(self) -> list[str]:
        return [*self.all("AWS::EC2::Subnet")]
