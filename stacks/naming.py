"""Every name that more than one stack knows.

Stacks of different regions may share nothing but names (no reference crosses regions), so the names are made here,
from the stage and the region alone. All are lower-case; the longest stays under ElastiCache's 40 characters and
S3's 63 with a stage of 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    import aws_cdk as cdk

_PRODUCT: Final = "threadkeep"


def stage_id(stage: str) -> str:
    """The prefix of every stack's name: ``<stage id>-<stack>``, e.g. ``Threadkeep-prod-State``."""
    return f"Threadkeep-{stage}"


def table(stage: str) -> str:
    """The global table, the same in every region."""
    return f"{_PRODUCT}-{stage}"


def table_arn(stack: cdk.Stack, stage: str, region: str | None = None) -> str:
    """The table's ARN in a region; by default the stack's own.

    Looked up by name in every region, the home one too: the home table's object, used in another region's stack,
    grants the home region's ARN without an error.
    """
    return stack.format_arn(service="dynamodb", region=region, resource="table", resource_name=table(stage))


def bucket(stage: str, account: str, region: str) -> str:
    """A region's cold bucket. Bucket names are the world's, so the account is part of them."""
    return f"{_PRODUCT}-{stage}-{account}-{region}"


def buckets(stage: str, account: str, regions: Sequence[str]) -> dict[str, str]:
    """Every region's cold bucket, by region."""
    return {region: bucket(stage, account, region) for region in regions}


def bucket_arn(stack: cdk.Stack, stage: str, region: str) -> str:
    """The ARN of a region's bucket."""
    name = bucket(stage, stack.account, region)
    return stack.format_arn(service="s3", region="", account="", resource=name)


def catalog(stage: str) -> str:
    """The Glue database of each region. Athena takes no hyphens in a name that is not quoted."""
    return f"{_PRODUCT}_{stage.replace('-', '_')}"


def key_alias(stage: str) -> str:
    """The alias of each region's key: known before the key is, so that the table's replicas can name theirs."""
    return f"alias/{_PRODUCT}-{stage}"


def key_arn(stack: cdk.Stack, stage: str, region: str) -> str:
    """The alias's ARN in one region; DynamoDB and S3 take it wherever they take a key's."""
    return stack.format_arn(service="kms", region=region, resource=key_alias(stage))


def cache(stage: str, network: str) -> str:
    """A region's Valkey. How it is reached is part of the name: it cannot be changed, only a new cache made."""
    return f"{_PRODUCT}-{stage}-{network}"


def cache_user(stage: str, bulkhead: str) -> str:
    """The one Valkey user of a bulkhead's role."""
    return f"{_PRODUCT}-{stage}-{bulkhead}"


def elasticache_arn(stack: cdk.Stack, kind: str, name: str) -> str:
    """The ARN of a ``serverlesscache`` or ``user`` in the stack's own region."""
    return f"arn:{stack.partition}:elasticache:{stack.region}:{stack.account}:{kind}:{name}"


def function(stage: str, bulkhead: str) -> str:
    """The Lambda function of a bulkhead."""
    return f"{_PRODUCT}-{stage}-{bulkhead}"


def function_arn(stack: cdk.Stack, name: str) -> str:
    """The ARN of a function in the stack's own region."""
    return f"arn:{stack.partition}:lambda:{stack.region}:{stack.account}:function:{name}"


def failed_answers(stage: str) -> str:
    """The queue that keeps the requests whose answer failed."""
    return f"{_PRODUCT}-{stage}-failed-answers"


def job_queue(stage: str, kind: str) -> str:
    """A region's queue of jobs of a kind."""
    return f"{_PRODUCT}-{stage}-{kind}"


def failed_jobs(queue: str) -> str:
    """The queue of those jobs of a queue that failed again and again."""
    return f"{queue}-failed"


def failed_changes(stage: str) -> str:
    """The queue that is told of changes in the table which the announcer never took."""
    return f"{_PRODUCT}-{stage}-failed-changes"


def queue_arn(stack: cdk.Stack, name: str) -> str:
    """The ARN of a queue in the stack's own region."""
    return stack.format_arn(service="sqs", resource=name)


def model_arns(stack: cdk.Stack, model: str) -> list[str]:
    """The ARNs of a Bedrock model in every region: by its own id, and by a profile's, a region group and that id."""
    ids = (model, model.partition(".")[2])
    return [f"arn:{stack.partition}:bedrock:*::foundation-model/{id_}" for id_ in ids if id_]


def inference_profile_arn(stack: cdk.Stack, profile: str) -> str:
    """The ARN of one of Bedrock's own inference profiles in the stack's own region."""
    return f"arn:{stack.partition}:bedrock:{stack.region}:{stack.account}:inference-profile/{profile}"


def secret_arn(stack: cdk.Stack, name: str) -> str:
    """The ARN of a secret by its name, with a wildcard for the six characters that Secrets Manager adds."""
    return f"arn:{stack.partition}:secretsmanager:{stack.region}:{stack.account}:secret:{name}-??????"


class Gateway(msgspec.Struct, frozen=True, kw_only=True):
    """The addresses of one region's WebSocket API, on AWS or behind the emulator.

    Attributes:
        api_id, region, url_suffix: what the host name is made of; may be deploy-time tokens.
        stage: the path.
        local_endpoint: ``http://127.0.0.1:PORT`` of the emulator; None on AWS.
    """

    api_id: str
    region: str
    url_suffix: str
    stage: str
    local_endpoint: str | None

    @property
    def url(self) -> str:
        """Where clients connect to: ``wss://…``, on the local target ``ws://…``."""
        return self.connections_url.replace("http", "ws", 1)

    @property
    def connections_url(self) -> str:
        """The base of ``@connections``, the same address over HTTP; never the event's ``domainName``."""
        if self.local_endpoint is None:
            return f"https://{self.api_id}.execute-api.{self.region}.{self.url_suffix}/{self.stage}"
        return f"{self.local_endpoint}/_aws/execute-api/{self.api_id}/{self.stage}"
