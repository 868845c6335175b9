"""The local cloud's own token issuer: an ES256 key pair, its JWKS, and tokens signed with it."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self

import jwt
import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from jwt.algorithms import ECAlgorithm

ISSUER: Final = "https://local.threadkeep.invalid/"
AUDIENCE: Final = "threadkeep"
LIFETIME_S: Final = 3600


class SigningKey(msgspec.Struct, frozen=True, kw_only=True):
    """An ES256 key (RFC 7518, section 3.4) with the issuer that it speaks for.

    Attributes:
        pem: the private key, PKCS 8. Only the local cloud ever trusts it.
    """

    pem: str
    issuer: str = ISSUER
    audience: str = AUDIENCE

    @classmethod
    def generate(cls) -> Self:
        """A new key on P-256."""
        private = ec.generate_private_key(ec.SECP256R1())
        return cls(pem=private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read the PEM that `to_file` wrote.

        Raises:
            OSError: it cannot be read.
        """
        return cls(pem=path.read_text())

    def to_file(self, path: Path) -> None:
        """Write the PEM, for its owner alone."""
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_text(self.pem)

    @property
    def kid(self) -> str:
        """The key's thumbprint (RFC 7638, section 3): SHA-256 of the required members in lexical order."""
        jwk = self._public_jwk()
        required = {name: jwk[name] for name in ("crv", "kty", "x", "y")}
        digest = hashes.Hash(hashes.SHA256())
        digest.update(json.dumps(required, separators=(",", ":"), sort_keys=True).encode())
        return base64.urlsafe_b64encode(digest.finalize()).rstrip(b"=").decode()

    def to_jwks(self) -> str:
        """The public half as a JWK set (RFC 7517)."""
        key = self._public_jwk() | {"kid": self.kid, "alg": "ES256", "use": "sig"}
        return json.dumps({"keys": [key]})

    def mint_token(self, *, sub: str, tenant: str, scope: Iterable[str], lifetime_s: int = LIFETIME_S) -> str:
        """A token with the claims that the service reads; a negative lifetime makes an expired one."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": sub,
            "tenant": tenant,
            "scope": " ".join(scope),
            "iat": now,
            "exp": now + lifetime_s,
        }
        return jwt.encode(claims, self.pem, algorithm="ES256", headers={"kid": self.kid})

    def _public_jwk(self) -> dict[str, Any]:
        private = load_pem_private_key(self.pem.encode(), password=None)
        assert isinstance(private, ec.EllipticCurvePrivateKey)  # noqa: S101 - generate() makes no other
        return ECAlgorithm.to_jwk(private.public_key(), as_dict=True)
