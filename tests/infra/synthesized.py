"""A synthesized deployment, as the tests look at it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from stacks.app import new_app, synthesize
from stacks.bundle import Bundle
from stacks.compose import compose
from stacks.settings import Settings
from threadkeep.config import Config

ACCOUNT = "111122223333"

Resource = dict[str, Any]


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """Templates by the stack's own name, without the stage: ``State``, ``Realtime-us-east-1``."""

    settings: Settings
    templates: dict[str, dict[str, Any]]
    paths: list[Path]
    dependencies: dict[str, set[str]]
    protected: set[str]

    @classmethod
    def from_settings(cls, settings: Settings, *, bundle: Bundle, outdir: Path) -> Deployment:
        """Synthesize it as `app.py` does."""
        app = new_app(settings.target, outdir=outdir)
        compose(app, settings=settings, bundle=bundle)
        paths = synthesize(app)
        (manifest,) = outdir.glob("assembly-*/manifest.json")
        artifacts = json.loads(manifest.read_text(encoding="utf-8"))["artifacts"]
        prefix = f"Threadkeep-{settings.stage}-"
        names = {
            key: artifact["properties"].get("stackName", key).removeprefix(prefix)
            for key, artifact in artifacts.items()
            if artifact["type"] == "aws:cloudformation:stack"
        }
        return cls(
            settings=settings,
            templates={
                name: json.loads((manifest.parent / artifacts[key]["properties"]["templateFile"]).read_text("utf-8"))
                for key, name in names.items()
            },
            paths=paths,
            dependencies={
                name: {names[other] for other in artifacts[key].get("dependencies", []) if other in names}
                for key, name in names.items()
            },
            protected={
                name for key, name in names.items() if artifacts[key]["properties"].get("terminationProtection")
            },
        )

    def resources(self, kind: str, stack: str | None = None) -> dict[str, Resource]:
        """All resources of a type by their logical id, of one stack or of all."""
        templates = self.templates if stack is None else {stack: self.templates[stack]}
        return {
            f"{name}/{logical_id}" if stack is None else logical_id: resource
            for name, template in templates.items()
            for logical_id, resource in template["Resources"].items()
            if resource["Type"] == kind
        }

    def only(self, kind: str, stack: str) -> Resource:
        """The one resource of a type in a stack."""
        (resource,) = self.resources(kind, stack).values()
        return resource

    @property
    def types(self) -> set[str]:
        """All types that there are."""
        return {one["Type"] for template in self.templates.values() for one in template["Resources"].values()}

    def function(self, region: str, name: str) -> Resource:
        """A region's function of a bulkhead."""
        stack = f"Realtime-{region}"
        return self.resources("AWS::Lambda::Function", stack)[self.function_id(stack, name)]

    def function_id(self, stack: str, name: str) -> str:
        """The logical id of a stack's function, by its bulkhead's name or its module's."""
        (found,) = [
            logical_id
            for logical_id, function in self.resources("AWS::Lambda::Function", stack).items()
            if function["Properties"]["Handler"] in (f"handlers.{name}.handler", f"{name}.handler")
        ]
        return found

    def config(self, region: str, name: str) -> Config:
        """What it is told."""
        return Config.from_environment(resolve(self.function(region, name)["Properties"]["Environment"]["Variables"]))

    def statements(self, region: str, name: str) -> list[dict[str, Any]]:
        """What its role's policies say."""
        return self.statements_of(f"Realtime-{region}", name)

    def statements_of(self, stack: str, name: str) -> list[dict[str, Any]]:
        """What the policies of the role of a stack's function say."""
        function = self.resources("AWS::Lambda::Function", stack)[self.function_id(stack, name)]
        role = function["Properties"]["Role"]["Fn::GetAtt"][0]
        return [
            statement
            for policy in self.resources("AWS::IAM::Policy", stack).values()
            if {"Ref": role} in policy["Properties"]["Roles"]
            for statement in resolve(policy["Properties"]["PolicyDocument"])["Statement"]
        ]

    def rights(self, region: str, name: str) -> dict[str, set[str]]:
        """What it is allowed, by resource."""
        found: dict[str, set[str]] = {}
        for statement in self.statements(region, name):
            if statement["Effect"] == "Allow":
                for resource in _listed(statement["Resource"]):
                    found.setdefault(resource, set()).update(_listed(statement["Action"]))
        return found

    def referred(self, value: Any) -> str:
        """The resource that a reference to another stack's output ends at."""
        told = value["Fn::GetStackOutput"]
        stack = told["StackName"].removeprefix(f"Threadkeep-{self.settings.stage}-")
        end = self.templates[stack]["Outputs"][told["OutputName"]]["Value"]
        return str(end["Ref"] if "Ref" in end else end["Fn::GetAtt"][0])


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def resolve(value: Any) -> Any:
    """A template's value as CloudFormation would have it; references become ``<their logical id>``."""
    if isinstance(value, list):
        return [resolve(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and (name := next(iter(value))).startswith(("Ref", "Fn::")):
        return _function(name, value[name])
    return {key: resolve(item) for key, item in value.items()}


def _function(name: str, argument: Any) -> str:
    match name, argument:
        case "Ref", reference:
            return {"AWS::AccountId": ACCOUNT, "AWS::URLSuffix": "amazonaws.com"}.get(reference, f"<{reference}>")
        case "Fn::GetAtt", [logical_id, attribute]:
            return f"<{logical_id}.{attribute}>"
        case "Fn::GetStackOutput", {"StackName": stack, "Region": region}:
            return f"<{stack} in {region}>"
        case "Fn::Join", [separator, parts]:
            return str(separator).join(resolve(part) for part in parts)
        case "Fn::Sub", str() as text:
            return text.replace("${AWS::AccountId}", ACCOUNT)
    raise AssertionError(f"these tests do not know {name} of {argument}")
