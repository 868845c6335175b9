"""What a running local cloud tells: the file by which clients, tests and `make down` find it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self

import msgspec

from local.errors import LocalCloudError
from local.keys import SigningKey

REGIONS: Final = ("us-east-1", "eu-central-1")
"""Those that it may have, the home region first."""
REGION: Final = REGIONS[0]
ACCOUNT: Final = "000000000000"
STAGE: Final = "local"


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where a service listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class RegionState(msgspec.Struct, frozen=True, kw_only=True):
    """One region of a deployed local cloud.

    Attributes:
        url: of its WebSocket API, ``ws://127.0.0.1:PORT/_aws/execute-api/<api>/<stage>``.
        bucket: name of its cold bucket.
        valkey: its own; regions share no cache.
    """

    region: str
    url: str
    bucket: str
    valkey: Address


class CloudState(RegionState, frozen=True, kw_only=True):
    """A deployed local cloud, as its home region.

    Attributes:
        endpoint: of the emulator, for AWS clients; it has all regions.
        table: name of the global table.
        others: the other regions.
        key_file: the private key that its tokens are signed with, relative to the state file's folder.
        kid: the key's name in the JWKS.
    """

    endpoint: str
    table: str
    issuer: str
    audience: str
    key_file: str
    kid: str
    others: tuple[RegionState, ...] = ()

    @classmethod
    def from_file(cls, path: Path) -> Self | None:
        """Read it; None where there is none.

        Raises:
            LocalCloudError: it is damaged, or from another version.
        """
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise LocalCloudError(f"{path} cannot be read ({error}): `make down` removes it") from error

    def to_file(self, path: Path) -> None:
        """Write it at once or not at all: its presence says that the cloud is ready."""
        partial = path.with_suffix(".partial")
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(self)))
        partial.replace(path)

    def signing_key(self, folder: Path) -> SigningKey:
        """The key that signs its tokens; ``folder`` is the state file's."""
        return SigningKey.from_file(folder / self.key_file)

    @property
    def connections_url(self) -> str:
        """Base of ``@connections``."""
        return "http" + self.url.removeprefix("ws")
