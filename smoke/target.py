"""Which deployment is looked at, by whom."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

_LOCAL_PATH: Final = "_aws"
_EXECUTE_API: Final = ".execute-api."
_REGION: Final = re.compile(r"^[a-z]{2}(-[a-z]+)+-[0-9]$")


class TargetError(ValueError):
    """What was given does not name a deployment; the message says what is missing. It holds no token."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A deployment and three people to talk to it.

    Attributes:
        url: of one region's WebSocket API.
        stage: the deployment's name.
        region: the region behind the URL.
        regions: of the deployment, as given, or only `region`; the table knows the others too.
        api_id: of the API behind the URL; empty where the URL is a domain of one's own.
        endpoint: of the local cloud's AWS emulator; None on AWS.
        token, other_token, produce_token: of a user (`chat`), of a user who may not see the first one's conversations,
            and of a worker of the first one's tenant (`produce`).
        athena_workgroup: to ask Athena in.
    """

    url: str
    stage: str
    region: str
    regions: tuple[str, ...]
    api_id: str
    endpoint: str | None
    token: str
    other_token: str
    produce_token: str
    athena_workgroup: str = "primary"

    @property
    def is_local(self) -> bool:
        """Whether it is the local cloud."""
        return self.endpoint is not None

    @property
    def tenant(self) -> str:
        """Of the user."""
        return str(_claims(self.token)["tenant"])

    @property
    def secrets(self) -> tuple[str, ...]:
        """What may never be shown."""
        return (self.token, self.other_token, self.produce_token)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Target:
        """Read `URL`, `TOKEN`, `OTHER_TOKEN`, `PRODUCE_TOKEN`; `STAGE`, `REGIONS` and `ATHENA_WORKGROUP` if given.

        Raises:
            TargetError: something is missing, or is no address or token.
        """
        needed = ("URL", "TOKEN", "OTHER_TOKEN", "PRODUCE_TOKEN")
        missing = [name for name in needed if not environment.get(name)]
        if missing:
            raise TargetError(f"{', '.join(missing)} not given: make smoke {' '.join(f'{name}=…' for name in needed)}")
        for name in needed[1:]:
            if "tenant" not in _claims(environment[name]):
                raise TargetError(f"{name} is no JWT with a tenant")
        if _claims(environment["TOKEN"])["tenant"] != _claims(environment["PRODUCE_TOKEN"])["tenant"]:
            raise TargetError("TOKEN and PRODUCE_TOKEN have to be of the same tenant")
        place = _Place.of(environment["URL"])
        regions = tuple(environment.get("REGIONS", "").replace(",", " ").split())
        if odd := [region for region in regions if not _REGION.match(region)]:
            raise TargetError(f"REGIONS names no region with {odd[0]!r}: e.g. REGIONS='eu-central-1 us-east-1'")
        region = place.region or environment.get("AWS_REGION") or (regions[0] if regions else "")
        stage = environment.get("STAGE") or place.stage
        if not region or not stage:
            raise TargetError("region or stage cannot be read from the URL: give STAGE=… and REGIONS=…, or AWS_REGION")
        return cls(
            url=environment["URL"],
            stage=stage,
            region=region,
            regions=regions or (region,),
            api_id=place.api_id,
            endpoint=place.endpoint,
            token=environment["TOKEN"],
            other_token=environment["OTHER_TOKEN"],
            produce_token=environment["PRODUCE_TOKEN"],
            athena_workgroup=environment.get("ATHENA_WORKGROUP") or "primary",
        )


class _Place(msgspec.Struct, frozen=True):
    """What a URL says: `wss://API.execute-api.REGION.…/STAGE`, or that of the local cloud, or a domain of one's own."""

    stage: str
    region: str
    api_id: str
    endpoint: str | None

    @classmethod
    def of(cls, url: str) -> _Place:
        parts = urlsplit(url)
        if parts.scheme not in {"ws", "wss"} or not parts.hostname:
            raise TargetError("URL is no ws://… or wss://… address")
        path = parts.path.strip("/").split("/")
        if path[0] == _LOCAL_PATH and len(path) == 4:  # noqa: PLR2004 -- _aws/execute-api/<api>/<stage>
            return cls(stage=path[3], region="", api_id=path[2], endpoint=f"http://{parts.netloc}")
        api, is_gateway, rest = parts.hostname.partition(_EXECUTE_API)
        if is_gateway:
            return cls(stage=path[0], region=rest.split(".")[0], api_id=api, endpoint=None)
        return cls(stage="", region="", api_id="", endpoint=None)


def _claims(token: str) -> dict[str, Any]:
    """What a token says, unchecked: the deployment checks it."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}
