"""What a running local cloud tells: the file by which clients, tests and `make down` find it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self

import msgspec

from local.errors import LocalCloudError
from local.keys import SigningKey

REGION: Final = "us-east-1"
ACCOUNT: Final = "000000000000"
STAGE: Final = "local"


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where a service listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class CloudState(msgspec.Struct, frozen=True, kw_only=True):
    """A deployed local cloud.

    Attributes:
        url: of the WebSocket API, ``ws://127.0.0.1:PORT/_aws/execute-api/<api>/<stage>``.
        endpoint: of the emulator, for AWS clients.
        table: name of the global table.
        bucket: name of the cold bucket.
        key_file: the private key that its tokens are signed with, relative to the state file's folder.
        kid: the key's name in the JWKS.
    """

    url: str
    endpoint: str
    region: str
    table: str
    bucket: str
    valkey: Address
    issuer: str
    audience: str
    key_file: str
    kid: str

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
