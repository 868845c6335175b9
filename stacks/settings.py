"""What a deployment is told: one TOML file, read into one typed model.

Every setting says beside itself what it may be. A wrong, missing or unknown one is a `SettingsError` of one line
that names it, so that ``cdk synth`` stops with a sentence instead of a trace.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Meta

from stacks.known_regions import nearest
from threadkeep.config import LimitsConfig, ModelConfig, Terms

ENVIRONMENT_VARIABLE: Final = "THREADKEEP_SETTINGS"
DEFAULT_FILE: Final = "settings.toml"
LOCAL_ACCOUNT: Final = "000000000000"
_PORT_MAX: Final = 65_535
_RETENTION_DAYS_MAX: Final = 36_500
_ACCOUNTS_CHARS_MAX: Final = 1_024
_RETENTION_CHARS_MAX: Final = 2_048
"""A function's whole environment takes 4 KB (Lambda quotas, recalled 2026-11-29)."""
_IDLE_DAYS_MAX: Final = 3_650
_SETTLE_MINUTES_MIN: Final = 20
_SETTLE_MINUTES_MAX: Final = 7 * 24 * 60
_SECOND_PASS_MINUTES_MIN: Final = 20
_SECOND_PASS_MINUTES_MAX: Final = 180
"""A queue holds a job back for 15 min, then it queues itself again; Lambda stops a chain of more than 16 (Lambda
developer guide, "Recursive loop detection", recalled 2026-11-29)."""

