from __future__ import annotations

import base64
import hashlib
import json
import stat
from pathlib import Path

import jwt
import pytest

from local.keys import AUDIENCE, ISSUER, SigningKey


def verified(token: str, jwks: str) -> dict[str, object]:
    """As an authorizer does it: by the key set alone."""
    keys = jwt.PyJWKSet.from_json(jwks)
    key = keys[jwt.get_unverified_header(token)["kid"]]
    return jwt.decode(token, key, algorithms=["ES256"], audience=AUDIENCE, issuer=ISSUER)


def test_a_token_is_verified_by_the_key_set_and_carries_what_was_asked() -> None:
    key = SigningKey.generate()
    claims = verified(key.mint_token(sub="ada", tenant="acme", scope=["chat", "produce"], lifetime_s=60), key.to_jwks())
    assert (claims["sub"], claims["tenant"], claims["scope"]) == ("ada", "acme", "chat produce")
    assert isinstance(claims["iat"], int)
    assert claims["exp"] == claims["iat"] + 60


def test_another_key_does_not_verify() -> None:
    token = SigningKey.generate().mint_token(sub="ada", tenant="acme", scope=["chat"])
    with pytest.raises(KeyError):
        verified(token, SigningKey.generate().to_jwks())


def test_a_negative_lifetime_makes_an_expired_token() -> None:
    key = SigningKey.generate()
    token = key.mint_token(sub="ada", tenant="acme", scope=["chat"], lifetime_s=-60)
    with pytest.raises(jwt.ExpiredSignatureError):
        verified(token, key.to_jwks())


def test_the_key_set_holds_no_private_half() -> None:
    (key,) = json.loads(SigningKey.generate().to_jwks())["keys"]
    assert set(key) == {"kty", "crv", "x", "y", "kid", "alg", "use"}


def test_the_file_gives_the_key_back_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    key, file = SigningKey.generate(), tmp_path / "key.pem"
    key.to_file(file)
    assert SigningKey.from_file(file) == key
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_kid_is_the_thumbprint_of_rfc_7638() -> None:
    """Against another implementation of it: the same members, hashed by hand."""
    key = SigningKey.generate()
    jwk = json.loads(key.to_jwks())["keys"][0]
    digest = hashlib.sha256(f'{{"crv":"P-256","kty":"EC","x":"{jwk["x"]}","y":"{jwk["y"]}"}}'.encode())
    assert base64.urlsafe_b64encode(digest.digest()).decode().rstrip("=") == key.kid
