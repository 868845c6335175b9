"""Each bulkhead: its own role with no right too many, and the environment that its `Config` reads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stacks import bulkheads
from tests.infra.synthesized import ACCOUNT, Deployment, resolve
from threadkeep import schema
from threadkeep.config import Config, HotConfig, LimitsConfig, ModelConfig, Terms

REGIONS = ("eu-central-1", "us-east-1")
NAMES = (*schema.ROUTES, "authorizer", "sweeper", "responder", "announcer", "eraser", "herald")
TABLE = "threadkeep-prod"
BUCKETS = {region: f"threadkeep-prod-{ACCOUNT}-{region}" for region in REGIONS}
READ = {"dynamodb:GetItem", "dynamodb:Query"}
WRITE = {"dynamodb:PutItem", "dynamodb:UpdateItem"}
TAKE = {
    f"sqs:{action}"
    for action in ("ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl", "ReceiveMessage")
}
TERMS = Terms(regions=REGIONS, pitr_days=21, second_pass_ms=1_800_000)


class Function(msgspec.Struct, frozen=True):
    region: str
    name: str
    api: str
    queues: dict[str, str]
    properties: dict[str, Any]
    statements: list[dict[str, Any]]

    @property
    def rights(self) -> dict[str, set[str]]:
        """Allowed actions by resource."""
        rights: dict[str, set[str]] = {}
        for statement in self.statements:
            assert statement["Effect"] == "Allow"
            assert not {"NotAction", "NotResource"} & set(statement)
            for resource in listed(statement["Resource"]):
                rights.setdefault(resource, set()).update(listed(statement["Action"]))
        return rights

    @property
    def arn_of_table(self) -> str:
        return f"arn:aws:dynamodb:{self.region}:{ACCOUNT}:table/{TABLE}"

    @property
    def bucket(self) -> str:
        return BUCKETS[self.region]

    def arn_of_queue(self, name: str) -> str:
        return f"{self.queues[name]}.Arn>"

    @property
    def arn_of_log(self) -> str:
        return f"<{self.properties['LoggingConfig']['LogGroup'].strip('<>')}.Arn>"


@pytest.fixture(params=[(region, name) for region in REGIONS for name in NAMES], ids="-".join)
def function(request: pytest.FixtureRequest, aws: Deployment) -> Function:
    region, name = request.param
    stack = f"Realtime-{region}"
    (properties,) = [
        resolve(resource["Properties"])
        for resource in aws.resources("AWS::Lambda::Function", stack).values()
        if resource["Properties"]["Handler"] == f"handlers.{name}.handler"
    ]
    role = properties["Role"].strip("<>").removesuffix(".Arn")
    statements = [
        statement
        for policy in aws.resources("AWS::IAM::Policy", stack).values()
        if {"Ref": role} in policy["Properties"]["Roles"]
        for statement in resolve(policy["Properties"]["PolicyDocument"])["Statement"]
    ]
    (api,) = aws.resources("AWS::ApiGatewayV2::Api", stack)
    queues = {
        queue["Properties"]["QueueName"].removeprefix("threadkeep-prod-"): f"<{logical_id}"
        for logical_id, queue in aws.resources("AWS::SQS::Queue", stack).items()
    }
    return Function(region, name, f"<{api}>", queues, properties, statements)


def test_it_runs_on_lambdas_current_python_on_arm(function: Function) -> None:
    properties = function.properties
    assert (properties["Runtime"], properties["Architectures"]) == ("python3.14", ["arm64"])
    longer_s = {"sweeper": 60, "responder": 900, "announcer": 30, "eraser": 120, "herald": 15}
    assert properties["Timeout"] == longer_s.get(function.name, 10)
    assert properties["MemorySize"] == 256
    assert properties["TracingConfig"] == {"Mode": "Active"}
    assert properties["FunctionName"] == f"threadkeep-prod-{function.name}"
    assert "VpcConfig" not in properties


def test_its_logs_do_not_stay_for_ever(aws: Deployment, function: Function) -> None:
    group = function.properties["LoggingConfig"]["LogGroup"].strip("<>")
    groups = aws.resources("AWS::Logs::LogGroup", f"Realtime-{function.region}")
    assert groups[group]["Properties"]["RetentionInDays"] == 30


def test_no_two_functions_share_a_role_and_no_role_has_a_managed_policy(aws: Deployment) -> None:
    for region in REGIONS:
        functions = aws.resources("AWS::Lambda::Function", f"Realtime-{region}").values()
        roles = [function["Properties"]["Role"]["Fn::GetAtt"][0] for function in functions]
        assert len(set(roles)) == len(roles) == len(NAMES) + 2  # the exporter, and what looks the table's stream up
        for role in roles:
            properties = aws.resources("AWS::IAM::Role", f"Realtime-{region}")[role]["Properties"]
            assert not {"ManagedPolicyArns", "Policies"} & set(properties)


def test_its_rights_are_these_and_no_more(function: Function) -> None:
    table, index = function.arn_of_table, f"{function.arn_of_table}/index/{schema.OWNER_INDEX}"
    own, *others = sorted(BUCKETS.values(), key=lambda bucket: bucket != function.bucket)
    get, get_and_put = {"s3:GetObject"}, {"s3:GetObject", "s3:PutObject"}
    bodies, blobs, downloads = (
        {f"arn:aws:s3:::{own}/{kind}/*": at_home} | {f"arn:aws:s3:::{other}/{kind}/*": get for other in others}
        for kind, at_home in (("bodies", get_and_put), ("blobs", get_and_put), ("blobs", get))
    )
    segments = {f"arn:aws:s3:::{bucket}/segments/*": get for bucket in BUCKETS.values()}
    uploads = f"arn:aws:s3:::{own}/uploads/*"
    missing = {
        f"arn:aws:s3:::{bucket}": {"s3:ListBucket"} for bucket in BUCKETS.values()
    }  # else S3 hides what is not there
    connections = f"arn:aws:execute-api:{function.region}:{ACCOUNT}:{function.api}/prod/POST/@connections/*"
    hot = f"arn:aws:elasticache:{function.region}:{ACCOUNT}:"
    connect = {"elasticache:Connect"}
    login: dict[str, set[str]] = {
        f"{hot}serverlesscache:threadkeep-prod-public": connect,
        f"{hot}user:threadkeep-prod-{function.name}": connect,
    }
    push = {connections: {"execute-api:ManageConnections"}}
    (elsewhere,) = (f"arn:aws:dynamodb:{name}:{ACCOUNT}:table/{TABLE}" for name in REGIONS if name != function.region)
    gaps = {elsewhere: {"dynamodb:GetItem", "dynamodb:Query"}}
    writer = {table: READ | WRITE, **gaps, **bodies, **missing, **push, **login}
    lambda_, secrets = (f"arn:aws:{service}:{function.region}:{ACCOUNT}:" for service in ("lambda", "secretsmanager"))
    expected: dict[str, dict[str, set[str]]] = {
        "connection": {table: READ, **login},
        "send": {
            **writer,
            **segments,
            uploads: get_and_put,
            **blobs,
            f"{lambda_}function:threadkeep-prod-responder": {"lambda:InvokeFunction"},
            function.arn_of_queue("export"): {"sqs:SendMessage"},
        },
        "stream": {**writer, **segments, uploads: get, **blobs},
        "history": {
            **writer,
            table: READ | WRITE | {"dynamodb:BatchGetItem"},
            index: {"dynamodb:Query"},
            **segments,
            **downloads,
            **{f"arn:aws:s3:::{bucket}/exports/*": get for bucket in BUCKETS.values()},
        },
        "authorizer": {},
        "sweeper": writer,
        "responder": {
            **writer,
            **segments,
            f"{secrets}secret:llm-key-??????": {"secretsmanager:GetSecretValue"},
            function.arn_of_queue("failed-answers"): {"sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:SendMessage"},
        },
    }
    expected |= {
        "announcer": {
            table: {"dynamodb:BatchGetItem", "dynamodb:PutItem"},
            f"<{latest_stream_of(function)}.StreamArn>": {
                "dynamodb:DescribeStream",
                "dynamodb:GetRecords",
                "dynamodb:GetShardIterator",
            },
            function.arn_of_queue("erase"): {"sqs:SendMessage"},
            function.arn_of_queue("tell"): {"sqs:SendMessage"},
            function.arn_of_queue("failed-changes"): {"sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:SendMessage"},
        },
        "eraser": {
            table: {"dynamodb:Query", "dynamodb:UpdateItem", "dynamodb:BatchWriteItem"},
            **{
                f"arn:aws:s3:::{own}/{kind}/*": {"s3:DeleteObject", "s3:DeleteObjectVersion"}
                for kind in ("bodies", "blobs", "segments", "uploads")
            },
            f"arn:aws:s3:::{own}": {"s3:ListBucketVersions"},
            function.arn_of_queue("erase"): TAKE | {"sqs:SendMessage"},
        },
        "herald": {
            table: READ | {"dynamodb:UpdateItem"},
            **push,
            **login,
            function.arn_of_queue("tell"): TAKE | {"sqs:SendMessage"},
        },
    }
    always = {
        function.arn_of_log: {"logs:CreateLogStream", "logs:PutLogEvents"},
        "*": {"xray:PutTelemetryRecords", "xray:PutTraceSegments"},
    }
    if function.name == "announcer":
        always["*"] = always["*"] | {"dynamodb:ListStreams"}  # which knows no resource
    assert function.rights == expected[function.name] | always


def test_no_action_has_a_wildcard_and_no_table_bucket_or_cache_is_reached_by_one(function: Function) -> None:
    for resource, actions in function.rights.items():
        assert not [action for action in actions if "*" in action]
        if resource == "*":
            assert {action for action in actions if not action.startswith("xray:")} <= {"dynamodb:ListStreams"}
        else:
            assert "*" not in resource.split("/")[0]
            assert "*" not in resource or resource.startswith(("arn:aws:s3:", "arn:aws:execute-api:"))
            assert "?" not in resource.removesuffix(":secret:llm-key-??????")


def test_its_environment_is_what_its_config_reads(function: Function) -> None:
    environment = function.properties["Environment"]["Variables"]
    outside = Config(stage="prod", region=function.region, table=TABLE)
    endpoint = f"wss://{function.api}.execute-api.{function.region}.amazonaws.com/prod"
    config = msgspec.structs.replace(
        outside, hot=hot(function), limits=LimitsConfig(), regions=REGIONS, endpoint=endpoint
    )
    pushes = f"https://{function.api}.execute-api.{function.region}.amazonaws.com/prod"
    writer = msgspec.structs.replace(config, connections_url=pushes, bucket=function.bucket, buckets=BUCKETS)
    model = ModelConfig(
        kind="openai", name="example-1", base_url="https://llm.example.com/v1", api_key_secret="llm-key"
    )
    expected = {
        "connection": config,
        "send": msgspec.structs.replace(
            writer,
            responder_function="threadkeep-prod-responder",
            terms=TERMS,
            export_queue=f"{function.queues['export']}>",
        ),
        "stream": writer,
        "history": writer,
        "sweeper": writer,
        "responder": msgspec.structs.replace(writer, model=model),
        "announcer": msgspec.structs.replace(
            outside, erase_queue=f"{function.queues['erase']}>", tell_queue=f"{function.queues['tell']}>"
        ),
        "eraser": msgspec.structs.replace(
            outside, bucket=function.bucket, buckets=BUCKETS, erase_queue=f"{function.queues['erase']}>"
        ),
        "herald": msgspec.structs.replace(config, connections_url=pushes, tell_queue=f"{function.queues['tell']}>"),
        "authorizer": Config(
            stage="prod",
            region=function.region,
            jwks_url="https://id.example.com/.well-known/jwks.json",
            jwt_issuer="https://id.example.com/",
            jwt_audience="threadkeep",
            allowed_origins=("https://chat.example.com", "https://app.example.com"),
        ),
    }[function.name]
    assert Config.from_environment(environment) == expected
    assert {name: value for name, value in environment.items() if not name.startswith("POWERTOOLS_")} == (
        expected.to_environment()
    )


def test_powertools_is_told_its_names_and_nothing_switches_dual_stack_on_for_all_clients(function: Function) -> None:
    environment = function.properties["Environment"]["Variables"]
    others = {name: value for name, value in environment.items() if not name.startswith("THREADKEEP_")}
    assert others == {
        "POWERTOOLS_SERVICE_NAME": function.name,
        "POWERTOOLS_METRICS_NAMESPACE": "Threadkeep",
        "POWERTOOLS_LOG_LEVEL": "INFO",
    }
    assert "AWS_USE_DUALSTACK_ENDPOINT" not in environment


def test_it_reserves_its_share(function: Function) -> None:
    shares = {"connection": 90, "send": 135, "stream": 315, "history": 135, "authorizer": 45}
    assert function.properties.get("ReservedConcurrentExecutions") == shares.get(function.name)


def test_the_shares_leave_executions_to_all_else() -> None:
    for executions in (200, 1_000, 10_000):
        reserved = sum(bulkheads.reserved_concurrency(bulkhead, executions) for bulkhead in bulkheads.ALL)
        assert executions - reserved >= 100 + (executions - 100) // 5


def hot(function: Function) -> HotConfig:
    return HotConfig(
        host=f"<Threadkeep-prod-Hot-{function.region} in {function.region}>",
        port=6379,
        auth="iam",
        user=f"threadkeep-prod-{function.name}",
        cache="threadkeep-prod-public",
    )


def latest_stream_of(function: Function) -> str:
    """The custom resource that the announcer's rights go by."""
    (found,) = {
        resource.strip("<>").removesuffix(".StreamArn") for resource in function.rights if "StreamArn" in resource
    } or {""}
    return found


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
