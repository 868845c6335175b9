"""Every key that any test has a store write carries its tenant, percent-encoded: listened for in the whole suite.

Heard are the keys of every command to Valkey, of every write to DynamoDB and S3 (presigned ones too), and what the
stores in memory hold when a test ends. The tenant in a key must be one that a store was asked about meanwhile, so that
a user, a conversation or a constant in its place is found. Two indexes are the system's own: the deadlines in Valkey,
whose entries name the tenant, and what is due for the archive, which stands beside a key that does.

Not heard is what other processes do: a server that a test kills, the functions of a deployed local cloud (of whose
Valkey all keys are looked at in the end).
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import wraps
from types import FunctionType
from typing import Any, Final
from urllib.parse import quote, unquote

import pytest
from botocore.client import BaseClient

import threadkeep.stores
from threadkeep import schema
from threadkeep.domain.model import ConversationKey
from threadkeep.stores.valkey_client import ValkeyClient

_ENCODED: Final = r"(?:[A-Za-z0-9_.~-]|%[0-9A-F]{2})*"
"""A name as keys have it. Tests of stores call some tenants by the empty name, which no authorizer lets through."""
_VALKEY: Final = re.compile(
    rf"\{{(?P<tenant>{_ENCODED})/{_ENCODED}\}}:\w+(:{_ENCODED})?"
    rf"|quota:\{{(?P<limited>{_ENCODED})\}}(:[rs]:{_ENCODED})?"
)
_DEADLINES: Final = re.compile(r"due:\{\d+\}")
_DEADLINE_ENTRY: Final = re.compile(rf"(?P<tenant>{_ENCODED})/{_ENCODED}/{_ENCODED}")
_PARTITION: Final = re.compile(rf"(?P<tenant>{_ENCODED})#(!exporting#)?!?{_ENCODED}(#{_ENCODED})?")
_DUE: Final = re.compile(r"\d{4}-\d{2}-\d{2}#\d+")
_OBJECT: Final = re.compile(
    rf"({schema.BODIES_PREFIX}|{schema.BLOBS_PREFIX}|{schema.SEGMENTS_PREFIX}|{schema.UPLOADS_PREFIX}"
    rf"|{schema.EXPORTS_PREFIX})(?P<tenant>{_ENCODED})/.+"
)
_BOUND: Final = re.compile(r"(#?\w+)\s*=\s*(?:if_not_exists\([^,]+,\s*)?(:\w+)")
_ONLY_READ: Final = frozenset({"PTTL", "TTL", "GET", "HKEYS", "HGETALL", "LLEN", "ZCARD"})
_NO_KEYS: Final = frozenset({"ColdMemory.buckets", "ColdMemory._buckets", "OtherTablesMemory.tables"})
"""Attributes of stores in memory that go by regions."""


class Keys:
    """What was written under which keys, and about which tenants stores were asked.

    Attributes:
        is_held: whether the test is one whose keys are the service's.
    """

    def __init__(self) -> None:
        self.is_held = True
        self.tenants: set[str] = set()
        self._heard: dict[tuple[str, str, str], None] = {}
        self._memory: list[weakref.ref[Any]] = []

    def clear(self) -> None:
        """Forget it all."""
        self._heard.clear()
        self._memory.clear()

    # --- what is heard --------------------------------------------------------------------------------------------

    def note_tenants(self, value: object) -> None:
        """Those of an argument."""
        if isinstance(value, ConversationKey):
            self.tenants.add(value.tenant)
        elif isinstance(value, list | tuple):
            for each in value:
                self.note_tenants(each)
        else:
            key = getattr(value, "key", None)  # an entry of an index
            if isinstance(key, ConversationKey):
                self.tenants.add(key.tenant)

    def note_command(self, words: Sequence[str | bytes | int]) -> None:
        """A command to Valkey, by the words that were sent."""
        texts = [word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word) for word in words]
        verb = texts[0].upper()
        if verb in {"EVAL", "EVALSHA"}:
            count = int(texts[2])
            keys, arguments = texts[3 : 3 + count], texts[3 + count :]
        else:
            keys, arguments = texts[1:2], texts[2:]
        if verb in _ONLY_READ:
            return
        for key in keys:
            if _DEADLINES.fullmatch(key):
                for argument in arguments:
                    if not argument.isdigit():
                        self._hear("Valkey's deadlines", argument, _DEADLINE_ENTRY)
            else:
                self._hear("Valkey", key, _VALKEY)

    def note_call(self, service: str, operation: str, params: Mapping[str, Any]) -> None:
        """A call of an AWS client."""
        if service == "S3" and operation in {"PutObject", "CopyObject", "CreateMultipartUpload"}:
            self._hear("S3", params["Key"], _OBJECT)
        elif service == "DynamoDB" and operation in {"PutItem", "UpdateItem", "DeleteItem"}:
            self._note_item(params["Item" if operation == "PutItem" else "Key"])
            if operation == "UpdateItem":
                self._note_item(_updated(params))
        elif service == "DynamoDB" and operation == "BatchWriteItem":
            for requests in params["RequestItems"].values():
                for request in requests:
                    for kind, what in (("PutRequest", "Item"), ("DeleteRequest", "Key")):
                        if kind in request:
                            self._note_item(request[kind][what])

    def _note_item(self, item: Mapping[str, Any]) -> None:
        for name in (schema.PARTITION_KEY, schema.OWNER_KEY):
            if name in item:
                self._hear(f"the table's {name}", item[name]["S"], _PARTITION)
        if schema.DUE_KEY in item:
            self._hear(f"the table's {schema.DUE_KEY}", item[schema.DUE_KEY]["S"], _DUE)

    def note_memory(self, store: object) -> None:
        """A store in memory, which is looked at in the end."""
        self._memory.append(weakref.ref(store))

    def _hear(self, where: str, key: str, form: re.Pattern[str]) -> None:
        self._heard[where, key, form.pattern] = None

    # --- what is found --------------------------------------------------------------------------------------------

    def found(self) -> list[str]:
        """The keys that do not carry their tenant, each with where it was written."""
        wrong = [f"{where}: {key}" for where, key, form in self._heard if not self._is_right(re.fullmatch(form, key))]
        for store in filter(None, (reference() for reference in self._memory)):
            for name, held in vars(store).items():
                place = f"{type(store).__name__}.{name}"
                if isinstance(held, dict) and place not in _NO_KEYS:
                    wrong += [f"{place}: {key!r}" for key in list(held) if not self._is_right_in_memory(key)]
        return wrong

    def _is_right(self, match: re.Match[str] | None) -> bool:
        if match is None:
            return False
        named = [name for name in match.groupdict().values() if name is not None]
        return not match.re.groupindex or any(self._is_known(name) for name in named)

    def _is_known(self, encoded: str) -> bool:
        tenant = unquote(encoded)
        # Periods are encoded in some of the stores and left in others.
        return tenant in self.tenants and quote(tenant, safe="") == encoded.replace("%2E", ".")

    def _is_right_in_memory(self, key: object) -> bool:
        match key:
            case ConversationKey():
                return key.tenant in self.tenants
            case (ConversationKey() as conversation, _):
                return conversation.tenant in self.tenants
            case (str() as tenant, _):
                return tenant in self.tenants
            case str():
                return self._is_right(_OBJECT.fullmatch(key))
        return False


def _updated(params: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that an UpdateItem sets, as far as it sets them to a value."""
    names, values = params.get("ExpressionAttributeNames", {}), params.get("ExpressionAttributeValues", {})
    bound = _BOUND.findall(params.get("UpdateExpression", ""))
    return {names.get(name, name): values[value] for name, value in bound if value in values}


