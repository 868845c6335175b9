"""How long AWS may take: the clients' timeouts and retries, for whoever builds the clients.

A route function has 10 s. Three attempts of 1 s to connect and 2 s to read, with botocore's own pauses between them
(at most 1 s, then 2 s), end before that at the worst, and a caller hears `unavailable` rather than nothing.
"""

from __future__ import annotations

from typing import Final

from botocore.config import Config

PUSH_THREADS_MAX: Final = 16

STORE: Final = Config(
    connect_timeout=1,
    read_timeout=2,
    retries={"mode": "standard", "total_max_attempts": 3},
)
"""For DynamoDB."""

OTHER_REGION: Final = Config(
    connect_timeout=1,
    read_timeout=1,
    # Asked only for what is missing here, by requests that can do without: they come again.
    retries={"mode": "standard", "total_max_attempts": 1},
)
"""For DynamoDB in another region."""

BUCKET: Final = STORE.merge(
    Config(
        signature_version="s3v4",
        # Else a presigned URL names S3's global host, which answers for a young bucket elsewhere with a redirect that
        # no browser follows across origins (boto3 1.43.106, looked at 2026-11-29).
        s3={"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"},
    )
)
"""For S3. Signature version 4 is what makes a presigned URL hold a client to the size and checksum it named."""

PUSH: Final = Config(
    connect_timeout=1,
    read_timeout=1,
    # A viewer that missed a frame resumes; by the time of a second attempt (up to 1 s later) nobody waits for it.
    retries={"mode": "standard", "total_max_attempts": 1},
    max_pool_connections=PUSH_THREADS_MAX,
)
"""For ``@connections``."""
