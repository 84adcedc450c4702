"""The allow-list: what writers take, and everything else that they are given and refuse."""

import dataclasses
from collections import OrderedDict
from itertools import product
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

import psd
from psd import export as exporting
from psd._util.declared_parameters import parameters_from_file
from psd.curator.curator import Curator
from psd.errors import ParameterError
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.privacy.unit import PrivacyUnit
from psd.release import file as release_file
from psd.release import series_file
from psd.release.record import ReleaseRecord
from psd.release.schema import FIELDS, check_release
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate
from psd.testing import small_domain, small_tally
from support.releases import changed
from support.tables import refused
from support.trees import domain_of, random_tree, release_of

MONTHS = psd.TimeSlices.parse("month", "2024-01..2024-02")


def made(**changes):
    return changed(release_of(random_tree(np.random.default_rng(5))), **changes)


def covariate():
    return Covariate(domain=domain_of((64, 64)), raster=np.ones((2, 2), np.uint16))


def series():
    return psd.Release.from_slices(MONTHS, (made(), made()))


def counts():
    return small_tally(4, (1, 2, 3))


def curator():
    return Curator(counts(), small_domain(4), budget=Budget(NANO), sampler=SecureSampler())


def fields():
    record = made().record
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


# --- writers ------------------------------------------------------------------------------

WRITERS = {
    "release": lambda content, path: release_file.write_release(content, path),
    "release as bytes": lambda content, path: release_file.encode_release(content),
    "series": lambda content, path: series_file.write_series(content, path),
    "series as bytes": lambda content, path: series_file.encode_series(content),
    "export": lambda content, path: exporting.export_release(content, path.with_suffix(".csv")),
    "raster": lambda content, path: exporting.export_release(content, path.with_suffix(".npy")),
    "database": lambda content, path: exporting.export_release(content, "postgresql://nowhere"),
}
OTHERS = {
    "release": made,
    "series": series,
    "tally": counts,
    "curator": curator,
    "table": lambda: pd.DataFrame({"lon": [1.0]}),
    "tree": lambda: made().tree,
    "dict": fields,
    "none": lambda: None,
}


def test_writers_take_nothing_but_what_is_public(tmp_path, subtests):
    told = r"must be (Release|Series|Count)\w+, got"
    for (writer, write), (given, make) in product(WRITERS.items(), OTHERS.items()):
        with subtests.test(f"{given} as {writer}"), pytest.raises(ParameterError, match=told):
            write(make(), tmp_path / "r")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ParameterError, match="must be ReleaseRecord, got SeriesRecord"):
        release_file.encode_release(series().record)
    with pytest.raises(ParameterError, match="must be SeriesRecord, got ReleaseRecord"):
        series_file.encode_series(made().record)
    with pytest.raises(ParameterError, match="must be ReleaseRecord, got Counted"):
        release_file.encode_release(Counted(**fields()))


# --- releases -----------------------------------------------------------------------------


def smuggled(thing, name="records", value=1234):
    vars(thing)[name] = value
    return thing


def with_field(name, value):
    release = made()
    object.__setattr__(release.record, name, value)
    return release


def with_counts(change):
    release = made()
    object.__setattr__(release.tree, "count", change(release.tree.count))
    return release


