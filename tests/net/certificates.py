"""Certificates for TLS: one that is right, signed by a test authority, and others that a client must refuse."""

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NOW = datetime.datetime.now(datetime.timezone.utc)
DAY = datetime.timedelta(days=1)
HERE = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
ELSEWHERE = [x509.DNSName("elsewhere.example")]


def name_of(text):
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


class Authority:
    def __init__(self, name):
        self.name, self.key = name_of(name), ec.generate_private_key(ec.SECP256R1())
        self.certificate = self.sign(self.name, self.key.public_key(), x509.BasicConstraints(ca=True, path_length=None))

    def sign(self, subject, key, *extensions, begin=NOW - 2 * DAY, end=NOW + 30 * DAY):
        builder = x509.CertificateBuilder(self.name, subject, key, x509.random_serial_number(), begin, end)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = builder.add_extension(issuer, False)
        for extension in extensions:
            builder = builder.add_extension(extension, isinstance(extension, x509.BasicConstraints))
        return builder.sign(self.key, hashes.SHA256())

    def issue(self, folder, name, hosts, **dates):
        """FOLDER/NAME.pem and NAME.key, for a server of these hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self.sign(name_of(name), key.public_key(), x509.SubjectAlternativeName(hosts),
                                x509.BasicConstraints(ca=False, path_length=None), **dates)
        write(folder / f"{name}.pem", certificate)
        (folder / f"{name}.key").write_bytes(key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))


def write(path, certificate):
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def make(folder):
    """In the folder ca.pem, which a client is told to trust, and the servers' certificates, by name."""
    authority = Authority("test authority")
    write(folder / "ca.pem", authority.certificate)
    authority.issue(folder, "https", HERE)
    authority.issue(folder, "https1", HERE)
    authority.issue(folder, "expired", HERE, end=NOW - DAY)
    authority.issue(folder, "misnamed", ELSEWHERE)
    Authority("unknown authority").issue(folder, "untrusted", HERE)
