"""What a function is told by its environment, as one typed model.

The stacks write it with `Config.to_environment`, the container reads it with `Config.from_environment`: a name
that one of them lacks is an error where it is missing, not a ``None`` that travels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

_PREFIX: Final = "THREADKEEP_"


class ConfigError(ValueError):
    """The environment lacks a setting, or holds one that cannot be read. The message names it."""


class HotConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Where Valkey stands.

    ``auth`` is ``none`` (a plain endpoint of one's own, as on the local cloud) or ``iam`` (ElastiCache: TLS, a
    presigned token in place of a password). ``user`` and ``cache`` are used with ``iam`` only.
    """

    host: str
    port: int
    auth: Literal["none", "iam"] = "none"
    user: str = ""
    cache: str = ""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The environment of one function.

    Attributes:
        stage: the deployment's name, as in its stack names.
        region: the region the function runs in.
        table: name of the global table; empty for a function that has no use of it.
        bucket: name of this region's cold bucket; empty likewise.
        connections_url: base of ``@connections``, e.g. ``https://{api}.execute-api.{region}.amazonaws.com/{stage}``.
        hot: where Valkey stands; None for a function that has no use of it.
        jwks_url, jwt_issuer, jwt_audience: what the authorizer checks tokens against.
        allowed_origins: compared whole with ``Origin``; empty allows none (servers send no ``Origin``).
        query_token: whether ``?token=`` is taken on ``$connect`` (the local target only).
    """

    stage: str
    region: str
    table: str = ""
    bucket: str = ""
    connections_url: str = ""
    hot: HotConfig | None = None
    jwks_url: str = ""
    jwt_issuer: str = ""
    jwt_audience: str = ""
    allowed_origins: tuple[str, ...] = ()
    query_token: bool = False

    def to_environment(self) -> dict[str, str]:
        """One variable a setting, ``THREADKEEP_<NAME>``; strings as they are (they may hold deploy-time tokens).

        ``hot`` becomes ``THREADKEEP_HOT_<NAME>``, ``allowed_origins`` a list separated by spaces.
        """
        values = {name: getattr(self, name) for name in self.__struct_fields__ if name != "hot"}
        if self.hot is not None:
            values |= {f"hot_{name}": getattr(self.hot, name) for name in self.hot.__struct_fields__}
        return {_PREFIX + name.upper(): _text(value) for name, value in values.items() if value not in ("", ())}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Config:
        """Read it back.

        Raises:
            ConfigError: a required setting is absent, or one has the wrong form.
        """
        own = {
            key.removeprefix(_PREFIX).lower(): value for key, value in environment.items() if key.startswith(_PREFIX)
        }
        hot = {key.removeprefix("hot_"): own.pop(key) for key in list(own) if key.startswith("hot_")}
        fields: dict[str, Any] = dict(own)
        if hot:
            fields["hot"] = hot
        if "allowed_origins" in own:
            fields["allowed_origins"] = own["allowed_origins"].split()
        try:
            return msgspec.convert(fields, cls, strict=False)
        except msgspec.ValidationError as error:
            raise ConfigError(f"environment of the function: {error} ({_PREFIX}…)") from error


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return " ".join(value)
    return str(value)
