"""Keys of user hashes: made once, private, and refused where damaged."""

import pytest

from psd.errors import InputDataError, WriteError
from psd.ingest.row_hash import key_fingerprint, load_key


def test_a_key_is_made_once_and_is_its_owners_alone(tmp_path):
    path = tmp_path / "key"
    key = load_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == f"{key.hex()}\n"
    assert load_key(path) == load_key(str(path)) == key
    assert len(key) == 32
    other = load_key(tmp_path / "other")
    assert other != key
    assert key_fingerprint(key) == key_fingerprint(key) != key_fingerprint(other)
    assert key.hex() not in key_fingerprint(key)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["key", "other"]


def test_keys_that_are_refused(tmp_path):
    path, modes = tmp_path / "key", (0o640, 0o604, 0o660, 0o644)
    wrong = (b"", b"abc\n", b"g" * 64, b"A" * 64, b"a" * 65, b"a" * 64 + b"\n\n", bytes(32))
    for content, mode, words in [
        *((b"a" * 64, mode, "chmod 600") for mode in modes),
        *((content, 0o600, "64 hexadecimal digits") for content in wrong),
    ]:
        path.write_bytes(content)
        path.chmod(mode)
        with pytest.raises(InputDataError, match=words):
            load_key(path)
        assert path.read_bytes() == content


def test_a_key_that_another_process_makes_meanwhile_is_read(tmp_path, monkeypatch):
    path, key = tmp_path / "key", bytes(range(32))

    def taken(_, content, mode):
        path.write_text(key.hex())
        path.chmod(0o400)
        raise WriteError("it exists")

    def full(_, content, mode):
        raise WriteError("no space")

    monkeypatch.setattr("psd.ingest.row_hash.write_file", full)
    with pytest.raises(WriteError, match="no space"):
        load_key(path)
    monkeypatch.setattr("psd.ingest.row_hash.write_file", taken)
    assert load_key(path) == key


def test_what_is_no_file_is_no_key(tmp_path):
    path = tmp_path / "key"
    path.mkdir(mode=0o700)
    with pytest.raises(InputDataError, match="cannot be read: Is a directory") as raised:
        load_key(path)
    assert raised.value.__suppress_context__


def test_the_fingerprint_of_a_key_stays_the_same():
    """Tallies of one data set keep it, and are added only if it is the same."""
    assert key_fingerprint(bytes(32)) == "ed8273ccde2918414db702f0f7938d89"
