"""A throw-away certificate authority for tests with TLS servers and client certificates."""

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


class Authority:
    """Makes certificates below `folder`. `ca_file` is the authority's own certificate."""

    def __init__(self, folder: Path, name: str = "test authority") -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._count = 0
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        certificate = self._builder(self._name, self._key).add_extension(x509.BasicConstraints(True, None), True)
        self._certificate = certificate.add_extension(usage, True).sign(self._key, hashes.SHA256())
        self.ca_file = folder / f"{name.replace(' ', '-')}.pem"
        self.ca_file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False)
        )

    def issue(self, *names: str, client: bool = False, path: Path | None = None) -> Path:
        """A PEM file with key and certificate for host names and addresses, or for a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        purpose = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        certificate = (
            self._builder(subject, key)
            .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), False)
            .add_extension(x509.ExtendedKeyUsage([purpose]), False)
            .sign(self._key, hashes.SHA256())
        )
        self._count += 1
        path = path or self.folder / f"certificate-{self._count}.pem"
        encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
        path.write_bytes(private + certificate.public_bytes(encoding))
        return path

    def server(self, *names: str, client_required: bool = False) -> ssl.SSLContext:
        """A server's context for these names."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.issue(*names))
        if client_required:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.ca_file)
        return context


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
