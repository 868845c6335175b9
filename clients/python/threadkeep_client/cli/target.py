"""Which deployment, and with which token: as given, else the local cloud that is up."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import jwt

from threadkeep_client.cli.errors import CommandError
from threadkeep_client.client import Client
from threadkeep_client.connection import Observer
from threadkeep_client.patience import ConnectionSettings
from threadkeep_client.tokens import TokenSource

STATE_FILE: Final = Path(".local") / "cloud.json"
DEFAULT_SUB: Final = "local-user"
DEFAULT_TENANT: Final = "local"
_MINUTES: Final = 60
_OPEN_S: Final = 20.0
_DEADLINE_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCloud:
    """The local cloud as its state file tells it."""

    url: str
    issuer: str
    audience: str
    kid: str
    key: str

    @classmethod
    def find(cls, folder: Path) -> Self:
        """Look for the state file from a folder upwards.

        Raises:
            CommandError: There is none, or it cannot be read.
        """
        for place in (folder, *folder.parents):
            path = place / STATE_FILE
            if path.is_file():
                return cls.from_file(path)
        raise CommandError(
            f"no local cloud is up (no {STATE_FILE} in {folder} or above): "
            "`make up` starts one, or give --url and --token"
        )

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read the state file and the key beside it.

        Raises:
            CommandError: One of them cannot be read.
        """
        try:
            state = json.loads(path.read_text())
            names = {name: str(state[name]) for name in ("url", "issuer", "audience", "kid")}
            return cls(**names, key=(path.parent / state["key_file"]).read_text())
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CommandError(f"{path} cannot be read ({error!r}): `make down`, then `make up`") from error

    def mint(self, *, scope: str, sub: str = DEFAULT_SUB, tenant: str = DEFAULT_TENANT, minutes: int = _MINUTES) -> str:
        """A token that the local cloud trusts.

        Raises:
            CommandError: The key is damaged.
        """
        now = int(time.time())
        claims: dict[str, str | int] = {"iss": self.issuer, "aud": self.audience, "iat": now, "exp": now + minutes * 60}
        claims |= {"sub": sub, "tenant": tenant, "scope": scope}
        try:
            return jwt.encode(claims, self.key, algorithm="ES256", headers={"kid": self.kid})
        except (ValueError, TypeError, jwt.PyJWTError) as error:
            raise CommandError("the local cloud's key cannot be used: `make down`, then `make up`") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A deployment and what opens it.

    Attributes:
        url: of its WebSocket API.
        token: the one that was given, for every scope.
        cloud: mints tokens where none was given.
    """

    url: str
    token: str | None = None
    cloud: LocalCloud | None = None

    @classmethod
    def find(cls, *, url: str | None, token: str | None, folder: Path) -> Self:
        """From arguments, else the environment, else the local cloud.

        Raises:
            CommandError: An address without a token, or nothing at all.
        """
        url = url or os.environ.get("THREADKEEP_URL") or None
        token = token or os.environ.get("THREADKEEP_TOKEN") or None
        if url and token:
            return cls(url=url, token=token)
        if url:
            raise CommandError(f"which token opens {url}? Give --token or THREADKEEP_TOKEN")
        cloud = LocalCloud.find(folder)
        return cls(url=cloud.url, token=token, cloud=cloud)

    def token_for(self, scope: str) -> str:
        """A token of that scope, where tokens are minted here; else the one given.

        Raises:
            CommandError: There is neither.
        """
        if self.token is not None:
            return self.token
        if self.cloud is not None:
            return self.cloud.mint(scope=scope)
        raise CommandError("no token")

    def client(self, scope: str, observe: Observer | None = None, *, deadline_s: float = _DEADLINE_S) -> Client:
        """A client with tokens as `token_for` gives them.

        Args:
            scope: of the tokens, where they are minted here.
            observe: told how long requests took.
            deadline_s: for a request with all its repeats.
        """
        # Minted ones are minted anew where they run out; one that was given is all there is.
        source: TokenSource = self.token if self.token is not None else lambda: self.token_for(scope)
        return Client(
            self.url, source, settings=ConnectionSettings(open_s=_OPEN_S, deadline_s=deadline_s), observe=observe
        )
