"""A sealed entry cannot be changed unnoticed without the key."""

import json
import os
import stat

import pytest

from psd.errors import InputDataError, LedgerError, ParameterError
from psd.ledger.charges import ChargeRequest
from psd.ledger.ledger import Ledger
from psd.ledger.seal import seal_path
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from support.ledger_columns import BY_LON_LAT
from support.ledger_edits import edit_charge


def charge(ledger, epsilon=5 * 10**8):
    request = ChargeRequest(
        loss=Loss.pure(epsilon), unit=PrivacyUnit(), what="build", readings=BY_LON_LAT
    )
    return ledger.charge("visits", request)


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "city.ledger")
    made.register("visits", 10)
    charge(made)
    return made


@pytest.fixture
def key(tmp_path):
    return tmp_path / "owner.key"


def test_a_seal_covers_all_entries_until_then(ledger, key):
    assert ledger.seal(key) == 3
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert seal_path(ledger.path).name == "city.ledger.seal"
    ledger.verify(key=key)
    charge(ledger)
    ledger.verify(key=key)
    assert json.loads(seal_path(ledger.path).read_text())["entries"] == 3
    assert ledger.seal(key) == 4
    assert key.read_bytes().hex() not in seal_path(ledger.path).read_text()


def test_a_charge_that_was_lowered_is_found(ledger, key):
    ledger.seal(key)
    charge(ledger)
    edit_charge(ledger, 3, epsilon=1)
    assert ledger.verify().spent("visits") == 5 * 10**8 + 1  # the chain alone is right
    for check in (lambda: ledger.verify(key=key), lambda: ledger.seal(key)):
        with pytest.raises(LedgerError, match="does not have the sealed entry 3: an entry up to"):
            check()


def test_an_older_copy_is_found(ledger, key):
    copy = ledger.path.read_bytes()
    charge(ledger)
    ledger.seal(key)
    ledger.path.write_bytes(copy)
    with pytest.raises(LedgerError, match="does not have the sealed entry 4"):
        ledger.verify(key=key)


def test_what_comes_after_the_seal_is_not_covered(ledger, key):
    """What the guide says remains undetected."""
    ledger.seal(key)
    charge(ledger)
    edit_charge(ledger, 4, epsilon=1)
    ledger.verify(key=key)


@pytest.mark.parametrize(
    ("field", "value"),
    [("entries", 2), ("head", "0" * 64), ("ledger", "0" * 32), ("mac", "0" * 64)],
)
def test_a_seal_that_was_changed_is_refused(field, value, ledger, key):
    ledger.seal(key)
    path = seal_path(ledger.path)
    path.chmod(0o600)
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(LedgerError, match="was changed, or was made with another key"):
        ledger.verify(key=key)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 1}', "{" * 10**5, b"\xff"])
def test_a_file_that_is_no_seal_is_refused(text, ledger, key):
    ledger.seal(key)
    path = seal_path(ledger.path)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(LedgerError, match="is damaged, or of another version"):
        ledger.verify(key=key)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"entries": 0},
        {"entries": True},
        {"a": 1},
        {"mac": "0"},
        {"mac": "é" * 64},
        {"mac": "\ud800" * 64},
        {"mac": "٣" * 64},
        {"mac": "0" * 64 + "\n"},
    ],
)
def test_fields_of_a_seal_are_checked(changes, ledger, key):
    ledger.seal(key)
    path = seal_path(ledger.path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(LedgerError, match="is damaged, or of another version"):
        ledger.verify(key=key)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_seal_that_is_a_pipe_or_a_folder_is_refused_at_once(ledger, key):
    ledger.seal(key)
    path = seal_path(ledger.path)
    for replace in (os.mkfifo, os.mkdir, lambda link: os.symlink("/dev/zero", link)):
        path.rmdir() if path.is_dir() else path.unlink()
        replace(path)
        for use in (ledger.verify, ledger.seal):
            with pytest.raises(LedgerError, match="is damaged, or of another version"):
                use(key=key)


def test_seals_of_other_keys_and_ledgers(ledger, key, tmp_path):
    ledger.seal(key)
    other = Ledger.create(tmp_path / "other.ledger")
    other.seal(tmp_path / "other.key")
    with pytest.raises(LedgerError, match="another key"):
        ledger.verify(key=tmp_path / "other.key")
    seal_path(other.path).unlink()
    seal_path(ledger.path).rename(seal_path(other.path))
    with pytest.raises(LedgerError, match="does not have the sealed entry 3"):
        other.verify(key=key)
    with pytest.raises(LedgerError, match=r"seal .* does not exist; restore it"):
        ledger.verify(key=key)


def test_a_key_is_not_made_to_check_a_seal(ledger, key, tmp_path):
    ledger.seal(key)
    for use in (ledger.verify, ledger.seal):
        with pytest.raises(ParameterError, match=r"^key must be a file that exists"):
            use(key=tmp_path / "none.key")
    assert not (tmp_path / "none.key").exists()
    key.chmod(0o644)
    with pytest.raises(InputDataError, match="readable by its owner only"):
        ledger.verify(key=key)
