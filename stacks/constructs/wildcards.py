"""Why a right ends in a wildcard, said where cdk-nag looks for it."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from constructs import IConstruct


def acknowledge_wildcard(scope: IConstruct, *, resource: str, reason: str) -> None:
    """Accept exactly one resource with a wildcard in the policies below a construct.

    Args:
        scope: the role, or whatever stands above its policies.
        resource: the ARN as the policy has it; may hold deploy-time tokens.
        reason: why it cannot be narrower.
    """
    text = _as_nag_prints(cdk.Stack.of(scope).resolve(resource))
    cdk.Validations.of(scope).acknowledge(
        cdk.Acknowledgment(id=f"AwsSolutions::AwsSolutions-IAM5[Resource::{text}]", reason=reason)
    )


def _as_nag_prints(value: Any) -> str:
    """A resolved value as cdk-nag names it in a finding: references as ``<LogicalId>``."""
    match value:
        case str():
            return value
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(_as_nag_prints(part) for part in parts)
    raise TypeError(f"cdk-nag's name of {value!r} is not known here")
