"""Keys of user hashes: made once, private, and refused where damaged."""

import pytest

from psd.errors import InputDataError
from psd.ingest.row_hash import key_fingerprint, load_key


def test_a_key_is_made_once_and_is_its_owners_alone(tmp_path):
    path = tmp_path / "key"
    key = load_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_key(path) == key
    assert len(key) == 32
    other = load_key(tmp_path / "other")
    assert other != key
    assert key_fingerprint(key) == key_fingerprint(key) != key_fingerprint(other)
    assert key.hex() not in key_fingerprint(key)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["key", "other"]


def test_keys_that_are_refused(tmp_path):
    path, modes = tmp_path / "key", (0o640, 0o604, 0o660, 0o644)
    wrong = (b"", b"abc\n", b"g" * 64, b"a" * 65, bytes(32))
    for content, mode, words in [
        *((b"a" * 64, mode, "chmod 600") for mode in modes),
        *((content, 0o600, "64 hexadecimal digits") for content in wrong),
    ]:
        path.write_bytes(content)
        path.chmod(mode)
        with pytest.raises(InputDataError, match=words):
            load_key(path)
        assert path.read_bytes() == content
