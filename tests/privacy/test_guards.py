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
from psd._util.declared_parameters import parameters_from_file
from psd.curator.curator import Curator
from psd.errors import InputDataError, ParameterError
from psd.ingest.sources import Columns, read
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.epsilon import NANO
from psd.privacy.unit import PrivacyUnit
from psd.space.growing_tree import Cells
from psd.testing import RecordingSampler, small_domain, small_tally
from psd_cli.main import run
from support.releases import changed

DOMAIN = psd.Domain(bounds=(0, 0, 10, 10), crs="EPSG:3857")


def curator(epsilon=NANO):
    noise = RecordingSampler()
    return Curator(small_tally(4, (0, 5)), small_domain(4), budget=Budget(epsilon), sampler=noise)


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param([-1], id="negative number, which would stand for the last node"),
        pytest.param([1], id="node that does not exist"),
        pytest.param([True], id="mask"),
        pytest.param([0.0], id="float"),
        pytest.param([[0]], id="matrix"),
    ],
)
def test_forged_cells_are_refused(nodes):
    asked = curator()
    root = asked.root()
    forged = Cells(layer=0, nodes=np.array(nodes), boxes=root.boxes)
    for question in (
        lambda: asked.count(forged, 1),
        lambda: asked.cut(forged, x=[2]),
        lambda: asked.privtree_shape(forged, 1, height=2),
    ):
        with pytest.raises(ParameterError):
            question()
    assert asked.spent == 0
    with pytest.raises(ParameterError, match="layer"):
        asked.count(dataclasses.replace(root, layer=-1), 1)


def test_boxes_of_cells_are_not_believed():
    asked = curator()
    root = asked.root()
    small = dataclasses.replace(root, boxes=np.array([[0, 0, 1, 1]]))
    assert asked.count(small, 1).tolist() == [2]
    assert asked.questions[0].boxes.tolist() == [[0, 0, 4, 4]]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_curator_is_not_copied(copied):
    with pytest.raises(TypeError, match="cannot be copied"):
        copied(curator())


def test_threads_share_one_budget():
    asked, answered = curator(NANO), []
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
    table = pd.DataFrame({"lon": [1.0, 2, 3], "lat": [1.0, 2, 3]})
    release = psd.build(table, domain=DOMAIN, epsilon=1, sampler=RecordingSampler())
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
        asked.count(asked.root(), asked.epsilon)
        return asked.tree()


def test_an_undeclared_field_of_a_method_is_refused():
    table = pd.DataFrame({"lon": [1.0, 2, 3], "lat": [1.0, 2, 3]})
    with pytest.raises(ParameterError, match="hints of hinted"):
        psd.build(table, domain=DOMAIN, epsilon=1, method=Hinted(tuple(table["lon"])))


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"hints": [1.0, 2.0]}, "parameter hints must be an int, a str"),
        ({"size": 2**63}, "parameter size must be between"),
        ({"size": "s" * 101}, "parameter size must be a printable text"),
    ],
)
def test_parameters_that_a_reader_would_refuse_are_not_stated(parameters, says):
    table = pd.DataFrame({"lon": [1.0, 2, 3], "lat": [1.0, 2, 3]})
    release = psd.build(table, domain=DOMAIN, epsilon=1, method="grid")
    with pytest.raises(ParameterError, match="must be DeclaredParameters"):
        changed(release, parameters=parameters)
    with pytest.raises(ParameterError, match=says):
        parameters_from_file(parameters)


def kept(ids):
    table = pd.DataFrame({"lon": np.arange(len(ids)) + 0.5, "lat": 1.0, "user": ids})
    batches = read(table, Columns(user="user"), DOMAIN)
    return int(
        tally_batches(
            batches, DOMAIN, unit=PrivacyUnit(kind="user", max_contributions=1)
        ).counts.sum()
    )


@pytest.mark.parametrize(
    ("ids", "users"),
    [
        pytest.param(["u", "u ", " u", "u\t", "u\r"], 1, id="white space"),
        pytest.param(["é", "e\u0301"], 1, id="composed and decomposed"),
        pytest.param(["\ufeffu", "u\u200b", "u"], 1, id="marks of width zero"),
        pytest.param(["7", "07", "7.0"], 3, id="numbers are text"),
        pytest.param(["ANN", "ann"], 2, id="case counts"),
    ],
)
def test_spellings_that_nobody_sees_are_one_user(ids, users):
    assert kept(ids) == users


@pytest.mark.parametrize(
    "ids",
    [
        pytest.param(["u", None], id="none"),
        pytest.param(["u", "  "], id="blank"),
        pytest.param(["u", "NULL"], id="null of a database"),
        pytest.param([7, "7", 7.0], id="mixed with floats"),
        pytest.param([1.0, 2.0], id="floats"),
        pytest.param([True, False], id="booleans"),
        pytest.param(["a\ud800"], id="no Unicode"),
    ],
)
def test_ids_that_cannot_be_told_apart_are_refused(ids):
    with pytest.raises(InputDataError) as caught:
        kept(pd.Series(ids, dtype=object))
    assert caught.value.__context__ is None


def test_batches_do_not_show_themselves():
    assert repr(Batch(x=np.array([126.98]), y=np.array([37.57]))) == "<Batch: private>"


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
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


@pytest.mark.slow
def test_private_files_have_no_name_until_they_are_whole(tmp_path, monkeypatch):
    """A process that is killed while it writes leaves nothing, and others read nothing after."""
    seen, sync = [], os.fsync

    def synced(handle):
        if os.fstat(handle).st_nlink == 0:
            seen.append(sorted(os.listdir(tmp_path)))
        sync(handle)

    rows, release, bounds = tmp_path / "d.csv", tmp_path / "r.parquet", ("--bounds", *"0044")
    rows.write_text("lon,lat,u\n1,1,a\n2,3,b\n")
    assert run(["build", str(rows), "-o", str(release), "--epsilon", "1", *bounds]) == 0
    monkeypatch.setattr("psd._util.atomic_write.os.fsync", synced)
    private = ["p.tally", "p.key", "p.csv", "p.html"]
    for name in ("p.tally", "p.csv", "p.html"):
        (tmp_path / name).touch(mode=0o644)
    before = sorted(os.listdir(tmp_path))
    words = ["--user", "u", "--max-contributions", "1", "--key", str(tmp_path / "p.key")]
    words += ["-o", str(tmp_path / "p.tally"), "--overwrite"]
    assert run(["tally", str(rows), *bounds, *words]) == 0
    words = ["-o", str(tmp_path / "p.csv"), "--report", str(tmp_path / "p.html"), "--overwrite"]
    assert run(["evaluate", str(release), str(rows), *words]) == 0
    assert len(seen) == len(private)
    assert all(set(names) <= {*before, "p.key"} for names in seen)
    for name in private:
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
