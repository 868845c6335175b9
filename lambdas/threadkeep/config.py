"""What a function is told by its environment, as one typed model.

The stacks write it with `Config.to_environment`, the container reads it with `Config.from_environment`: a name
that one of them lacks is an error where it is missing, not a ``None`` that travels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote, unquote

import msgspec
from msgspec import Meta

from threadkeep.domain.bounds import ARCHIVE_IDLE_MS, ARCHIVE_SETTLE_MS
from threadkeep.domain.erasure import Terms
from threadkeep.domain.rates import Rate, Rates

__all__ = ["Config", "ConfigError", "HotConfig", "LimitsConfig", "ModelConfig", "Terms"]

_PREFIX: Final = "THREADKEEP_"
_LISTS: Final = ("allowed_origins", "regions", "evacuated", "service_accounts")
_NESTED: Final = ("hot", "limits", "model", "terms")


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


PerSecond = Annotated[float, Meta(ge=0.01, le=100_000)]
Burst = Annotated[int, Meta(ge=1, le=1_000_000)]
_USUAL: Final = Rates()


class LimitsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What each user and each tenant may do, in a region; see `threadkeep.domain.rates.Rates`.

    Attributes:
        user_per_s, tenant_per_s: metered requests a second on the long run.
        user_burst, tenant_burst: so many at once.
        streams_per_user: live streams in conversations of one owner.
    """

    user_per_s: PerSecond = _USUAL.user.per_s
    user_burst: Burst = _USUAL.user.burst
    tenant_per_s: PerSecond = _USUAL.tenant.per_s
    tenant_burst: Burst = _USUAL.tenant.burst
    streams_per_user: Annotated[int, Meta(ge=1, le=10_000)] = _USUAL.streams_max

    @property
    def rates(self) -> Rates:
        """The same, as the quotas go by them."""
        return Rates(
            user=Rate(self.user_per_s, self.user_burst),
            tenant=Rate(self.tenant_per_s, self.tenant_burst),
            streams_max=self.streams_per_user,
        )


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Which model answers, for the responder alone.

    Attributes:
        kind: ``recorded`` replays answers that were recorded (no model, no network), ``openai`` asks any endpoint that
            serves OpenAI's chat completions (vLLM, Ollama and others do), ``bedrock`` asks Amazon Bedrock.
        name: the model's, as the provider knows it (on Bedrock a model's or an inference profile's id); recorded in
            every message. Not needed with ``recorded``.
        base_url: of the ``openai`` endpoint, up to where ``/chat/completions`` follows, e.g. ``https://host/v1``.
        api_key_secret: name of the Secrets Manager secret whose text is the ``openai`` endpoint's key; empty: none.
        system: what the model is told before everything else; empty: nothing but the conversation's own.
        context_messages_max, context_tokens_max: how much of the conversation it reads before it answers.
    """

    kind: Literal["recorded", "openai", "bedrock"] = "recorded"
    name: str = ""
    base_url: str = ""
    api_key_secret: str = ""
    system: str = ""
    context_messages_max: Annotated[int, Meta(ge=1, le=1_000)] = 200
    context_tokens_max: Annotated[int, Meta(ge=1)] = 32_000

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        if self.kind != "recorded" and not self.name:
            raise ValueError(f"a model of kind {self.kind} needs a name")
        if self.kind == "openai" and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("a model of kind openai needs a base_url that begins with http:// or https://")


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The environment of one function.

    Attributes:
        stage: the deployment's name, as in its stack names.
        region: the region the function runs in.
        regions: all of the deployment's, the home region first; empty where there is one, or that is no concern of the
            function's.
        evacuated: those that the others take for gone.
        endpoint: where clients of this region connect to, ``wss://…``; empty where there is one region.
        table: name of the global table; empty for a function that has no use of it.
        service_accounts: owners of very many conversations, each ``tenant/user`` with both percent-encoded.
        bucket: name of this region's cold bucket; empty likewise.
        buckets: every region's, this one's too, by region; empty likewise.
        ipv6_out: whether the function has a way out over IPv6 alone, and over IPv4 reaches nothing but its own region's
            DynamoDB and S3.
        connections_url: base of ``@connections``, e.g. ``https://{api}.execute-api.{region}.amazonaws.com/{stage}``.
        hot: where Valkey stands; None for a function that has no use of it.
        limits: what users and tenants may do; None for a function that has no use of ``hot``.
        model: which model answers; None for every function but the responder.
        terms: how what is kept comes to its end; None for a function that has no say in it.
        erase_queue, tell_queue: URLs of the region's queues to the eraser and the herald; empty likewise.
        export_queue: URL of the region's queue to the exporter; empty likewise.
        archive_queue: URL of the queue to the archiver; empty likewise.
        archive_idle_ms: how long a conversation rests before it is archived.
        archive_settle_ms: how long a manifest has to have stood before what it covers is deleted from the table.
        responder_function: name of the function that answers; empty where none does, or nobody here starts it.
        produce_function: name of the function by which the responder writes, where it stands too far from Valkey to
            write itself; empty otherwise.
        jwks_url, jwt_issuer, jwt_audience: what the authorizer checks tokens against.
        allowed_origins: compared whole with ``Origin``; empty allows none (servers send no ``Origin``).
        query_token: whether ``?token=`` is taken on ``$connect`` (the local target only).
    """

    stage: str
    region: str
    regions: tuple[str, ...] = ()
    evacuated: tuple[str, ...] = ()
    endpoint: str = ""
    table: str = ""
    service_accounts: tuple[str, ...] = ()
    bucket: str = ""
    buckets: dict[str, str] = {}
    ipv6_out: bool = False
    connections_url: str = ""
    hot: HotConfig | None = None
    limits: LimitsConfig | None = None
    model: ModelConfig | None = None
    terms: Terms | None = None
    erase_queue: str = ""
    tell_queue: str = ""
    export_queue: str = ""
    archive_queue: str = ""
    archive_idle_ms: int = ARCHIVE_IDLE_MS
    archive_settle_ms: int = ARCHIVE_SETTLE_MS
    responder_function: str = ""
    produce_function: str = ""
    jwks_url: str = ""
    jwt_issuer: str = ""
    jwt_audience: str = ""
    allowed_origins: tuple[str, ...] = ()
    query_token: bool = False

    @property
    def others(self) -> tuple[str, ...]:
        """The other regions that count: not those that are evacuated."""
        return tuple(name for name in self.regions if name != self.region and name not in self.evacuated)

    @property
    def service_account_names(self) -> tuple[tuple[str, str], ...]:
        """Tenant and user of each."""
        pairs = [account.partition("/") for account in self.service_accounts]
        return tuple((unquote(tenant), unquote(user)) for tenant, _, user in pairs)

    def to_environment(self) -> dict[str, str]:
        """One variable a setting, ``THREADKEEP_<NAME>``; strings as they are (they may hold deploy-time tokens).

        ``hot`` becomes ``THREADKEEP_HOT_<NAME>``, ``limits``, ``model`` and ``terms`` likewise. ``allowed_origins``,
        ``regions``, ``evacuated`` and ``service_accounts`` become lists separated by spaces, ``buckets`` such a list of
        ``region=name``, ``retention_days`` of ``tenant=days``, the tenant percent-encoded.
        """
        values = {name: getattr(self, name) for name in self.__struct_fields__ if name not in _NESTED}
        for group in _NESTED:
            nested = getattr(self, group)
            if nested is not None:
                values |= {f"{group}_{name}": getattr(nested, name) for name in nested.__struct_fields__}
        return {_PREFIX + name.upper(): _text(value) for name, value in values.items() if value not in ("", (), {})}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Config:
        """Read it back.

        Raises:
            ConfigError: a required setting is absent, or one has the wrong form.
        """
        own = {
            key.removeprefix(_PREFIX).lower(): value for key, value in environment.items() if key.startswith(_PREFIX)
        }
        nested: dict[str, dict[str, str]] = {group: {} for group in _NESTED}
        for group, values in nested.items():
            for key in [key for key in own if key.startswith(f"{group}_")]:
                values[key.removeprefix(f"{group}_")] = own.pop(key)
        fields: dict[str, Any] = own | {group: values for group, values in nested.items() if values}
        fields |= {name: own[name].split() for name in _LISTS if name in own}
        if "buckets" in own:
            pairs = [pair.partition("=") for pair in own["buckets"].split()]
            fields["buckets"] = {region: name for region, _, name in pairs}
        if nested["terms"]:
            fields["terms"] = _read_terms(nested["terms"])
        try:
            return msgspec.convert(fields, cls, strict=False)
        except msgspec.ValidationError as error:
            raise ConfigError(f"environment of the function: {error} ({_PREFIX}…)") from error


def _read_terms(values: dict[str, str]) -> dict[str, Any]:
    """What `Terms` is made of, out of its texts."""
    read: dict[str, Any] = dict(values)
    read["regions"] = values.get("regions", "").split()
    pairs = [pair.rpartition("=") for pair in values.get("retention_days", "").split()]
    return read | {"retention_days": {unquote(tenant): days for tenant, _, days in pairs}}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return " ".join(value)
    if isinstance(value, dict):
        return " ".join(f"{quote(name, safe='*')}={text}" for name, text in value.items())
    return str(value)
