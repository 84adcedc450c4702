"""psd sign: who vouches for a release, and what is refused."""

import json
import stat
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import psd
from psd.signing import sign, signature_name
from support.cli_runner import check_refusals, cli, fails, files, passes, three_by_three

GOLDEN = Path(__file__).parents[1] / "golden"
SIGN = "sign file r.psd.parquet --key office.pem"
VERIFY = "sign check r.psd.parquet --key office.pub.pem"


@pytest.fixture(autouse=True)
def place(release, here):
    """A folder with a release and a key, in which the commands run."""
    said = passes("sign new office.pem")
    assert said == "wrote office.pem (PRIVATE) and office.pub.pem (public)\n"
    return here


def test_an_office_signs_and_a_reader_verifies(place, release):
    before = release.read_bytes()
    assert passes(SIGN) == "wrote r.psd.parquet.sig\n"
    digest = f"digest {psd.load(release).digest}"
    matches = "the content matches the signature of the key in office.pub.pem"
    assert passes(VERIFY).splitlines() == [digest, matches]
    unsigned = "the content matches the digest; no signature was checked (see --key)"
    assert passes("sign check r.psd.parquet").splitlines() == [digest, unsigned]
    assert release.read_bytes() == before
    names = ["office.pem", "office.pub.pem", "r.psd.parquet", "r.psd.parquet.sig"]
    assert files(place) == names
    assert "exists" in fails(6, SIGN)
    passes(SIGN, "--overwrite")


def test_a_private_key_is_for_its_owner_and_never_overwritten(place, subtests):
    assert stat.S_IMODE((place / "office.pem").stat().st_mode) == 0o600
    table = [(6, "office.pem", "a key is never overwritten"), (6, ".", "is a folder")]
    check_refusals(subtests, table, "sign new")
    (place / "office.pem").rename("kept.pem")
    check_refusals(subtests, [(6, "office.pem", "office.pub.pem exists")], "sign new")


def test_a_series_is_signed_likewise(place):
    months = psd.TimeSlices.parse("month", "2024-01..2024-02")
    psd.Release.from_slices(months, (three_by_three(), three_by_three())).save("s")
    passes("sign file s --key office.pem")
    passes("sign check s --key office.pub.pem")
    (place / "s.sig").replace("r.psd.parquet.sig")
    assert "must be of digest" in fails(5, VERIFY)


EDITED = [
    ({"signature": "0" * 128}, "not valid"),
    ({"signature": "0" * 126}, "damaged"),
    ({"signature": "G" * 128}, "damaged"),
    ({"digest": 5}, "damaged"),
    ({"key": "0" * 64}, "another key"),
    ({"version": 2}, "another version"),
    ({"version": True}, "another version"),
    ({"note": "x"}, "another version"),
    ({"key": ...}, "another version"),
    ({"note": "x" * 5000}, "another version"),
]


def test_other_signatures_are_refused(place, subtests):
    assert "must be a file, got r.psd.parquet.sig, which does not exist" in fails(5, VERIFY)
    sign("r.psd.parquet", "office.pem")
    target = place / "r.psd.parquet.sig"
    signed = target.read_text()
    for changes, told in EDITED:
        with subtests.test(str(changes)):
            body = json.loads(signed) | changes
            target.write_text(json.dumps({n: value for n, value in body.items() if value != ...}))
            assert told in fails(5, VERIFY)
    target.write_text(signed + " " * 5000 + "more")
    assert "another version" in fails(5, VERIFY)
    target.write_bytes(b"\xff" * 64)
    assert "must be a file that psd sign file wrote, got r.psd.parquet.sig" in fails(5, VERIFY)


def test_a_signature_elsewhere_is_named(place, subtests):
    for name in ("absent", ".", "r.psd.parquet"):
        said = fails(5, VERIFY, "--signature", name)
        assert "--signature must be a file" in said
        assert f", got {name}" in said
    sign("r.psd.parquet", "office.pem")
    (place / "r.psd.parquet.sig").rename("of-the-office.sig")
    passes(VERIFY, "--signature", "of-the-office.sig")
    assert "--key" in fails(2, "sign check r.psd.parquet --signature of-the-office.sig")


def pem(private, encryption=None):
    hidden = encryption or NoEncryption()
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden)


def test_keys_that_cannot_be_used_are_refused(place, subtests):
    own = ed25519.Ed25519PrivateKey.generate()
    public = own.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    unusable = {
        "rsa.pem": pem(rsa.generate_private_key(public_exponent=65537, key_size=2048)),
        "locked.pem": pem(own, BestAvailableEncryption(b"word")),
        "public.pem": public,
        "empty.pem": b"",
        "bytes.pem": b"\x00\xff" * 3000,
    }
    for name, content in unusable.items():
        (place / name).write_bytes(content)
        (place / name).chmod(0o600)
    table = [(2, name, "must be a private Ed25519 key") for name in unusable]
    table += [(2, "absent.pem", "does not exist"), (2, ".", "is not a file")]
    check_refusals(subtests, table, "sign file r.psd.parquet --key")
    del unusable["public.pem"]
    table = [(2, name, "must be a public") for name in (*unusable, "office.pem")]
    check_refusals(subtests, table, "sign check r.psd.parquet --key")


def test_sound_releases_alone_are_signed(release, place):
    content = bytearray(release.read_bytes())
    at = content.index(b'"epsilon": "1"') + 12
    content[at] ^= 2
    release.write_bytes(content)
    said = fails(5, SIGN)
    assert "digest" in said or "epsilon" in said
    assert "digest" in fails(5, "sign check r.psd.parquet") or "epsilon" in said
    assert not signature_name("r.psd.parquet").exists()
    (place / "old").write_bytes((GOLDEN / "old" / "about.psd.parquet").read_bytes())
    for line in (
        "sign check old",
        "sign check old --key office.pub.pem",
        "sign file old --key office.pem",
    ):
        assert "has the old release format 9" in fails(5, line)


def test_without_cryptography_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    for line in ("sign new k.pem", SIGN):
        assert ".[sign]" in fails(7, line)
    assert cli("sign check r.psd.parquet").code == 0
