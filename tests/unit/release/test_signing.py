"""Signatures: whose key signed which content, and keys that cannot be used."""

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_public_key,
)

import psd
from psd.errors import ParameterError, ReleaseFormatError, WriteError
from psd.signing import new_key, public_name, sign, signature_name, verify
from support.trees import SOUTH_UP, grid_release


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a release and a key."""
    monkeypatch.chdir(tmp_path)
    grid_release(SOUTH_UP).save("r.psd.parquet")
    new_key("office.pem")
    return tmp_path


def test_public_parts_and_signatures_are_named_after_keys_and_releases(tmp_path, folder):
    names = {"office.pem": "office.pub.pem", "a/b.pem": "a/b.pub.pem", "office": "office.pub.pem"}
    for key, public in names.items():
        assert public_name(key).as_posix() == public
    assert signature_name("r.psd.parquet").name == "r.psd.parquet.sig"
    assert signature_name(tmp_path / "r").parent == tmp_path
    assert new_key("other") == public_name("other")
    first, second = (
        load_pem_public_key((folder / name).read_bytes())
        for name in ("office.pub.pem", "other.pub.pem")
    )
    assert isinstance(first, ed25519.Ed25519PublicKey)
    assert first != second
    assert stat.S_IMODE(os.stat("other").st_mode) == 0o600


def test_what_was_signed_is_verified_and_is_a_digest_with_a_domain_before_it(folder):
    digest = psd.load("r.psd.parquet").digest
    assert verify("r.psd.parquet") == digest
    assert sign("r.psd.parquet", "office.pem") == signature_name("r.psd.parquet")
    assert verify("r.psd.parquet", "office.pub.pem") == digest
    os.rename("r.psd.parquet.sig", "other.sig")
    assert verify("r.psd.parquet", "office.pub.pem", signature="other.sig") == digest
    body = json.loads(sign("r.psd.parquet", "office.pem").read_text())
    assert sorted(body) == ["digest", "key", "signature", "version"]
    public = load_pem_public_key((folder / "office.pub.pem").read_bytes())
    signed = b"psd signature of a release 1\n" + psd.load("r.psd.parquet").digest.encode()
    public.verify(bytes.fromhex(body["signature"]), signed)


def test_a_signature_of_another_content_or_key_is_refused(folder):
    sign("r.psd.parquet", "office.pem")
    new_key("other.pem")
    with pytest.raises(ReleaseFormatError, match="another key"):
        verify("r.psd.parquet", "other.pub.pem")
    grid_release(SOUTH_UP + np.eye(3, dtype=np.int64)).save("r.psd.parquet", overwrite=True)
    with pytest.raises(ReleaseFormatError, match="must be of digest"):
        verify("r.psd.parquet", "office.pub.pem")
    # The name of the right key in the file does not help a forger.
    signature = sign("r.psd.parquet", "office.pem", overwrite=True)
    body = json.loads(signature.read_text())
    forger = ed25519.Ed25519PrivateKey.generate()
    forged = forger.sign(b"psd signature of a release 1\n" + body["digest"].encode()).hex()
    signature.write_text(json.dumps(body | {"signature": forged}))
    with pytest.raises(ReleaseFormatError, match="not valid"):
        verify("r.psd.parquet", "office.pub.pem")


def test_a_file_that_is_not_a_signature_is_refused(folder, subtests):
    for content in (None, b"", b"[]", b"{}", b'{"version": 1, "version": 1}', b"\xff"):
        if content is not None:
            signature_name("r.psd.parquet").write_bytes(content)
        with subtests.test(content=content), pytest.raises(ReleaseFormatError):
            verify("r.psd.parquet", "office.pub.pem")


@pytest.mark.parametrize("existing", ["key.pem", "key.pub.pem"])
def test_no_key_is_overwritten(existing, folder):
    (folder / existing).write_bytes(b"another")
    with pytest.raises(WriteError, match=existing):
        new_key("key.pem")
    assert sorted(path.name for path in folder.glob("key.*")) == [existing]
    assert (folder / existing).read_bytes() == b"another"


def test_a_signature_is_overwritten_on_demand_alone(folder):
    before = sign("r.psd.parquet", "office.pem").read_bytes()
    new_key("other.pem")
    with pytest.raises(WriteError):
        sign("r.psd.parquet", "other.pem")
    assert signature_name("r.psd.parquet").read_bytes() == before
    sign("r.psd.parquet", "other.pem", overwrite=True)
    assert verify("r.psd.parquet", "other.pub.pem")


def written(kind, encryption):
    key = kind.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    Path("key.pem").write_bytes(key)
    Path("key.pem").chmod(0o600)
    return "key.pem"


def test_other_keys_do_not_sign_and_none_is_both_private_and_public(folder, subtests):
    with pytest.raises(ParameterError, match=r"key\.pem"):
        sign("r.psd.parquet", written(x25519.X25519PrivateKey, NoEncryption()))
    for mode in (0o604, 0o640, 0o610):
        (folder / "office.pem").chmod(mode)
        with subtests.test(mode=mode), pytest.raises(ParameterError, match="chmod 600"):
            sign("r.psd.parquet", "office.pem")
    assert not signature_name("r.psd.parquet").exists()
    (folder / "office.pem").chmod(0o600)
    with pytest.raises(ParameterError):
        sign("r.psd.parquet", "office.pub.pem")
    sign("r.psd.parquet", "office.pem")
    for other in ("office.pem", "absent.pub.pem"):
        with pytest.raises(ParameterError):
            verify("r.psd.parquet", other)
