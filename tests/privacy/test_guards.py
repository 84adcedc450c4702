"""Holes that an attacker looked for: each is closed, and the test shows what would come out."""

import copy
import dataclasses
import os
import pickle
import threading
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import InputDataError, ParameterError
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import tally_batches
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.loss import NANO
from psd.privacy.unit import PrivacyUnit
from psd.testing import RecordingSampler
from support.cli_runner import cli
from support.privacy.curators import small_curator

DOMAIN = psd.Domain(bounds=(0, 0, 10, 10), crs="EPSG:3857")
TABLE = pd.DataFrame({"lon": [1.0, 2, 3], "lat": [1.0, 2, 3]})


def curator():
    return small_curator(4, (0, 5))[0]


def test_forged_cells_are_refused(subtests):
    """A negative number would stand for the last node; the second node does not exist."""
    asked = curator()
    root = asked.root()
    for nodes in ([-1], [1], [True], [0.0], [[0]]):
        forged = dataclasses.replace(root, nodes=np.array(nodes))
        for question in (
            lambda cells: asked.count(cells, 1),
            lambda cells: asked.cut(cells, x=[2]),
            lambda cells: asked.privtree_shape(cells, 1, height=2),
        ):
            with subtests.test(str(nodes)), pytest.raises(ParameterError):
                question(forged)
    assert asked.spent == 0


def test_boxes_of_cells_are_not_believed():
    asked = curator()
    root = asked.root()
    small = dataclasses.replace(root, boxes=np.array([[0, 0, 1, 1]]))
    assert asked.count(small, 1).tolist() == [2]
    assert asked.questions[0].boxes.tolist() == [[0, 0, 4, 4]]


def test_a_curator_is_not_copied():
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            copied(curator())


def test_threads_share_one_budget():
    asked, answered = curator(), []
    cells = [asked.root() for _ in range(8)]

    def ask(root):
        try:
            asked.count(root, NANO // 4)
            answered.append(root)
        except psd.PsdError:
            pass

    threads = [threading.Thread(target=ask, args=(root,)) for root in cells]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(answered), asked.spent) == (4, NANO)


def test_replayed_counts_leave_by_no_door(tmp_path):
    release = psd.build(TABLE, domain=DOMAIN, epsilon=1, sampler=RecordingSampler())
    with pytest.raises(ParameterError, match="not saved"):
        release.save(tmp_path / "r.psd.parquet")
    with pytest.raises(ParameterError, match="not saved or exported"):
        release.export(tmp_path / "cells.csv")
    assert not list(tmp_path.iterdir())


def test_secure_noise_cannot_be_patched_in_one_place():
    with pytest.raises(AttributeError):
        SecureSampler().draw = lambda *_: None


@dataclasses.dataclass(frozen=True)
class Hinted:
    """A method with a forgotten field of data."""

    hints: tuple
    name: ClassVar[str] = "hinted"

    def build(self, asked):
        asked.count(asked.root(), asked.loss)
        return asked.tree()


def test_an_undeclared_field_of_a_method_is_refused():
    with pytest.raises(ParameterError, match="hints of hinted"):
        psd.build(TABLE, domain=DOMAIN, epsilon=1, method=Hinted(tuple(TABLE["lon"])))


def kept(ids):
    table = pd.DataFrame({"lon": np.arange(len(ids)) + 0.5, "lat": 1.0, "user": ids})
    unit = PrivacyUnit(kind="user", max_contributions=1)
    return tally_batches(read(table, Columns(user="user"), DOMAIN), DOMAIN, unit=unit).counts.sum()


SPELLINGS = [
    (["u", "u ", " u", "u\t", "u\r"], 1),
    (["é", "e\u0301"], 1),
    (["\ufeffu", "u\u200b", "u"], 1),
    (["7", "07", "7.0"], 3),
    (["ANN", "ann"], 2),
]


def test_spellings_that_nobody_sees_are_one_user(subtests):
    for ids, users in SPELLINGS:
        with subtests.test(ascii(ids)):
            assert kept(ids) == users


UNCLEAR = (["u", None], ["u", "  "], ["u", "NULL"], [7, "7", 7.0], [1.0], [True], ["a\ud800"])


def test_ids_that_cannot_be_told_apart_are_refused(subtests):
    for ids in UNCLEAR:
        with subtests.test(ascii(ids)):
            with pytest.raises(InputDataError) as caught:
                kept(pd.Series(ids, dtype=object))
            assert caught.value.__context__ is None


def test_rows_inside_quotes_stay_there_however_large_the_file(tmp_path):
    """A quoted field full of line ends and rows, placed where parallel readers would begin."""
    path = tmp_path / "hostile.csv"
    honest = "1.5,1.5,a\n" * 20_000
    hostile = '3.5,3.5,"x\n' + "9.5,9.5,victim\n" * 40_000 + '9.5,9.5,vic"\n'
    path.write_text("lon,lat,note\n" + (honest + hostile) * 24)
    assert path.stat().st_size > 16 * 2**20
    counts = tally_batches(read(path, Columns(), DOMAIN), DOMAIN)
    assert sorted(counts.counts.tolist()) == [24, 24 * 20_000]


def test_no_context_of_an_error_quotes_a_row(tmp_path):
    path = tmp_path / "ragged.csv"
    path.write_text("lon,lat\n1,1\nSECRET,1,2,3\n")
    with pytest.raises(InputDataError) as caught:
        list(read(path, Columns(), DOMAIN))
    assert caught.value.__context__ is caught.value.__cause__ is None


@pytest.mark.deep
def test_private_files_have_no_name_until_they_are_whole(tmp_path, monkeypatch):
    """A process that is killed while it writes leaves nothing, and others read nothing after."""
    seen, sync = [], os.fsync

    def synced(handle):
        if os.fstat(handle).st_nlink == 0:
            seen.append(sorted(os.listdir(tmp_path)))
        sync(handle)

    rows, bounds = tmp_path / "d.csv", ("--bounds", *"0044")
    rows.write_text("lon,lat,u\n1,1,a\n2,3,b\n")
    monkeypatch.setattr("psd._util.atomic_write.os.fsync", synced)
    tally, key = private = [tmp_path / "p.tally", tmp_path / "p.key"]
    tally.touch(mode=0o644)
    before = sorted(os.listdir(tmp_path))
    user = ("--user", "u", "--max-contributions", 1, "--key", key)
    assert cli("tally", rows, *bounds, *user, "-o", tally, "--overwrite").code == 0
    assert len(seen) == len(private)
    assert all(set(names) <= {*before, "p.key"} for names in seen)
    assert {path.stat().st_mode & 0o777 for path in private} == {0o600}
