"""psd keygen, sign and verify: who vouches for a release, and what is refused."""

import dataclasses
import json
import os
import stat
import sys

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
from psd.release.signing import new_key, sign, signature_name, verify
from support.cli_runner import cli, fails, files, passes, process, three_by_three
from support.releases import changed


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a release and a key, in which the commands run."""
    monkeypatch.chdir(tmp_path)
    three_by_three().save("r.psd.parquet")
    new_key("office.pem")
    return tmp_path


def series():
    months = psd.TimeSlices.parse("month", "2024-01..2024-02")
    return psd.SeriesRelease.of(months, (three_by_three(), three_by_three()))


def test_an_office_signs_and_a_reader_verifies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    three_by_three().save("r.psd.parquet")
    before = (tmp_path / "r.psd.parquet").read_bytes()
    said = passes("keygen", "office.pem")
    assert said == "wrote office.pem (PRIVATE) and office.pub.pem (public)\n"
    said = passes("sign", "r.psd.parquet", "--key", "office.pem")
    assert said == "wrote r.psd.parquet.sig\n"
    digest = psd.Release.load("r.psd.parquet").digest
    signed = passes("verify", "r.psd.parquet", "--key", "office.pub.pem").splitlines()
    assert signed == [
        f"digest {digest}",
        "the content matches the signature of the key in office.pub.pem",
    ]
    unsigned = passes("verify", "r.psd.parquet").splitlines()
    assert unsigned == [
        f"digest {digest}",
        "the content matches the digest; no signature was checked (see --key)",
    ]
    assert (tmp_path / "r.psd.parquet").read_bytes() == before
    names = ["office.pem", "office.pub.pem", "r.psd.parquet", "r.psd.parquet.sig"]
    assert files(tmp_path) == names


def test_a_series_is_signed_likewise(place):
    series().save("s.psd.parquet")
    passes("sign", "s.psd.parquet", "--key", "office.pem")
    passes("verify", "s.psd.parquet", "--key", "office.pub.pem")
    (place / "r.psd.parquet.sig").write_bytes((place / "s.psd.parquet.sig").read_bytes())
    assert "must be of digest" in fails(5, "verify", "r.psd.parquet", "--key", "office.pub.pem")


def test_a_private_key_is_for_its_owner_and_never_overwritten(place):
    assert stat.S_IMODE((place / "office.pem").stat().st_mode) == 0o600
    before = (place / "office.pem").read_bytes()
    assert "exists" in fails(6, "keygen", "office.pem")
    (place / "office.pem").rename("kept.pem")
    assert "office.pub.pem exists" in fails(6, "keygen", "office.pem")
    assert (place / "kept.pem").read_bytes() == before
    assert not (place / "office.pem").exists()


def test_another_release_under_the_same_name_is_noticed(place):
    sign("r.psd.parquet", "office.pem")
    made = psd.Release.load("r.psd.parquet")
    count = made.tree.count.copy()
    count[-1] += 1
    tree = dataclasses.replace(made.tree, count=count)
    changed(made, tree=tree).save("r.psd.parquet", overwrite=True)
    passes("verify", "r.psd.parquet")  # the digest alone tells of no forger
    said = fails(5, "verify", "r.psd.parquet", "--key", "office.pub.pem")
    assert "must be of digest" in said


def test_a_signature_of_another_key_is_refused(place):
    new_key("other.pem")
    sign("r.psd.parquet", "other.pem")
    said = fails(5, "verify", "r.psd.parquet", "--key", "office.pub.pem")
    assert "another key" in said
    assert verify("r.psd.parquet", "other.pub.pem")


def edited(place, **changes):
    sign("r.psd.parquet", "office.pem", overwrite=True)
    target = place / "r.psd.parquet.sig"
    body = json.loads(target.read_text()) | changes
    target.write_text(json.dumps({name: value for name, value in body.items() if value is not ...}))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"signature": "0" * 128}, "not valid", id="another signature"),
        pytest.param({"signature": "0" * 126}, "damaged", id="short signature"),
        pytest.param({"signature": "G" * 128}, "damaged", id="no digits"),
        pytest.param({"digest": "0" * 64}, "must be of digest", id="another digest"),
        pytest.param({"digest": 5}, "damaged", id="digest as number"),
        pytest.param({"key": "0" * 64}, "another key", id="another key"),
        pytest.param({"version": 2}, "another version", id="version of the future"),
        pytest.param({"version": True}, "another version", id="version True"),
        pytest.param({"note": "x"}, "another version", id="unknown field"),
        pytest.param({"key": ...}, "another version", id="no key"),
        pytest.param({"note": "x" * 5000}, "another version", id="too long"),
    ],
)
def test_other_signatures_are_refused(place, changes, says):
    edited(place, **changes)
    assert says in fails(5, "verify", "r.psd.parquet", "--key", "office.pub.pem")


@pytest.mark.parametrize("name", ["absent", ".", "r.psd.parquet"])
def test_a_signature_that_is_none_is_named_with_its_rule(place, name):
    line = ("verify", "r.psd.parquet", "--key", "office.pub.pem", "--signature", name)
    said = fails(5, *line)
    assert "--signature must be a file" in said
    assert f", got {name}" in said


def test_a_signature_with_something_behind_it_is_refused(place):
    edited(place)
    with (place / "r.psd.parquet.sig").open("a") as file:
        file.write(" " * 5000 + "more")
    assert "another version" in fails(5, "verify", "r.psd.parquet", "--key", "office.pub.pem")


def test_no_signature_and_no_json_are_refused(place):
    said = fails(5, "verify", "r.psd.parquet", "--key", "office.pub.pem")
    assert "must be a file, got r.psd.parquet.sig, which does not exist" in said
    (place / "r.psd.parquet.sig").write_bytes(b"\xff" * 64)
    said = fails(5, "verify", "r.psd.parquet", "--key", "office.pub.pem")
    assert "must be a file that psd sign wrote, got r.psd.parquet.sig" in said


def test_a_signature_elsewhere_is_named(place):
    sign("r.psd.parquet", "office.pem")
    (place / "r.psd.parquet.sig").rename("of-the-office.sig")
    named = ("--signature", "of-the-office.sig")
    passes("verify", "r.psd.parquet", "--key", "office.pub.pem", *named)
    assert "--key" in fails(2, "verify", "r.psd.parquet", *named)


def pem(private, encryption=None):
    hidden = encryption or NoEncryption()
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden)


def unusable_keys(place):
    """Files that are no keys to sign with, and what is said of each."""
    rsa_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    own = ed25519.Ed25519PrivateKey.generate()
    public = own.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return {
        "rsa.pem": (pem(rsa_key), "must be a private Ed25519 key"),
        "locked.pem": (pem(own, BestAvailableEncryption(b"word")), "must be a private Ed25519 key"),
        "public.pem": (public, "must be a private Ed25519 key"),
        "empty.pem": (b"", "must be a private Ed25519 key"),
        "bytes.pem": (b"\x00\xff" * 3000, "must be a private Ed25519 key"),
    }


def test_keys_that_cannot_be_used_are_refused(place):
    for name, (content, says) in unusable_keys(place).items():
        (place / name).write_bytes(content)
        (place / name).chmod(0o600)
        assert says in fails(2, "sign", "r.psd.parquet", "--key", name)
        if name != "public.pem":
            assert "must be a public" in fails(2, "verify", "r.psd.parquet", "--key", name)
    assert "does not exist" in fails(2, "sign", "r.psd.parquet", "--key", "absent.pem")
    assert "is not a file" in fails(2, "sign", "r.psd.parquet", "--key", ".")
    assert "must be a public" in fails(2, "verify", "r.psd.parquet", "--key", "office.pem")
    assert not signature_name("r.psd.parquet").exists()


def test_a_private_key_that_others_may_read_is_refused(place):
    (place / "office.pem").chmod(0o640)
    assert "chmod 600" in fails(2, "sign", "r.psd.parquet", "--key", "office.pem")


def test_a_signature_is_not_overwritten_unless_asked(place):
    words = ("sign", "r.psd.parquet", "--key", "office.pem")
    passes(*words)
    assert "exists" in fails(6, *words)
    passes(*words, "--overwrite")


def test_what_is_no_sound_release_is_not_signed(place):
    content = bytearray((place / "r.psd.parquet").read_bytes())
    at = content.index(b'"epsilon": "1"') + 12
    content[at] ^= 2
    (place / "r.psd.parquet").write_bytes(content)
    said = fails(5, "sign", "r.psd.parquet", "--key", "office.pem")
    assert "digest" in said or "epsilon" in said
    assert "digest" in fails(5, "verify", "r.psd.parquet") or "epsilon" in said
    assert not signature_name("r.psd.parquet").exists()


def test_an_older_file_has_no_digest_and_may_be_signed(place):
    golden = os.path.join(os.path.dirname(__file__), "../golden/seoul.format-3.psd.parquet")
    with open(golden, "rb") as old:
        (place / "old.psd.parquet").write_bytes(old.read())
    assert "without a digest" in fails(5, "verify", "old.psd.parquet")
    passes("sign", "old.psd.parquet", "--key", "office.pem")
    passes("verify", "old.psd.parquet", "--key", "office.pub.pem")


def test_without_cryptography_the_extra_is_named(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    for words in (("keygen", "k.pem"), ("sign", "r.psd.parquet", "--key", "office.pem")):
        assert "psd-publisher[sign]" in fails(7, *words)
    assert cli("verify", "r.psd.parquet").code == 0


def test_the_commands_run_as_a_process(place):
    assert process("sign", "r.psd.parquet", "--key", "office.pem").returncode == 0
    done = process("verify", "r.psd.parquet", "--key", "office.pub.pem")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_folder_or_a_key_that_exists_is_no_name_for_a_key(place):
    assert "is a folder" in fails(6, "keygen", ".")
    for name in ("office.pem", "office.pub.pem"):
        assert "a key is never overwritten" in fails(6, "keygen", name)
