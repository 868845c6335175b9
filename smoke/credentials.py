"""Whether whoever runs the pack may ask AWS anything at all."""

from __future__ import annotations

import boto3
from botocore.exceptions import BotoCoreError

_HOW = (
    "give those of the deployment's account, by AWS_PROFILE or by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
    "(docs/smoke.md)"
)


def complaint() -> str | None:
    """Why no request to AWS could be signed, in one line; None where one can be. AWS itself is not asked."""
    try:
        found = boto3.Session().get_credentials()
        if found is None:
            return f"no AWS credentials found: {_HOW}"
        found.get_frozen_credentials()
    except BotoCoreError as error:  # a profile that is not there, a login that has run out
        return f"the AWS credentials cannot be used ({' '.join(str(error).split())}): {_HOW}"
    return None
