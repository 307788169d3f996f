"""The serving certificate: its life, its rotation, and pairs that do not fit (decision 23)."""

from __future__ import annotations

import logging
import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from aicr.errors import AicrError
from aicr.preflight.server_tls import Certificate, Validity, validity

DAY = 86400.0


def write(folder: Path, pair: trustme.LeafCert, *, key: trustme.LeafCert | None = None) -> None:
    """Write a certificate and a key, as a Secret volume shows them."""
    pair.cert_chain_pems[0].write_to_path(str(folder / "tls.crt"))
    (key or pair).private_key_pem.write_to_path(str(folder / "tls.key"))
    for name in ("tls.crt", "tls.key"):
        # A file system with coarse times must not hide the change.
        os.utime(folder / name, ns=(0, int.from_bytes(os.urandom(5), "big")))


def served(certificate: Certificate, authority: trustme.CA) -> str:
    """The serial number that a new handshake is shown; raises if the client does not trust it."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(down, up, server_hostname="preflight.test")
    server = certificate.context.wrap_bio(up, down, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    found = client.getpeercert()
    assert found is not None
    return str(found["serialNumber"])


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2049, 12, 31, tzinfo=UTC)),
        (datetime(2020, 1, 1, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC)),
        (datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
    ids=["two digits of a year", "four digits from 2050", "extremes"],
)
def test_the_life_of_a_certificate_is_read_from_its_bytes(start: datetime, end: datetime) -> None:
    """As a library for certificates reads it, without one (RFC 5280: UTCTime and GeneralizedTime)."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "n" * 60)])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1 << 150)
        .not_valid_before(start)
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )
    found = validity(made.public_bytes(serialization.Encoding.DER))
    assert (found.start, found.end) == (start.timestamp(), end.timestamp())


@pytest.mark.parametrize(
    "data", [b"0\x03\x02\x01\x01", b"0\x80", b"1\x00", b"0\x05" + b"0\x03" * 2]
)
def test_bytes_that_are_no_certificate_are_refused(data: bytes) -> None:
    """Never a wrong date."""
    with pytest.raises((ValueError, IndexError)):
        validity(data)


@pytest.mark.parametrize(
    ("day", "problem"),
    [
        (-1, "not valid yet"),
        (0, ""),
        (94.9, ""),
        (95, "less than 5 %"),
        (99.9, "less than 5 %"),
        (100, "expired"),
    ],
)
def test_readiness_ends_before_the_certificate_does(day: float, problem: str) -> None:
    """With 5 % of its life left a replica is taken out of service, while it still works."""
    found = Validity(0.0, 100 * DAY).problem(day * DAY)
    assert problem in found
    assert bool(found) == bool(problem)


def test_a_rotated_certificate_is_served_without_a_restart(tmp_path: Path) -> None:
    """New handshakes see the new one, also one of another authority."""
    old, new = trustme.CA(), trustme.CA()
    write(tmp_path, old.issue_cert("preflight.test"))
    told: list[bool] = []
    certificate = Certificate(str(tmp_path), loaded=lambda fine, _: told.append(fine))
    certificate.load()
    first = served(certificate, old)
    assert not certificate.refresh()
    write(tmp_path, new.issue_cert("preflight.test"))
    assert certificate.refresh()
    assert served(certificate, new) != first
    with pytest.raises(ssl.SSLError):
        served(certificate, old)
    assert told == [True, True]


def test_a_pair_that_does_not_fit_is_not_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Between the two writes of a rotation the old pair goes on; it is complained of once."""
    authority = trustme.CA()
    first, second = authority.issue_cert("preflight.test"), authority.issue_cert("preflight.test")
    write(tmp_path, first)
    certificate = Certificate(str(tmp_path))
    certificate.load()
    before = served(certificate, authority)
    write(tmp_path, second, key=first)
    with caplog.at_level(logging.ERROR):
        assert not certificate.refresh()
        assert not certificate.refresh()
    assert caplog.text.count("Failed to reload certificate") == 1
    assert served(certificate, authority) == before
    (tmp_path / "tls.key").unlink()
    assert not certificate.refresh()
    write(tmp_path, second)
    assert certificate.refresh()
    assert served(certificate, authority) != before


def test_an_expired_certificate_is_not_ready_but_still_served(tmp_path: Path) -> None:
    """A client that does not check is answered; the probe takes the replica out."""
    authority = trustme.CA()
    past = datetime.now(UTC) - timedelta(days=1)
    write(tmp_path, authority.issue_cert("preflight.test", not_after=past))
    certificate = Certificate(str(tmp_path))
    certificate.load()
    assert certificate.validity.problem(datetime.now(UTC).timestamp())


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "there is no"),
        ({"tls.crt": "x"}, "there is no"),
        ({"tls.crt": "x", "tls.key": "y"}, "no PEM certificate"),
        (
            {
                "tls.crt": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
                "tls.key": "",
            },
            "no PEM certificate",
        ),
    ],
)
def test_a_certificate_that_cannot_be_read_ends_the_start(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    """There is no webhook without TLS."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(AicrError, match=said):
        Certificate(str(tmp_path)).load()


def test_old_protocols_are_refused(tmp_path: Path) -> None:
    """TLS 1.2 is the oldest that is spoken."""
    assert Certificate(str(tmp_path)).context.minimum_version == ssl.TLSVersion.TLSv1_2
