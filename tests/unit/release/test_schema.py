"""The allow-list: what writers take, and everything else that they are given and refuse."""

import dataclasses
from collections import OrderedDict
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
from psd.privacy.epsilon import NANO
from psd.privacy.unit import PrivacyUnit
from psd.release import file as release_file
from psd.release import series_file
from psd.release.allow_list import check_release
from psd.release.record import ReleaseRecord
from psd.release.schema import FIELDS
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate
from psd.testing import small_domain, small_tally
from support.releases import changed
from support.trees import domain_of, random_tree, release_of

MONTHS = psd.TimeSlices.parse("month", "2024-01..2024-02")


def made(**changes):
    return changed(release_of(random_tree(np.random.default_rng(5))), **changes)


def covariate():
    return Covariate(domain=domain_of((64, 64)), raster=np.ones((2, 2), np.uint16))


def series():
    return psd.SeriesRelease.of(MONTHS, (made(), made()))


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


@pytest.mark.parametrize("given", OTHERS)
@pytest.mark.parametrize("writer", WRITERS)
def test_writers_take_nothing_but_what_is_public(writer, given, tmp_path):
    with pytest.raises(ParameterError, match=r"must be (Release|Series|Count)\w+, got"):
        WRITERS[writer](OTHERS[given](), tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_a_release_is_not_written_as_a_series_nor_a_series_as_a_release():
    with pytest.raises(ParameterError, match="must be ReleaseRecord, got SeriesRecord"):
        release_file.encode_release(series().record)
    with pytest.raises(ParameterError, match="must be SeriesRecord, got ReleaseRecord"):
        series_file.encode_series(made().record)


def test_a_record_of_a_subclass_is_refused():
    class More(ReleaseRecord):
        pass

    with pytest.raises(ParameterError, match="must be ReleaseRecord, got More"):
        release_file.encode_release(More(**fields()))


# --- releases -----------------------------------------------------------------------------


def smuggled(thing, name="records", value=1234):
    vars(thing)[name] = value
    return thing


def with_field(name, value):
    release = made()
    object.__setattr__(release.record, name, value)
    return release


def smuggled_unit():
    class Named(PrivacyUnit):
        """A unit with something more."""

    return Named(kind="user", max_contributions=4)


def with_tree(change):
    tree = random_tree(np.random.default_rng(5))
    release = release_of(tree)
    change(release.tree)
    return release


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
    "an attribute of the tree": lambda: with_tree(lambda tree: smuggled(tree, "true", [1])),
    "an attribute of the covariate": lambda: made(covariate=smuggled(covariate(), "path", "x")),
    "a field": lambda: psd.Release(Counted(**fields())),
    "a parameter that nobody declared": lambda: with_field("parameters", {"records": 1234}),
    "parameters of their own": lambda: with_field("parameters", OrderedDict(size=1)),
    "a method of its own": lambda: made(method=Text("grid")),
    "a bound of its own": lambda: made(unit=smuggled_unit()),
    "an epsilon of its own": lambda: made(epsilon=Number(10**12)),
    "a library of its own": lambda: made(library=Text("1")),
    "counts of a type of their own": lambda: with_tree(
        lambda tree: object.__setattr__(tree, "count", tree.count.astype(float))
    ),
    "counts with a mask": lambda: with_tree(
        lambda tree: object.__setattr__(tree, "count", np.ma.array(tree.count))
    ),
    "a tally in place of the tree": lambda: with_field("tree", counts()),
    "a curator in place of the domain": lambda: with_field("domain", curator()),
}