class Named(PrivacyUnit):
    """A unit with something more."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Counted(ReleaseRecord):
    """A record with a field more."""

    records: int = 1234


class Text(str):
    """A text that carries something."""

    records = 1234


class Number(int):
    records = 1234


SMUGGLED = {
    "an attribute of the tree": lambda: with_field("tree", smuggled(made().tree, "true", [1])),
    "an attribute of the covariate": lambda: made(covariate=smuggled(covariate(), "path", "x")),
    "a field": lambda: psd.Release(Counted(**fields())),
    "a parameter that nobody declared": lambda: with_field("parameters", {"records": 1234}),
    "parameters of their own": lambda: with_field("parameters", OrderedDict(size=1)),
    "a method of its own": lambda: made(method=Text("grid")),
    "a bound of its own": lambda: made(unit=Named(kind="user", max_contributions=4)),
    "an epsilon of its own": lambda: made(epsilon=Number(10**12)),
    "a library of its own": lambda: made(library=Text("1")),
    "counts of a type of their own": lambda: with_counts(lambda count: count.astype(float)),
    "counts with a mask": lambda: with_counts(np.ma.array),
    "a tally in place of the tree": lambda: with_field("tree", counts()),
    "a curator in place of the domain": lambda: with_field("domain", curator()),
}


def test_a_release_with_something_more_is_neither_saved_nor_exported(tmp_path, subtests):
    for what, make in SMUGGLED.items():
        release, whole = make(), series()
        releases = (whole.record.releases[0], release.record)
        object.__setattr__(whole.record, "releases", releases)
        for use, write in {
            "saved": lambda release=release: release.save(tmp_path / "r.psd.parquet"),
            "exported": lambda release=release: release.export(tmp_path / "r.csv"),
            "its digest": lambda release=release: release.digest,
            "in a series": lambda whole=whole: whole.save(tmp_path / "s.psd.parquet"),
        }.items():
            with subtests.test(f"{what}: {use}"), pytest.raises(ParameterError):
                write()
    assert list(tmp_path.iterdir()) == []


def test_what_a_release_works_out_is_neither_an_attribute_of_somebody_nor_exported(tmp_path):
    release = made()
    release.query([(0, 0, 5, 5)])
    _ = release.digest, release.index.mesh, release.index.fit.density, release.tree.area
    release.save(tmp_path / "r.psd.parquet")
    assert psd.load(tmp_path / "r.psd.parquet").digest == release.digest
    release = made()
    release.export(tmp_path / "before.csv")
    truth = dataclasses.replace(
        release.index.fit.estimates, count=release.index.fit.estimates.count + 1000
    )
    vars(release.index)["fit"] = dataclasses.replace(release.index.fit, estimates=truth)
    release.export(tmp_path / "after.csv")
    assert (tmp_path / "before.csv").read_bytes() == (tmp_path / "after.csv").read_bytes()


# --- the type -----------------------------------------------------------------------------


def test_no_field_holds_anything_private(subtests):
    others = (counts(), curator(), pd.DataFrame(), object(), b"x", 0.5)
    for name, other in product(fields(), others):
        record = made().record
        object.__setattr__(record, name, other)
        told = pytest.raises(ParameterError, match=f"{name} must be")
        with subtests.test(name, other=other), told:
            check_release(record)


def test_nothing_is_added_to_a_record_or_changed_in_it(tmp_path, subtests):
    record = made(parameters=parameters_from_file({"size": 3})).record
    with pytest.raises((AttributeError, TypeError)):
        record.rows = 1234
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(record, "rows", 1234)
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.epsilon = 1
    with pytest.raises(TypeError):
        ReleaseRecord(**fields(), rows=1234)

    class Taller(Tree):
        pass

    tree = made().tree
    arrays = {field.name: getattr(tree, field.name) for field in dataclasses.fields(Tree)}
    with pytest.raises(ParameterError, match=r"tree must be Tree or .*, got Taller"):
        check_release(made(tree=Taller(**arrays)).record)
    names = {field.name for field in dataclasses.fields(ReleaseRecord)}
    stored = {field.name for field in FIELDS} - {"max_contributions", "weight", "time_zone"}
    stored = stored - {"view"} | {"post_processing"}
    # Rho and delta are in noise, and a part of a value is not stored.
    assert names - stored == {"tree", "rho", "delta", "part_weight"}
    names = ("", "visits of 1234 people", "Grid", "g" * 41, "grid\n")
    path, table = tmp_path / "r.psd.parquet", [("method must be", *names)]
    refused(subtests, ParameterError, table, lambda name: made(method=name).save(path))
    others = ({"records": 1234}, {}, OrderedDict(size=1), MappingProxyType({"size": 1}), None)
    table = [("parameters must be DeclaredParameters, got", *others)]
    refused(subtests, ParameterError, table, lambda value: made(parameters=value))
