"""The allow-list: what writers take, and everything else that they are given and refuse."""

import dataclasses
from collections import OrderedDict

import numpy as np
import pandas as pd
import pytest

import psd
from psd import export as exporting
from psd.curator.curator import Curator
from psd.decompositions import method
from psd.errors import ParameterError
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.epsilon import NANO
from psd.release import file as release_file
from psd.release import series_file
from psd.release.post_processing import View
from psd.release.public import PARAMETERS, Public, PublicSeries
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate
from psd.testing import small_domain, small_tally
from support.trees import domain_of, random_tree, release_of

MONTHS = psd.TimeSlices.parse("month", "2024-01..2024-02")


def made(**changes):
    return dataclasses.replace(release_of(random_tree(np.random.default_rng(5))), **changes)


def covariate():
    return Covariate(domain=domain_of((64, 64)), raster=np.ones((2, 2), np.uint16))


def series():
    return psd.Series(slices=MONTHS, releases=(made(), made()))


def counts():
    return small_tally(4, (1, 2, 3))


def curator():
    return Curator(counts(), small_domain(4), budget=Budget(NANO), sampler=SecureSampler())


def fields():
    public = Public.of(made())
    return {field.name: getattr(public, field.name) for field in dataclasses.fields(Public)}


# --- writers ------------------------------------------------------------------------------