@pytest.mark.parametrize("what", SMUGGLED)
def test_a_release_with_something_more_is_neither_saved_nor_exported(what, tmp_path):
    release = SMUGGLED[what]()
    with pytest.raises(ParameterError):
        release.save(tmp_path / "r.psd.parquet")
    with pytest.raises(ParameterError):
        release.export(tmp_path / "r.csv")
    with pytest.raises(ParameterError):
        _ = release.digest
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", SMUGGLED)
def test_a_series_with_something_more_is_not_saved(what, tmp_path):
    whole = series()
    releases = (whole.record.releases[0], SMUGGLED[what]().record)
    object.__setattr__(whole.record, "releases", releases)
    with pytest.raises(ParameterError):
        whole.save(tmp_path / "s.psd.parquet")
    assert list(tmp_path.iterdir()) == []


def test_what_a_release_works_out_by_itself_is_no_attribute_of_somebody(tmp_path):
    release = made()
    release.query([(0, 0, 5, 5)])
    _ = (
        release.digest,
        release.model.unevenness,
        release.model.line_deviation,
        release.index.mesh,
        release.model.published_covariance,
        release.tree.area,
    )
    release.save(tmp_path / "r.psd.parquet")
    assert psd.Release.load(tmp_path / "r.psd.parquet").digest == release.digest


def test_an_export_is_of_what_is_public_and_not_of_what_stood_in_memory(tmp_path):
    release = made()
    release.export(tmp_path / "before.csv")
    truth = dataclasses.replace(release.estimates, count=release.estimates.count + 1000)
    vars(release.model)["estimates"] = truth
    release.export(tmp_path / "after.csv")
    assert (tmp_path / "before.csv").read_bytes() == (tmp_path / "after.csv").read_bytes()


# --- the type -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(ReleaseRecord)])
def test_no_field_holds_anything_private(name):
    for other in (counts(), curator(), pd.DataFrame(), object(), b"x", 0.5):
        record = made().record
        object.__setattr__(record, name, other)
        with pytest.raises(ParameterError, match=f"{name} must be"):
            check_release(record)


def test_nothing_is_added_to_a_record_or_changed_in_it():
    record = made(parameters=parameters_from_file({"size": 3})).record
    with pytest.raises((AttributeError, TypeError)):
        record.rows = 1234
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(record, "rows", 1234)
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.epsilon = 1
    with pytest.raises(TypeError):
        ReleaseRecord(**fields(), rows=1234)


def test_every_field_of_a_record_but_the_tree_stands_in_the_header():
    names = {field.name for field in dataclasses.fields(ReleaseRecord)}
    stored = {field.name for field in FIELDS} - {"max_contributions", "weight", "time_zone"}
    stored = stored - {"view"} | {"post_processing"}
    assert names - stored == {"tree", "rho", "delta"}  # both are in noise


@pytest.mark.parametrize("name", ["", "visits of 1234 people", "Grid", "g" * 41, "grid\n"])
def test_the_name_of_a_method_is_no_place_for_text(name, tmp_path):
    with pytest.raises(ParameterError, match="method must be"):
        made(method=name).save(tmp_path / "r.psd.parquet")


@pytest.mark.parametrize(
    "parameters", [{"records": 1234}, {}, OrderedDict(size=1), MappingProxyType({"size": 1}), None]
)
def test_a_record_takes_declared_parameters_alone(parameters):
    with pytest.raises(ParameterError, match="parameters must be DeclaredParameters, got"):
        made(parameters=parameters)


@pytest.mark.parametrize("name", psd.methods())
def test_releases_of_every_method_are_written(name, tmp_path):
    table = pd.DataFrame({"lon": [1.0, 2, 3], "lat": [1.0, 2, 3]})
    release = psd.build(table, domain=psd.Domain(bounds=(0, 0, 4, 4)), epsilon=1, method=name)
    release.save(tmp_path / "r.psd.parquet")
    assert psd.Release.load(tmp_path / "r.psd.parquet").digest == release.digest


def test_trees_of_other_classes_are_refused():
    class Taller(Tree):
        pass

    tree = made().tree
    arrays = {field.name: getattr(tree, field.name) for field in dataclasses.fields(Tree)}
    with pytest.raises(ParameterError, match="tree must be Tree or RegionTree, got Taller"):
        check_release(made(tree=Taller(**arrays)).record)
