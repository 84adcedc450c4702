"""Keys of user hashes: made once, private, and refused where damaged."""

import pytest

from psd.errors import InputDataError
from psd.ingest.hash_key import key_fingerprint, load_key


def test_a_key_is_made_once_and_is_its_owners_alone(tmp_path):
    path = tmp_path / "key"
    key = load_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_key(path) == key
    assert len(key) == 32
    assert load_key(tmp_path / "other") != key
    assert (
        key_fingerprint(key)
        == key_fingerprint(key)
        != key_fingerprint(load_key(tmp_path / "other"))
    )
    assert key.hex() not in key_fingerprint(key)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["key", "other"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_may_read_is_refused(tmp_path, mode):
    load_key(tmp_path / "key")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(InputDataError, match="chmod 600"):
        load_key(tmp_path / "key")


@pytest.mark.parametrize("content", [b"", b"abc\n", b"g" * 64, b"a" * 65, bytes(32)])
def test_what_is_no_key_is_refused(tmp_path, content):
    (tmp_path / "key").write_bytes(content)
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(InputDataError, match="64 hexadecimal digits"):
        load_key(tmp_path / "key")
    assert (tmp_path / "key").read_bytes() == content