def names_a_tenant(valkey_key: str) -> bool:
    """Whether a key that another process wrote has the form of one that names a tenant, or is a set of deadlines."""
    match = _VALKEY.fullmatch(valkey_key)
    return bool(match and any(match.groupdict().values())) or _DEADLINES.fullmatch(valkey_key) is not None


# --- listening ----------------------------------------------------------------------------------------------------

current = Keys()
"""Those of the test that runs; replaced by the next one's."""


def _listen_to_stores() -> None:
    for module in pkgutil.iter_modules(threadkeep.stores.__path__):
        members = vars(importlib.import_module(f"threadkeep.stores.{module.name}"))
        for kind in [value for value in members.values() if isinstance(value, type)]:
            if kind.__module__ == f"threadkeep.stores.{module.name}":
                _listen_to(kind)


def _listen_to(kind: type) -> None:
    """Hear about which tenants its methods are asked; and of the store itself, where it keeps things in memory."""
    for name, member in list(vars(kind).items()):
        if isinstance(member, FunctionType) and not name.startswith("_"):
            parameters = list(inspect.signature(member).parameters)
            annotations = " ".join(map(str, member.__annotations__.values()))
            if "tenant" in parameters or "ConversationKey" in annotations or "Due" in annotations:
                setattr(kind, name, _asked(member, parameters))
    if kind.__name__.endswith("Memory") and isinstance(vars(kind).get("__init__"), FunctionType):
        setattr(kind, "__init__", _made(vars(kind)["__init__"]))  # noqa: B010 -- mypy takes no assignment


def _asked(method: Callable[..., Any], parameters: list[str]) -> Callable[..., Any]:
    at = parameters.index("tenant") if "tenant" in parameters else None

    @wraps(method)
    def asked(*args: Any, **named: Any) -> Any:
        for value in (*args[1:], *named.values()):
            current.note_tenants(value)
        if at is not None:
            current.tenants.add(args[at] if at < len(args) else named["tenant"])
        return method(*args, **named)

    return asked


def _made(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def made(store: Any, *args: Any, **named: Any) -> None:
        current.note_memory(store)
        method(store, *args, **named)

    return made


def _listen_to_clients() -> None:
    command, emit = ValkeyClient.command, vars(BaseClient)["_emit_api_params"]

    def command_heard(client: ValkeyClient, *words: str | bytes | int) -> Any:
        current.note_command(words)
        return command(client, *words)

    # Where botocore says what a call is about to be made of, and a presigned URL likewise.
    def emit_heard(client: Any, api_params: Any, operation_model: Any, context: Any) -> Any:
        current.note_call(client.meta.service_model.service_id, operation_model.name, api_params)
        return emit(client, api_params, operation_model, context)

    setattr(ValkeyClient, "command", command_heard)  # noqa: B010 -- as above
    setattr(BaseClient, "_emit_api_params", emit_heard)  # noqa: B010 -- as above


_listen_to_stores()
_listen_to_clients()


@pytest.fixture(autouse=True)
def tenant_in_every_key() -> Keys:
    """What this test writes under which keys."""
    global current  # noqa: PLW0603 -- stores cannot be handed it: tests build them in many ways
    current = Keys()
    return current


@pytest.fixture
def keys_of_no_tenant(tenant_in_every_key: Keys) -> None:
    """The test is about a client or a bucket, and calls its keys as it likes."""
    tenant_in_every_key.is_held = False


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Every test is held to it as a part of the test itself."""
    outcome = yield
    keys = pyfuncitem.funcargs["tenant_in_every_key"]
    assert isinstance(keys, Keys)
    if keys.is_held:
        assert not keys.found(), "keys without the tenant that they belong to"
    return outcome
