"""Tokens against keys that a small real HTTP server publishes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, Final

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from tests.support.serving import serving
from threadkeep.ports import TokenRefused
from threadkeep.stores import jwks
from threadkeep.stores.jwks import JwksVerifier

ISSUER: Final = "https://issuer.example/"
AUDIENCE: Final = "threadkeep"
RSA_KEY: Final = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
EC_KEY: Final = ec.generate_private_key(ec.SECP256R1())
ED_KEY: Final = ed25519.Ed25519PrivateKey.generate()
OTHER_KEY: Final = ec.generate_private_key(ec.SECP256R1())


def jwk(kid: str, public: dict[str, Any]) -> dict[str, Any]:
    """A published key."""
    return public | {"kid": kid, "use": "sig"}


KEYS: Final = {
    "pss": jwk("pss", RSAAlgorithm.to_jwk(RSA_KEY.public_key(), as_dict=True)) | {"alg": "PS256"},
    "rsa": jwk("rsa", RSAAlgorithm.to_jwk(RSA_KEY.public_key(), as_dict=True)),
    "ec": jwk("ec", ECAlgorithm.to_jwk(EC_KEY.public_key(), as_dict=True)),
    "ed": jwk("ed", OKPAlgorithm.to_jwk(ED_KEY.public_key(), as_dict=True)),
    "other": jwk("other", ECAlgorithm.to_jwk(OTHER_KEY.public_key(), as_dict=True)),
}


class Issuer:
    """Publishes keys on 127.0.0.1.

    Attributes:
        body: what it answers.
        status: with which status.
        asked: how often it was asked.
        resets: whether it resets the connection in the middle of the answer.
    """

    def __init__(self) -> None:
        self.status = 200
        self.asked = 0
        self.resets = False
        self.publish("rsa", "pss", "ec", "ed")
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked += 1
                self.send_response(issuer.status)
                self.send_header("Content-Length", str(len(issuer.body)))
                self.end_headers()
                if issuer.resets:
                    self.wfile.flush()
                    time.sleep(0.05)  # until the head is read: it is the body that is cut
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    os.close(self.connection.detach())
                    return
                self.wfile.write(issuer.body)

            def log_message(self, *_: object) -> None:
                """Tests are quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        """Where the keys are."""
        return f"http://127.0.0.1:{self.server.server_port}/jwks.json"

    def publish(self, *names: str) -> None:
        """Publish these keys and no others."""
        self.body = json.dumps({"keys": [KEYS[name] for name in names]}).encode()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    with serving(made.server):
        yield made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The verifier's own clock: `seconds` is what it shows."""
    shown = SimpleNamespace(seconds=1_000.0)
    monkeypatch.setattr(jwks, "time", SimpleNamespace(monotonic=lambda: shown.seconds))
    return shown


@pytest.fixture
def verifier(issuer: Issuer, clock: SimpleNamespace) -> JwksVerifier:
    assert clock.seconds
    return JwksVerifier(url=issuer.url, issuer=ISSUER, audience=AUDIENCE)


def claims(**changed: Any) -> dict[str, Any]:
    """Those of a good token; None takes one away."""
    good: dict[str, Any] = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "tenant": "acme", "scope": "chat"}
    good |= {"exp": int(time.time()) + 300}
    return {name: value for name, value in (good | changed).items() if value is not None}


def token(key: Any = EC_KEY, algorithm: str = "ES256", kid: str | None = "ec", **changed: Any) -> str:
    """A signed token."""
    return jwt.encode(claims(**changed), key, algorithm=algorithm, headers={} if kid is None else {"kid": kid})


def refused(verifier: JwksVerifier, shown: str) -> str:
    """Why a token is refused; never by quoting it."""
    with pytest.raises(TokenRefused) as caught:
        verifier.claims(shown)
    assert shown not in str(caught.value) or not shown
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"),
    [(RSA_KEY, "RS256", "rsa"), (RSA_KEY, "PS256", "pss"), (EC_KEY, "ES256", "ec"), (ED_KEY, "EdDSA", "ed")],
)
def test_a_token_that_a_published_key_signed_holds(verifier: JwksVerifier, key: Any, algorithm: str, kid: str) -> None:
    told = verifier.claims(token(key, algorithm, kid, aud=["other", AUDIENCE]))
    assert (told["sub"], told["tenant"], told["scope"]) == ("ann", "acme", "chat")


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://issuer.example"},
        {"iss": "https://evil.example/"},
        {"iss": None},
        {"aud": "other"},
        {"aud": ["other"]},
        {"aud": None},
        {"exp": 1_700_000_000},
        {"exp": None},
        {"exp": "soon"},
        {"nbf": 4_000_000_000},
        {"sub": None},
        {"sub": 7},
    ],
    ids=str,
)
def test_claims_that_do_not_hold_are_refused(verifier: JwksVerifier, changed: dict[str, Any]) -> None:
    assert refused(verifier, token(**changed))