WRITERS = {
    "release": lambda content, path: release_file.write(content, path),
    "release as bytes": lambda content, path: release_file.encode(content),
    "series": lambda content, path: series_file.write(content, path),
    "series as bytes": lambda content, path: series_file.encode(content),
    "export": lambda content, path: exporting.export(content, path.with_suffix(".csv")),
    "raster": lambda content, path: exporting.export(content, path.with_suffix(".npy")),
    "database": lambda content, path: exporting.export(content, "postgresql://nowhere"),
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
    with pytest.raises(ParameterError, match="what is to be written is no Public"):
        WRITERS[writer](OTHERS[given](), tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_a_release_is_no_series_and_a_series_no_release(tmp_path):
    with pytest.raises(ParameterError, match="no Public but a PublicSeries"):
        release_file.encode(PublicSeries.of(series()))
    with pytest.raises(ParameterError, match="no PublicSeries but a Public"):
        series_file.encode(Public.of(made()))


def test_one_that_was_made_public_by_inheritance_is_refused():
    class More(Public):
        pass

    with pytest.raises(ParameterError, match="no Public but a More"):
        release_file.encode(More(**fields()))


# --- releases -----------------------------------------------------------------------------


def smuggled(thing, name="records", value=1234):
    vars(thing)[name] = value
    return thing


def with_tree(change):
    tree = random_tree(np.random.default_rng(5))
    release = release_of(tree)
    change(release.tree)
    return release


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Counted(psd.Release):
    """A release with a field more."""

    records: int = 1234


class Text(str):
    """A text that carries something."""

    records = 1234


class Number(int):
    records = 1234


SMUGGLED = {
    "an attribute": lambda: smuggled(made()),
    "an attribute of the tree": lambda: with_tree(lambda tree: smuggled(tree, "true", [1])),
    "an attribute of the covariate": lambda: made(covariate=smuggled(covariate(), "path", "x")),
    "a field": lambda: Counted(**fields()),
    "a parameter that nobody declared": lambda: made(parameters={"records": 1234}),
    "a parameter with a list": lambda: made(parameters={"size": [1, 2]}),
    "a parameter with an array": lambda: made(parameters={"size": np.int64(5)}),
    "a parameter with a float": lambda: made(parameters={"size": 0.1}),
    "a parameter with a flag": lambda: made(parameters={"size": True}),
    "a parameter with a text of its own": lambda: made(parameters={"size": Text("1")}),
    "a parameter of another name": lambda: made(parameters={Text("size"): 1}),
    "parameters of their own": lambda: made(parameters=OrderedDict(size=1)),
    "a method of its own": lambda: made(method=Text("grid")),
    "a bound of its own": lambda: made(unit="user", max_contributions=Number(4)),
    "an epsilon of its own": lambda: made(epsilon=Number(10**12)),
    "a library of its own": lambda: made(library=Text("1")),
    "counts of a type of their own": lambda: with_tree(
        lambda tree: object.__setattr__(tree, "count", tree.count.astype(float))
    ),
    "counts with a mask": lambda: with_tree(
        lambda tree: object.__setattr__(tree, "count", np.ma.array(tree.count))
    ),
    "a tally in place of the tree": lambda: smuggled(made(), "tree", counts()),
    "a curator in place of the domain": lambda: smuggled(made(), "domain", curator()),
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
    vars(whole)["releases"] = (whole.releases[0], SMUGGLED[what]())
    with pytest.raises(ParameterError):
        whole.save(tmp_path / "s.psd.parquet")
    with pytest.raises(ParameterError):
        smuggled(series()).save(tmp_path / "s.psd.parquet")
    assert list(tmp_path.iterdir()) == []


def test_what_a_release_works_out_by_itself_is_no_attribute_of_somebody(tmp_path):
    release = made()
    release.query([(0, 0, 5, 5)])
    _ = release.digest, release.spread, release.mesh, release.published, release.tree.area
    release.save(tmp_path / "r.psd.parquet")
    assert psd.Release.load(tmp_path / "r.psd.parquet").digest == release.digest


def test_an_export_is_of_what_is_public_and_not_of_what_stood_in_memory(tmp_path):
    release = made()
    release.export(tmp_path / "before.csv")
    truth = dataclasses.replace(release.estimates, count=release.estimates.count + 1000)
    vars(release)["estimates"] = truth
    release.export(tmp_path / "after.csv")
    assert (tmp_path / "before.csv").read_bytes() == (tmp_path / "after.csv").read_bytes()


# --- the type -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Public)])
def test_no_field_holds_anything_private(name):
    for other in (counts(), curator(), pd.DataFrame(), object(), b"x", 0.5):
        with pytest.raises(ParameterError, match="is no"):
            Public(**fields() | {name: other})


def test_nothing_is_added_to_it_or_changed_in_it():
    public = Public.of(made(parameters={"size": 3}))
    with pytest.raises((AttributeError, TypeError)):
        public.records = 1234
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(public, "records", 1234)
    with pytest.raises(dataclasses.FrozenInstanceError):
        public.epsilon = 1
    with pytest.raises(TypeError):
        public.parameters["records"] = 1234
    with pytest.raises(TypeError):
        Public(**fields(), records=1234)


def test_parameters_are_copied_when_they_are_checked():
    mine = {"size": 3}
    public = Public.of(made(parameters=mine))
    mine["records"] = 1234
    assert dict(public.parameters) == {"size": 3}


def test_it_holds_all_that_a_release_is_but_where_its_counts_are_from():
    names = {field.name for field in dataclasses.fields(psd.Release)}
    assert names - {field.name for field in dataclasses.fields(Public)} == {"source"}


@pytest.mark.parametrize("name", ["", "visits of 1234 people", "Grid", "g" * 41, "grid\n"])
def test_the_name_of_a_method_is_no_place_for_text(name, tmp_path):
    with pytest.raises(ParameterError, match="no name of a method"):
        made(method=name).save(tmp_path / "r.psd.parquet")


def test_it_gives_the_release_again():
    known = covariate()
    release = made(covariate=known, view=View(density="covariate"), parameters={"size": 3})
    again = Public.of(release).release()
    assert again.digest == release.digest
    assert again.covariate is known


def test_the_named_parameters_are_those_of_the_methods_and_of_what_was_paid():
    of_methods = {
        field.name for name in psd.methods() for field in dataclasses.fields(method(name))
    }
    assert of_methods <= PARAMETERS
    paid = {name for name in PARAMETERS - of_methods if name.split("_")[0] != "look"}
    assert paid == {
        "picked", "bound_epsilon", "bound_over", "bound_most", "bounds_epsilon", "bounds_beyond",
        "counting_epsilon", "ledger", "charge",
    }  # fmt: skip


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
    with pytest.raises(ParameterError, match="tree is no Tree but a Taller"):
        Public.of(made(tree=Taller(**arrays)))
