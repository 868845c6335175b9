"""What a row of `stacks.bulkheads` comes to in rights on ARNs, spelled out anew; and what a template gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from stacks import bulkheads
from stacks.bulkheads import Bulkhead
from tests.infra.synthesized import ACCOUNT, Deployment, resolve
from threadkeep import schema

Rights = dict[str, set[str]]
KNOW_NO_RESOURCE: Final = {
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
    "dynamodb:ListStreams",
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
}
"""Actions that may stand beside ``*``; those on network interfaces are denied to the function's own code again."""
TAKE: Final = {
    f"sqs:{action}"
    for action in ("ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl", "ReceiveMessage")
}
SEND_FAILED: Final = {"sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:SendMessage"}
WRITE_LOGS: Final = {"logs:CreateLogStream", "logs:PutLogEvents"}
READ_STREAM: Final = {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"}


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """A function as a template has it.

    Attributes:
        region, stack, name: where it is, and what it is called.
        resource: its properties.
    """

    region: str
    stack: str
    name: str
    resource: dict[str, Any]

    def statements(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Everything that its role's policies say."""
        role = self.resource["Role"]["Fn::GetAtt"][0]
        properties = deployment.resources("AWS::IAM::Role", self.stack)[role]["Properties"]
        assert not {"Policies", "ManagedPolicyArns", "PermissionsBoundary"} & set(properties)
        return [
            statement
            for policy in deployment.resources("AWS::IAM::Policy", self.stack).values()
            if {"Ref": role} in policy["Properties"]["Roles"]
            for statement in resolve(_followed(deployment, policy["Properties"]["PolicyDocument"]))["Statement"]
        ]


def _followed(deployment: Deployment, value: Any) -> Any:
    """Outputs of other stacks as the resources that they are of."""
    match value:
        case {"Fn::GetStackOutput": _}:
            return {"Fn::GetAtt": [deployment.referred(value), "Arn"]}
        case dict():
            return {name: _followed(deployment, inner) for name, inner in value.items()}
        case list():
            return [_followed(deployment, inner) for inner in value]
    return value


def functions(deployment: Deployment) -> Iterator[Function]:
    """All of them, ours and what serves deploying."""
    for stack in deployment.templates:
        region = stack.partition("-")[2] or deployment.settings.home_region
        for resource in deployment.resources("AWS::Lambda::Function", stack).values():
            handler = resource["Properties"]["Handler"]
            name = handler.split(".")[1] if handler.startswith("handlers.") else ""
            yield Function(region=region, stack=stack, name=name, resource=resource["Properties"])


def ours(deployment: Deployment) -> list[tuple[Function, Bulkhead]]:
    """The bulkheads, each with its row."""
    settings = deployment.settings
    rows = {
        row.name: row
        for row in (
            *bulkheads.deployed(has_model=settings.model is not None, network=settings.network),
            *bulkheads.ARCHIVE,
        )
    }
    return [(function, rows[function.name]) for function in functions(deployment) if function.name]


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def rights_of(statements: list[dict[str, Any]]) -> Rights:
    """Allowed actions by resource."""
    rights: Rights = {}
    for statement in statements:
        for resource in listed(statement["Resource"]) if statement["Effect"] == "Allow" else ():
            rights.setdefault(resource, set()).update(listed(statement["Action"]))
    return rights


def allowed(deployment: Deployment, function: Function, row: Bulkhead) -> Rights:
    """What the row comes to, in ARNs."""
    rights: Rights = {}
    for resource, actions in (
        *_in_the_table(deployment, function, row),
        *_in_buckets(deployment, function, row),
        *_in_the_cache(deployment, function, row),
        *_towards_others(deployment, function, row),
        *_in_queues(deployment, function, row),
        *_always(function),
    ):
        if actions:
            rights.setdefault(resource, set()).update(actions)
    return rights


_Given = Iterator[tuple[str, Iterable[str]]]
_READ: Final = {"s3:GetObject"}


def _name(deployment: Deployment) -> str:
    return f"threadkeep-{deployment.settings.stage}"


def _account(deployment: Deployment) -> str:
    return ACCOUNT if deployment.settings.target == "aws" else "000000000000"


def _arn(deployment: Deployment, function: Function, service: str, resource: str) -> str:
    return f"arn:aws:{service}:{function.region}:{_account(deployment)}:{resource}"


def _in_the_table(deployment: Deployment, function: Function, row: Bulkhead) -> _Given:
    table = _arn(deployment, function, "dynamodb", f"table/{_name(deployment)}")
    yield table, row.table + row.own_exports
    yield table, row.beside_others if len(deployment.settings.regions) > 1 else ()
    for region in deployment.settings.regions:
        if region != function.region:
            there = f"arn:aws:dynamodb:{region}:{_account(deployment)}:table/{_name(deployment)}"
            yield there, row.other_tables
    yield f"{table}/index/{schema.OWNER_INDEX}", row.owner_index
    yield f"{table}/index/{schema.DUE_INDEX}", row.due_index
    if row is bulkheads.ANNOUNCER:
        (stream,) = deployment.resources("Custom::LatestTableStream", function.stack)
        yield f"<{stream}.StreamArn>", READ_STREAM
        yield "*", {"dynamodb:ListStreams"}


def _in_buckets(deployment: Deployment, function: Function, row: Bulkhead) -> _Given:
    archives = "s3:PutObject" in row.segments
    for region in deployment.settings.regions:
        bucket, is_own = f"arn:aws:s3:::{_name(deployment)}-{_account(deployment)}-{region}", region == function.region
        yield f"{bucket}/{schema.BODIES_PREFIX}*", set(row.objects) if is_own or archives else set(row.objects) & _READ
        yield f"{bucket}/{schema.SEGMENTS_PREFIX}*", row.segments
        yield f"{bucket}/{schema.BLOBS_PREFIX}*", set(row.blobs) if is_own else set(row.blobs) & _READ
        yield f"{bucket}/{schema.UPLOADS_PREFIX}*", row.uploads if is_own else ()
        yield f"{bucket}/{schema.EXPORTS_PREFIX}*", set(row.exports) if is_own else set(row.exports) & _READ
        if _READ & {*row.objects, *row.segments, *row.blobs, *row.uploads, *row.exports}:
            yield bucket, {"s3:ListBucket"}  # else S3 says of what is missing that it is forbidden
        if row.sweeps and is_own:
            yield bucket, {"s3:ListBucketVersions"}
            for kind in (schema.BODIES_PREFIX, schema.BLOBS_PREFIX, schema.SEGMENTS_PREFIX, schema.UPLOADS_PREFIX):
                yield f"{bucket}/{kind}*", {"s3:DeleteObject", "s3:DeleteObjectVersion"}


def _in_the_cache(deployment: Deployment, function: Function, row: Bulkhead) -> _Given:
    if row.hot and deployment.settings.hot_address(function.region) is None:
        name = _name(deployment)
        cache = f"serverlesscache:{name}-{deployment.settings.network}"
        yield _arn(deployment, function, "elasticache", cache), {"elasticache:Connect"}
        yield _arn(deployment, function, "elasticache", f"user:{name}-{row.name}"), {"elasticache:Connect"}


def _towards_others(deployment: Deployment, function: Function, row: Bulkhead) -> _Given:
    model = deployment.settings.model
    if row.pushes:
        (api,) = deployment.resources("AWS::ApiGatewayV2::Api", function.stack)
        connections = f"<{api}>/{deployment.settings.stage}/POST/@connections/*"
        yield _arn(deployment, function, "execute-api", connections), {"execute-api:ManageConnections"}
    if row.invokes and model is not None:
        other = f"function:{_name(deployment)}-{row.invokes}"
        yield _arn(deployment, function, "lambda", other), {"lambda:InvokeFunction"}
    if row.model and model is not None and model.api_key_secret:
        secret = f"secret:{model.api_key_secret}-??????"
        yield _arn(deployment, function, "secretsmanager", secret), {"secretsmanager:GetSecretValue"}


def _in_queues(deployment: Deployment, function: Function, row: Bulkhead) -> _Given:
    queues = _queue_arns(deployment, function)
    for kind in row.sends:
        yield queues[kind], {"sqs:SendMessage"}
    if row.takes:
        yield queues[row.takes], TAKE
    if row.model:
        yield queues["failed-answers"], SEND_FAILED
    if row is bulkheads.ANNOUNCER:
        yield queues["failed-changes"], SEND_FAILED


def _queue_arns(deployment: Deployment, function: Function) -> dict[str, str]:
    """The region's queues by kind."""
    return {
        queue["Properties"]["QueueName"].removeprefix(f"{_name(deployment)}-"): f"<{logical_id}.Arn>"
        for stack in (f"Realtime-{function.region}", "Archive")
        for logical_id, queue in deployment.resources("AWS::SQS::Queue", stack).items()
    }


def _always(function: Function) -> _Given:
    yield f"<{function.resource['LoggingConfig']['LogGroup']['Ref']}.Arn>", WRITE_LOGS
    yield "*", {"xray:PutTelemetryRecords", "xray:PutTraceSegments"}
    if "VpcConfig" in function.resource:
        yield "*", {action for action in KNOW_NO_RESOURCE if action.startswith("ec2:")}
