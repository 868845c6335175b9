"""Servers of a test's own, each from a thread while a block runs, and the certificates that they show."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseServer

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class QuietServer(ThreadingHTTPServer):
    """A client that leaves midway is nothing to print between its own words, and nothing to wait for."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def serving(server: BaseServer) -> Iterator[None]:
    """It serves meanwhile, and is closed at the end."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def write_certificate(path: Path, *, of: str = "127.0.0.1") -> Path:
    """A key and a certificate of an IP address or a name, which vouches for itself for an hour, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, of)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([_general_name(of)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path


def _general_name(of: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(of))
    except ValueError:
        return x509.DNSName(of)


def server_tls(certificate: Path) -> ssl.SSLContext:
    """TLS of a server that shows it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
