"""Claims of conversations' ids in the table: an item a region, which that region alone writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from threadkeep.domain.contests import Claim
from threadkeep.domain.model import ConversationKey
from threadkeep.stores import contest_items
from threadkeep.stores.aws_faults import warm_unavailable
from threadkeep.stores.put_once import put_once

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class ClaimsDynamoDB:
    """`threadkeep.ports.IdClaims` on the table of `threadkeep.schema`: one write.

    Args:
        client: a DynamoDB client, built with `threadkeep.stores.aws_config.STORE`.
        table: the table's name.
        region: ours.
    """

    def __init__(self, client: DynamoDBClient, table: str, region: str) -> None:
        self._client = client
        self._table = table
        self._region = region

    @warm_unavailable()
    def put(self, key: ConversationKey, claim: Claim) -> Claim | None:
        """See `IdClaims`."""
        standing = put_once(self._client, self._table, contest_items.claim_item(key, self._region, claim))
        return None if standing is None else contest_items.claim_from(standing)