def _segment(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unsigned(algorithm: str) -> str:
    """A token that says it needs no signature."""
    return f"{_segment({'alg': algorithm, 'typ': 'JWT', 'kid': 'ec'})}.{_segment(claims())}."


def signed_with_the_public_key(kid: str, secret: bytes) -> str:
    """A token signed with what everybody can read, as a shared secret."""
    said = f"{_segment({'alg': 'HS256', 'typ': 'JWT', 'kid': kid})}.{_segment(claims())}"
    return f"{said}.{_segment(hmac.digest(secret, said.encode(), hashlib.sha256))}"


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", ""])
def test_a_token_without_a_signature_is_refused(verifier: JwksVerifier, algorithm: str) -> None:
    assert refused(verifier, unsigned(algorithm))


@pytest.mark.parametrize("form", [Encoding.PEM, Encoding.DER])
@pytest.mark.parametrize(("kid", "key"), [("rsa", RSA_KEY), ("ec", EC_KEY)])
def test_a_public_key_is_no_shared_secret(
    verifier: JwksVerifier, kid: str, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, form: Encoding
) -> None:
    public = key.public_key().public_bytes(form, PublicFormat.SubjectPublicKeyInfo)
    assert refused(verifier, signed_with_the_public_key(kid, public))


def test_another_keys_signature_is_refused(verifier: JwksVerifier) -> None:
    assert refused(verifier, token(OTHER_KEY)) == "InvalidSignatureError"
    assert refused(verifier, token(OTHER_KEY, kid="other")) == "unknown key"
    assert refused(verifier, token(kid=None)) == "unknown key"


def test_an_algorithm_that_is_not_the_keys_is_refused(verifier: JwksVerifier) -> None:
    assert refused(verifier, token(RSA_KEY, "RS256", "ec"))
    assert refused(verifier, token(EC_KEY, "ES256", "rsa"))


@pytest.mark.parametrize("shown", ["", "x", "a.b", "a.b.c", "....", "\0", "界.界.界", "e30.e30.", "[].[].[]"])
def test_what_is_no_token_is_refused_before_any_key_is_fetched(
    verifier: JwksVerifier, issuer: Issuer, shown: str
) -> None:
    assert refused(verifier, shown)
    assert issuer.asked <= 2


def test_a_changed_token_is_refused(verifier: JwksVerifier) -> None:
    header, payload, signature = token().split(".")
    more = _segment(json.loads(base64.urlsafe_b64decode(payload + "==")) | {"scope": "produce"})
    assert refused(verifier, f"{header}.{more}.{signature}") == "InvalidSignatureError"


# --- the keys -------------------------------------------------------------------------------------------------


def test_the_keys_are_fetched_once_for_many_tokens(verifier: JwksVerifier, issuer: Issuer) -> None:
    for _ in range(20):
        verifier.claims(token())
    assert issuer.asked == 1


def test_a_flood_of_unknown_keys_causes_at_most_one_refresh_a_minute(
    verifier: JwksVerifier, issuer: Issuer, clock: SimpleNamespace
) -> None:
    verifier.claims(token())
    for minute in range(3):
        for number in range(60):
            clock.seconds = 1_000.0 + minute * 60 + number
            assert refused(verifier, token(kid=f"made-up-{minute}-{number}")) == "unknown key"
        assert issuer.asked == 1 + 1 + minute
    verifier.claims(token())


def test_a_rotated_key_is_taken_up_and_the_former_no_longer_trusted(
    verifier: JwksVerifier, issuer: Issuer, clock: SimpleNamespace
) -> None:
    verifier.claims(token())
    issuer.publish("other")
    verifier.claims(token(OTHER_KEY, kid="other"))
    clock.seconds += 60
    assert refused(verifier, token()) == "unknown key"


def test_keys_that_are_five_minutes_old_are_fetched_anew(
    verifier: JwksVerifier, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier.claims(token())
    begun = time.monotonic()
    monkeypatch.setattr("jwt.jwk_set_cache.time.monotonic", lambda: begun + 299)
    verifier.claims(token())
    assert issuer.asked == 1
    monkeypatch.setattr("jwt.jwk_set_cache.time.monotonic", lambda: begun + 301)
    verifier.claims(token())
    assert issuer.asked == 2


def _failing(status: int) -> Callable[[Issuer], None]:
    def fail(issuer: Issuer) -> None:
        issuer.status = status

    return fail


def _resetting(issuer: Issuer) -> None:
    issuer.resets = True


def _answering(body: bytes) -> Callable[[Issuer], None]:
    def answer(issuer: Issuer) -> None:
        issuer.body = body

    return answer


@pytest.mark.parametrize(
    "spoil",
    [
        _failing(500),
        _failing(404),
        _resetting,
        _answering(b""),
        _answering(b"<html>"),
        _answering(b"\xff\xfe"),
        _answering(b"[]"),
        _answering(b"{}"),
        _answering(b'{"keys":[]}'),
        _answering(b'{"keys":7}'),
    ],
)
def test_keys_that_cannot_be_had_refuse_every_token_until_they_can(
    verifier: JwksVerifier, issuer: Issuer, spoil: Callable[[Issuer], None]
) -> None:
    spoil(issuer)
    assert refused(verifier, token())
    issuer.status = 200
    issuer.resets = False
    issuer.publish("ec")
    assert verifier.claims(token())["sub"] == "ann"


def test_an_issuer_that_is_not_there_refuses_every_token(issuer: Issuer, clock: SimpleNamespace) -> None:
    assert clock.seconds
    verifier = JwksVerifier(url=issuer.url.replace("jwks.json", ""), issuer=ISSUER, audience=AUDIENCE)
    issuer.server.server_close()
    assert refused(verifier, token())


def test_a_shared_secret_among_the_keys_signs_nothing(verifier: JwksVerifier, issuer: Issuer) -> None:
    secret = b"a secret of thirty-two bytes, yes"
    shared = {"kty": "oct", "k": _segment(secret), "kid": "shared", "alg": "HS256"}
    issuer.body = json.dumps({"keys": [shared, KEYS["ec"]]}).encode()
    assert refused(verifier, signed_with_the_public_key("shared", secret))