Stage = Annotated[
    str,
    Meta(
        pattern=r"^[a-z](-?[a-z0-9])*$",
        max_length=16,
        description="up to 16 lower-case letters, digits and single hyphens, beginning with a letter",
    ),
]
Region = Annotated[str, Meta(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$", max_length=20)]
Text = Annotated[str, Meta(min_length=1)]
HotAddress = Annotated[str, Meta(pattern=r"^[^\s:/]+:[0-9]{1,5}$")]
NetworkKind = Literal["vpc", "public"]
Url = Annotated[str, Meta(pattern=r"^https?://[^\s/]+(/\S*)?$")]


class SettingsError(ValueError):
    """The settings cannot be used. The message is one line that names the setting and what it may be."""


class ModelSettings(ModelConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`ModelConfig` as a deployment may have it: its names become part of rights, so none may hold a wildcard."""

    name: Annotated[str, Meta(pattern=r"^[^\s*?$]+$")] = ""
    base_url: Url = ""
    api_key_secret: Annotated[str, Meta(pattern=r"^[A-Za-z0-9/_+=.@-]{1,512}$")] = ""

    def __post_init__(self) -> None:
        """Refuse what would be deployed and then not work."""
        super().__post_init__()
        if self.kind == "bedrock" and self.name.startswith("arn:"):
            raise ValueError("a model of kind bedrock is named by its id, not by an ARN")
        if self.kind != "openai" and (self.base_url or self.api_key_secret):
            raise ValueError(f"a model of kind {self.kind} has neither base_url nor api_key_secret")


class LimitsSettings(LimitsConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`LimitsConfig` as a deployment may have it."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One deployment. The descriptions are part of the model: the errors quote them."""

    target: Annotated[
        Literal["aws", "local"],
        Meta(description='"aws" (a real account) or "local" (the emulator on this machine)'),
    ]
    stage: Stage
    regions: Annotated[
        tuple[Region, ...],
        Meta(
            min_length=1,
            description='a list of AWS regions, each once, the home region first, e.g. ["eu-central-1", "us-east-1"]',
        ),
    ]
    evacuated: Annotated[
        tuple[Region, ...],
        Meta(description='a list of those of `regions` that the others take for gone, e.g. ["us-east-1"]; not all'),
    ] = ()
    endpoints: Annotated[
        dict[Region, Annotated[str, Meta(pattern=r"^wss?://[^\s/?#]+(/[^\s?#]*)?$")]],
        Meta(
            description="a table of region to the URL of a domain of your own that leads to its gateway, wss on aws, "
            'e.g. {eu-central-1 = "wss://eu.chat.example.com/prod"}; absent, the gateway\'s own'
        ),
    ] = {}
    jwks_url: Annotated[Url, Meta(description="the URL of the key set that signs your users' tokens, https on aws")]
    jwt_issuer: Annotated[Text, Meta(description="the `iss` that tokens carry, compared whole")]
    jwt_audience: Annotated[Text, Meta(description="the `aud` that tokens carry, compared whole")]
    account: Annotated[
        Annotated[str, Meta(pattern=r"^[0-9]{12}$")] | None,
        Meta(description="an AWS account id of 12 digits, in quotes; absent, the account of your credentials"),
    ] = None
    network: Annotated[
        NetworkKind,
        Meta(
            description='"vpc" (Valkey and the functions that talk to it in a network that nothing leads into; the '
            'default on aws) or "public" (Valkey by its public endpoint, IAM and TLS; the default on the local target)'
        ),
    ] = "vpc"
    allowed_origins: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^https?://[^\s/?#]+$")], ...],
        Meta(description='a list of whole origins without a path, e.g. ["https://chat.example.com"]'),
    ] = ()
    query_token: Annotated[
        bool,
        Meta(description="true or false; true (tokens in the URL, where logs see them) on the local target only"),
    ] = False
    lambda_concurrency: Annotated[
        Annotated[int, Meta(ge=200, le=1_000_000)] | None,
        Meta(
            description="the account's concurrent executions, 200 or more, to reserve a share of them for each "
            "bulkhead; absent, nothing is reserved"
        ),
    ] = None
    manage_gateway_log_role: Annotated[
        bool,
        Meta(description="true or false; false where the account's API Gateway log role is set by someone else"),
    ] = True
    pitr_days: Annotated[
        Annotated[int, Meta(ge=1, le=35)],
        Meta(description="whole days from 1 to 35 that the table can be taken back"),
    ] = 35
    archive_idle_days: Annotated[
        Annotated[float, Meta(gt=0, le=_IDLE_DAYS_MAX)],
        Meta(
            description="days from 1 to 3650 (fractions too, and fewer on the local target only) without activity "
            "after which a conversation moves to the archive"
        ),
    ] = 30
    archive_settle_minutes: Annotated[
        Annotated[float, Meta(gt=0, le=_SETTLE_MINUTES_MAX)],
        Meta(
            description="minutes from 20 to 10080 (fewer on the local target only) that what is archived stays in the "
            "table too"
        ),
    ] = 60
    retention_days: Annotated[
        dict[Text, Annotated[int, Meta(ge=1, le=_RETENTION_DAYS_MAX)]],
        Meta(
            description="a table of tenant to whole days, at most 36500, that its new conversations stay after their "
            'last activity, "*" for every other tenant, e.g. {"*" = 365, acme = 30}; at most 2,048 letters in all; '
            "absent, they stay"
        ),
    ] = {}
    service_accounts: Annotated[
        dict[Text, tuple[Text, ...]],
        Meta(
            description="a table of tenant to a list of its users that own very many conversations, e.g. "
            '{acme = ["importer"]}; at most 1,024 letters in all; more may be added, none taken out'
        ),
    ] = {}
    erasure_second_pass_minutes: Annotated[
        Annotated[float, Meta(gt=0, le=_SECOND_PASS_MINUTES_MAX)],
        Meta(
            description="minutes from 20 to 180 (fewer on the local target only) after which an erasure takes what was "
            "under way when it began"
        ),
    ] = 30
    limits: Annotated[
        LimitsSettings,
        Meta(
            description="a table {user_per_s, user_burst, tenant_per_s, tenant_burst, streams_per_user}, each "
            "optional: writing requests a second from 0.01 to 100000, at once from 1 to 1000000, and live streams of "
            "one user from 1 to 10000"
        ),
    ] = LimitsSettings()
    availability_zones: Annotated[
        dict[Region, Annotated[tuple[Text, ...], Meta(min_length=2, max_length=3)]],
        Meta(
            description="a table of region to two or three different zone names, "
            'e.g. {us-east-1 = ["us-east-1a", "us-east-1b"]}'
        ),
    ] = {}
    model: Annotated[
        ModelSettings | None,
        Meta(
            description='a table that says which model answers: {kind = "openai", name, base_url (https on aws), '
            'api_key_secret?}, {kind = "bedrock", name} or {kind = "recorded"}, each with system?, '
            "context_messages_max? and context_tokens_max?; absent, no responder is deployed"
        ),
    ] = None
    local_endpoint: Annotated[
        Annotated[str, Meta(pattern=r"^http://127\.0\.0\.1:[0-9]{1,5}$")] | None,
        Meta(description='the emulator, "http://127.0.0.1:PORT"; required on the local target and only there'),
    ] = None
    hot_endpoint: Annotated[
        HotAddress | dict[Region, HotAddress] | None,
        Meta(
            description='a Valkey of your own, "HOST:PORT"; with several regions one for each, '
            '{us-east-1 = "HOST:PORT", …}; required on the local target'
        ),
    ] = None

    @property
    def service_account_names(self) -> tuple[str, ...]:
        """Each as the functions are told of it: tenant and user, percent-encoded."""
        encoded = [(tenant, user) for tenant, users in self.service_accounts.items() for user in users]
        return tuple(f"{quote(tenant, safe='')}/{quote(user, safe='')}" for tenant, user in encoded)

    @property
    def home_region(self) -> str:
        """Where the global table is declared and the archive runs."""
        return self.regions[0]

    @property
    def archive_idle_ms(self) -> int:
        """`archive_idle_days`, as functions are told."""
        return round(self.archive_idle_days * 24 * 60 * 60_000)

    @property
    def archive_settle_ms(self) -> int:
        """`archive_settle_minutes`, as functions are told."""
        return round(self.archive_settle_minutes * 60_000)

    @property
    def terms(self) -> Terms:
        """How what is kept comes to its end, as functions are told."""
        return Terms(
            regions=self.regions,
            pitr_days=self.pitr_days,
            second_pass_ms=round(self.erasure_second_pass_minutes * 60_000),
            retention_days=self.retention_days,
        )

    def hot_address(self, region: str) -> tuple[str, int] | None:
        """Host and port of a region's bring-your-own Valkey; None where the deployment makes its own."""
        if self.hot_endpoint is None:
            return None
        named = self.hot_endpoint if isinstance(self.hot_endpoint, str) else self.hot_endpoint[region]
        host, _, port = named.rpartition(":")
        return host, int(port)

    def _is_hot_wrong(self) -> bool:
        """Whether a region would have no Valkey, a wrong one, or another region's: what streams in one is its alone."""
        if self.hot_endpoint is None:
            return self.target == "local"
        if isinstance(self.hot_endpoint, str):
            named = [self.hot_endpoint]
            fits = len(self.regions) == 1
        else:
            named = [*self.hot_endpoint.values()]
            fits = set(self.hot_endpoint) == set(self.regions)
        ports = [int(address.rpartition(":")[2]) for address in named]
        return not fits or len(set(named)) < len(named) or not all(0 < port <= _PORT_MAX for port in ports)

    @classmethod
    def from_file(cls, path: Path) -> Settings:
        """Read one deployment's TOML file.

        Raises:
            SettingsError: no file there, no TOML in it, or a setting is wrong, missing or unknown.
        """
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SettingsError(
                f"{path}: cannot be read as settings ({_one_line(error)}); settings.example.toml shows how one looks"
            ) from error
        try:
            return cls.from_values(values)
        except SettingsError as error:
            raise SettingsError(f"{path}: {error}") from error

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Settings:
        """Check plain values, as TOML gives them.

        Raises:
            SettingsError: the first setting, in the model's order, that is wrong, missing or unknown.
        """
        fields = {field.name: field for field in msgspec.structs.fields(cls)}
        for name in values:
            if name not in fields:
                near = difflib.get_close_matches(name, fields, n=1)
                hint = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(fields)}"
                raise SettingsError(f"setting `{name}` is unknown; {hint}")
        checked: dict[str, Any] = {}
        for name, field in fields.items():
            if name in values:
                try:
                    checked[name] = msgspec.convert(values[name], field.type)
                except msgspec.ValidationError as error:
                    raise _refused(name, values[name], error) from error
            elif field.required:
                raise _missing(name)
        if checked["target"] == "local":
            checked.setdefault("network", "public")
        settings = cls(**checked)
        _check_known(settings.regions)
        for name in settings._wrong_together():
            raise _refused(name, values[name], None) if name in values else _missing(name)
        return settings

    def _wrong_together(self) -> Iterator[str]:
        """Settings whose values are each possible, but not beside the others."""
        local = self.target == "local"
        wrong = {
            "regions": len(set(self.regions)) < len(self.regions),
            "evacuated": not set(self.evacuated) < set(self.regions),
            "endpoints": not set(self.endpoints) <= set(self.regions)
            or any(not local and not url.startswith("wss://") for url in self.endpoints.values()),
            "jwks_url": not local and urlsplit(self.jwks_url).scheme != "https",
            "query_token": self.query_token and not local,
            "model": self.model is not None and not local and self.model.base_url.startswith("http://"),
            "local_endpoint": local is (self.local_endpoint is None),
            "hot_endpoint": self._is_hot_wrong(),
            "account": local and self.account not in (None, LOCAL_ACCOUNT),
            "retention_days": sum(len(quote(tenant)) + 7 for tenant in self.retention_days) > _RETENTION_CHARS_MAX,
            "service_accounts": sum(len(name) + 1 for name in self.service_account_names) > _ACCOUNTS_CHARS_MAX,
            # An upload may be begun for 15 min after it was asked for: what lands has to be there for the second pass.
            "erasure_second_pass_minutes": not local and self.erasure_second_pass_minutes < _SECOND_PASS_MINUTES_MIN,
            "archive_idle_days": not local and self.archive_idle_days < 1,
            # Whoever has read the manifests goes on to the table within a quarter of an hour, as long as any function
            # runs: what has moved since must still be there.
            "archive_settle_minutes": not local and self.archive_settle_minutes < _SETTLE_MINUTES_MIN,
            "availability_zones": not set(self.availability_zones) <= set(self.regions)
            or any(len(set(zones)) < len(zones) for zones in self.availability_zones.values()),
        }
        return (name for name, is_wrong in wrong.items() if is_wrong)


def _check_known(regions: tuple[str, ...]) -> None:
    for region in regions:
        likely = nearest(region)
        if likely is not None:
            raise SettingsError(
                f"setting `regions` names {region!r}, a region that botocore does not know; did you mean `{likely}`?"
            )


def find(named: str | None, environment: Mapping[str, str], root: Path) -> Path:
    """Which file holds the settings: the one named, else the one in the environment, else the root's own.

    Args:
        named: the value of the CDK context ``settings`` (``cdk deploy -c settings=FILE``), if given.
        environment: the process's environment.
        root: the project's root, where ``settings.toml`` lies by default.
    """
    chosen = named or environment.get(ENVIRONMENT_VARIABLE)
    return Path(chosen) if chosen else root / DEFAULT_FILE


def _missing(name: str) -> SettingsError:
    return SettingsError(f"setting `{name}` is missing; it is {_may_be(name)}")


def _refused(name: str, value: object, error: msgspec.ValidationError | None) -> SettingsError:
    if name == "model":  # not repeated: somebody may have written their key into it
        reason = "its values do not fit together" if error is None else _one_line(error)
        return SettingsError(f"setting `{name}` is refused ({reason}); it may be {_may_be(name)}")
    return SettingsError(f"setting `{name}` is {_one_line(value)!r}; it may be {_may_be(name)}")


def _one_line(value: object) -> object:
    return " ".join(str(value).split()) if isinstance(value, str | Exception) else value


def _may_be(name: str) -> str:
    field = next(field for field in msgspec.structs.fields(Settings) if field.name == name)
    info = msgspec.inspect.type_info(field.type)
    extra = info.extra_json_schema if isinstance(info, msgspec.inspect.Metadata) else None
    if not extra or "description" not in extra:
        raise TypeError(f"setting `{name}` has no description")
    return str(extra["description"])
