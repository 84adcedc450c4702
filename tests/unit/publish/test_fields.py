"""The table of the fields: every form of a request follows from it, and nothing private leaves."""

import inspect
import subprocess
import sys
import typing
from dataclasses import replace
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.curator.private_bounds import ContributionChoice, PrivateBounds
from psd.decompositions import Quadtree
from psd.errors import LedgerError, ParameterError, PsdError
from psd.ledger.ledger import Ledger
from psd.publish.fields import FIELDS, Field, field_names, public_files, values_of_request
from psd.publish.public_inputs import BoundaryFile, CovariateFile
from psd.publish.recipe import PrivateInputs, Recipe
from psd.publish.request_values import (
    RequestArguments,
    request_from_toml,
    request_from_values,
    request_to_toml,
)
from psd.publish.tallies import _ARGUMENTS, _OF_THE_BUILD
from psd.space.time_slices import TimeSlices
from support.cli_runner import cli
from support.requests import request_of

BOUNDS = (126.4, 37.0, 127.6, 38.0)
MONTHS = TimeSlices.parse("month", "2024-01..2024-03,2024-07", "Asia/Seoul")
USER = {"user": "id", "max_contributions": 4}
CHOSEN = {"user": "id", "max_contributions": "auto"}
TIMED = {"slices": MONTHS, "time": "at"}
ABOUT = {"title": "Visits", "licence": "CC-BY-4.0"}

POINTS = pd.DataFrame({"lon": [126.9, 127.0], "lat": [37.5, 37.6], "id": ["a", "b"]})
HALVES = gpd.GeoDataFrame(
    {"ward": ["w", "e"], "city": ["c", "c"]},
    geometry=[shapely.box(126.4, 37, 127, 38), shapely.box(127, 37, 127.6, 38)],
    crs="EPSG:4326",
)


# The table


def test_every_field_is_described_once(subtests):
    names = field_names()
    assert len(set(names)) == len(names)
    assert set(field_names(private=True)) | set(field_names(private=False)) == set(names)
    assert not set(field_names(private=True)) & set(field_names(private=False))
    stated = inspect.signature(Field).parameters
    assert all(stated[name].default is stated[name].empty for name in ("help", "group", "private"))
    for field in FIELDS:
        with subtests.test(field.name):
            assert field.help.endswith(".")
            assert field.group
            assert isinstance(field.private, bool)
            words = field.name.replace("_", "-")
            assert field.option == (f"--{words}" if not field.long_option else "--value")
            # No request holds a private value; of the others, `values_of_request` states all but
            # the CRS of the numbers, which are then those of the CRS of the release.
            assert (field.value_of is None) == (field.private or field.name == "bounds_crs")
            assert not (field.private and field.files)


def test_tallies_and_single_counts_have_the_fields_that_they_need():
    tally = set(inspect.signature(psd.tally).parameters)
    assert tally >= {*_ARGUMENTS, "ledger", "dataset", "analyst", "memory", "table", "query"}
    assert not tally & {*_OF_THE_BUILD, "engine"}
    own = {"data", "domain", "output", "key", "carry_users", "part", "overwrite"}
    assert tally <= {*field_names(), *own}
    ask = set(inspect.signature(psd.ask).parameters)
    own = {"data", "area", "confidence", "mean", "sum", "when", "account", "sampler", "observer"}
    assert ask <= {*field_names(), *own}
    needed = {each.name for each in FIELDS if each.group in ("Input", "Unit of privacy")}
    assert needed - ask == {"engine"}
    choices = {"choice_share", "choice_over", "choice_limit"}
    assert needed - tally == {"engine", *choices}


def test_python_has_the_fields():
    own = {"data", "domain", "account", "sampler", "observer"}
    arguments = inspect.signature(psd.build).parameters
    assert set(arguments) == {field.name for field in FIELDS if field.is_argument} | own
    apart = {field.name for field in FIELDS if not field.is_argument}
    assert apart == {"report_private", "keep_tally"}
    known = typing.get_type_hints(RequestArguments)
    assert set(known) == {*field_names(private=False), "domain"}
    # What is left out is the same in Python and in a recipe.
    defaults = {name: each.default for name, each in arguments.items() if name in known}
    left_out = {name: value for name, value in defaults.items() if name != "epsilon"}
    assert request_of(**{**left_out, "bounds": BOUNDS}, epsilon=1) == request_of(
        bounds=BOUNDS, epsilon=1
    )


def test_the_table_imports_nothing_that_reads_records_or_draws():
    """Commands of a device import it for their help."""
    rooms = "ingest", "mechanisms", "curator", "ledger", "api", "apps"
    script = f"""
import sys, psd.publish.fields
sys.exit(str([n for n in sys.modules if n.startswith(tuple("psd." + n for n in {rooms}))]))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.stderr == "[]\n"


# A request and its values


REQUESTS = {
    "records": {},
    "a domain": {"domain": psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(8, 8))},
    "rounded coordinates": {"domain": psd.Domain(bounds=BOUNDS, coordinate_resolution="0.0001")},
    "small cells": {"domain": psd.Domain(bounds=BOUNDS, min_cell="0")},
    "private bounds": {"domain": PrivateBounds(share="0.2", beyond=20)},
    "rounded private bounds": {
        "domain": PrivateBounds(crs="EPSG:5179", coordinate_resolution="0.10")
    },
    "a method": {"method": Quadtree(height=3, prune=32)},
    "values": {"values": {"fare": (0, 60), "balance": (-5, 5.5)}},
    "settings": {"method": "quadtree", "set": ["height=3", "prune=32"]},
    "a workload": {"method": Quadtree(height=1, budget="workload", workload="1 3")},
    "users": USER,
    "a chosen bound": CHOSEN,
    "a described choice": {
        "user": "id",
        "max_contributions": ContributionChoice(share=".1", over=9),
    },
    "a choice of fields": {**CHOSEN, "choice_share": "0.2", "choice_over": 7, "choice_limit": 30},
    "days": {**USER, "per": "day", "time": "at", "time_zone": "Asia/Seoul"},
    "slices of users": {**USER, **TIMED, "per": "user-slice"},
    "counted users": {"user": "id", "count": "users"},
    "slices": TIMED,
    "separate slices": {**TIMED, "separate_slices": True},
    "a limit in each slice": {**USER, **TIMED, "max_per_slice": 2},
    "a bound per slice": {**USER, **TIMED, "per": "slice"},
    "columns": {"x": "east", "y": "north", "geometry": "geom", "layer": "visits"},
    "text": {"wkt": "p", "delimiter": "tab", "decimal": ",", "encoding": "utf-16", "skip_rows": 3},
    "another CRS": {"input_crs": "EPSG:5179"},
    "some records": {"where": "diagnosis = 'asthma' AND (age >= 18 OR age IS NULL)"},
    "post-processing": {"method": "cascade", "estimate": "signed", "density": "uniform"},
    "a covariate": {"covariate": CovariateFile(path="land.gpkg", column="people", size=64)},
    "a covariate of fields": {"covariate": "land.gpkg", "covariate_column": "people"},
    "a repaired boundary": {"boundary": BoundaryFile(path="old.gpkg", repair=True)},
    "a boundary": {"boundary": BoundaryFile(path="city: old.gpkg"), "density": "uniform"},
    "Gaussian noise": {**TIMED, "noise": "gaussian", "delta": "1e-6"},
    "about": {"about": ABOUT},
    "categories": {"category": "force", "labels": "met,city", "other_labels": "drop"},
    "a tree of categories in slices": {
        **TIMED,
        "category": "purpose",
        "labels": {"work": "", "shift": "work", "a, b": "work"},
        "method": "cube",
    },
}  # fmt: skip


def request(**arguments):
    return request_of(**{"domain": BOUNDS, "epsilon": "0.50"} | arguments)


@pytest.mark.parametrize("name", REQUESTS)
def test_values_and_back(name):
    given = request(**REQUESTS[name])
    values = values_of_request(given)
    again = request_from_values(values)
    assert again == given
    assert hash(again) == hash(given)
    assert values_of_request(again) == values
    text = request_to_toml(given)
    assert request_from_toml(text) == given
    assert request_to_toml(request_from_toml(text)) == text
    assert eval(repr(given.epsilon), {"Decimal": type(given.epsilon)}) == given.epsilon


def test_requests_state_every_public_field():
    """The table of requests has every field, but those of files of regions and of its own CRS."""
    stated = set().union(*(values_of_request(request(**more)) for more in REQUESTS.values()))
    files = {"regions", "region_id", "region_parent", "gaps", "tolerance"}
    assert set(field_names(private=False)) - stated == {*files, "bounds_crs"}


def test_values_of_a_choice_are_flat():
    values = values_of_request(request(**REQUESTS["a described choice"], method="grid"))
    stated = {name: value for name, value in values.items() if "cho" in name or "contr" in name}
    assert {name: str(value) for name, value in stated.items()} == {
        "max_contributions": "auto",
        "choice_share": "0.1",
        "choice_over": "9",
        "choice_limit": "1000",
    }
    bound = {name: value for name, value in values.items() if "choice" not in name}
    assert request_from_values({**bound, "max_contributions": "4"}).unit.max_contributions == 4
    everywhere = request_of(epsilon=1, bounds="area-of-use")
    assert everywhere.domain.bounds[0] == -180


def test_regions_of_files_and_back(tmp_path):
    HALVES.to_file(tmp_path / "wards.gpkg")
    wards = {"regions": "wards.gpkg", "region_id": "ward", "region_parent": "city"}
    more = {"gaps": "outside", "tolerance": 0.001, "repair": True}
    given = request_from_values({"bounds": BOUNDS, "epsilon": 1, **wards, **more}, folder=tmp_path)
    values = values_of_request(given, folder=tmp_path)
    path = str(tmp_path / "wards.gpkg")
    stated = {name: str(values[name]) for name in (*wards, *more)}
    assert stated == {
        **wards, "regions": path, "gaps": "outside", "tolerance": "0.001", "repair": "True",
    }  # fmt: skip
    cells = request(regions="h3=5", method="cascade", set={"total_share": "0.1"})
    assert values_of_request(cells)["regions"] == "h3=5"
    # Hierarchies that are read twice are not equal; what they are made of is.
    for each in (given, cells):
        for again in (
            request_from_values(values_of_request(each)),
            request_from_toml(request_to_toml(each)),
        ):
            assert values_of_request(again) == values_of_request(each)
            assert replace(again, regions=each.regions) == each
            assert again.region_source == each.region_source


def test_public_files_are_all_that_values_name(tmp_path):
    paths = {
        "bounds": "a.gpkg", "boundary": "b.gpkg", "covariate": "c.tif",
        "regions": ("d.gpkg", "e.gpkg"), "set": {"workload": "f.csv"}, "about": "g.toml",
    }  # fmt: skip
    names = ["a.gpkg", "b.gpkg", "c.tif", "d.gpkg", "e.gpkg", "f.csv", "g.toml"]
    assert public_files(paths, tmp_path) == [str(tmp_path / name) for name in names]
    for about in (Path("x=y.toml"), ["title=a", Path("x=y.toml")], {"file": "x=y.toml"}):
        assert public_files({"about": about}) == ["x=y.toml"]
    for workload in (Path("f.csv"), "f.csv"):
        assert public_files({"set": {"workload": workload}}) == ["f.csv"]
    nothing = {"bounds": BOUNDS, "set": "workload=tiny", "about": "title=a", "regions": "h3=5"}
    assert public_files(nothing) == []


# psd.build


def build(**more):
    return psd.build(POINTS, **{"bounds": BOUNDS, "epsilon": 1, "method": "grid", **more})


def test_builds_take_tables_of_polygons():
    wards = {"regions": HALVES, "region_id": "ward", "method": "none"}
    flat = build(**wards)
    assert flat.query()["id"].tolist() == ["w", "e"]
    nested = build(**wards, region_parent="city")
    city = HALVES.dissolve("city", as_index=False)
    levels = build(**{**wards, "regions": [city, HALVES], "region_id": ["city", "ward"]})
    for release in (nested, levels):
        assert release.query(level="city")["id"].tolist() == ["c"]
    city_bounds = {"bounds": HALVES.total_bounds}
    assert build(**wards, **city_bounds).domain.bounds == BOUNDS
    for boundary in (HALVES, HALVES.geometry, HALVES.union_all()):
        assert build(boundary=boundary, bounds=None).domain.bounds == BOUNDS
        assert build(boundary=boundary).domain.bounds == BOUNDS


def test_builds_take_paths_and_texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    HALVES.to_file("wards.gpkg")
    Path("about.toml").write_text("title = 'Visits'\nlicense = 'CC-BY-4.0'\n")
    for kind in (str, Path):
        land = kind("wards.gpkg")
        assert build(boundary=land, bounds=None).domain.bounds == BOUNDS
        assert build(bounds=land).domain.bounds == BOUNDS
        regions = {"regions": land, "region_id": "ward", "method": "none"}
        assert build(**regions).query()["id"].tolist() == ["w", "e"]
        for about in (kind("about.toml"), {"file": "about.toml"}):
            assert build(about=about).record.about_texts == ABOUT
    assert build(about=ABOUT).record.about_texts == ABOUT
    with pytest.raises(ParameterError, match="records"):
        psd.build("wards.gpkg", bounds=BOUNDS, epsilon=1, boundary="wards.gpkg")


def test_builds_take_texts_of_slices():
    points = POINTS.assign(at=["2024-01-03", "2024-03-05"])
    for slices in ("2024-01..2024-03", ["2024-01", "2024-02", "2024-03"]):
        series = psd.build(
            points, bounds=BOUNDS, epsilon=1000, method="grid", set={"size": 1}, time="at",
            slices=slices, time_zone="Asia/Seoul",
        )  # fmt: skip
        assert (series.slices.time_zone, tuple(series.slices.names)) == (
            "Asia/Seoul",
            ("2024-01", "2024-02", "2024-03"),
        )


@pytest.fixture
def ledger(tmp_path):
    found = Ledger.create(tmp_path / "l.ledger")
    found.register("visits", budget=3)
    return found


def test_builds_charge_a_ledger(ledger, tmp_path):
    def charges():
        return [charge.done for charge in ledger.state().charges.values()]

    first = build(ledger=ledger.path, dataset="visits")
    assert charges() == [False]
    first.save(tmp_path / "a.psd.parquet")
    assert charges() == [True]
    build(ledger=ledger, dataset="visits", analyst="ann")
    assert charges() == [True, False]
    assert list(ledger.state().charges.values())[1].analyst == "ann"
    with pytest.raises(psd.errors.BudgetError):
        build(ledger=ledger, dataset="visits", epsilon=2)
    account = psd.ledger.Account(ledger, "visits")
    for more, words in (
        ({"ledger": ledger}, "ledger and dataset must be given together"),
        ({"dataset": "visits"}, "ledger and dataset must be given together"),
        ({"analyst": "ann"}, "ledger and dataset must be given together"),
        ({"account": account, "dataset": "visits"}, "must be left out with account"),
        ({"account": account, "analyst": "ann"}, "must be left out with account"),
    ):
        with pytest.raises(ParameterError, match=words):
            build(**more)
    with pytest.raises(LedgerError, match="does not exist"):
        build(ledger=tmp_path / "other.ledger", dataset="visits")
    # A wrong public value costs nothing.
    with pytest.raises(PsdError, match="epsilon"):
        build(ledger=ledger, dataset="visits", epsilon=0)
    assert charges() == [True, False]


# Private values


MARK = "zq7marker"
"""A text that nothing else has; each private field has it with its own name."""


def marked(name):
    return f"{MARK}_{name}"


def all_bytes(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_build_leaves_no_private_value(tmp_path, capfd):
    """A ledger has its dataset and the analyst, and nothing else is written or printed."""
    place = tmp_path / f"{MARK}_folder"
    place.mkdir()
    POINTS.to_csv(place / f"{MARK}.csv", index=False)
    ledger = Ledger.create(place / marked("ledger"))
    ledger.register(marked("dataset"), budget=9)
    private = {
        "ledger": ledger.path, "dataset": marked("dataset"), "analyst": marked("analyst"),
        "memory": "1GB",
    }  # fmt: skip
    out = tmp_path / "out"
    out.mkdir()
    release = psd.build(
        str(place / f"{MARK}.csv"), bounds=BOUNDS, epsilon=1, method="grid", **private
    )
    release.save(out / "r.psd.parquet")
    texts = [repr(release), str(release.receipt if hasattr(release, "receipt") else "")]
    assert MARK.encode() not in all_bytes(out)
    assert all(MARK not in text for text in texts)
    assert MARK not in "".join(capfd.readouterr())


def test_refusals_name_no_private_value(subtests):
    """A public value is refused in words without those of private fields beside it."""
    fields = [field for field in FIELDS if field.private and field.is_argument]
    texts = {field.name: marked(field.name) for field in fields}
    for name, text in texts.items():
        others = {"engine": None, "memory": None}
        more = {"engine": f"spark://{text}:7077"} if name == "engine" else {name: text}
        for public in ({"epsilon": 0}, {"bounds": (1, 2, 3)}, {"method": "kd"}):
            if name == "ledger":  # the ledger that does not exist is named; nothing else is
                continue
            with subtests.test(name, public=public), pytest.raises(PsdError) as raised:
                build(**{**others, **more, **public})
            assert MARK not in str(raised.value)
            assert MARK not in repr(vars(raised.value))
    for name in ("table", "query"):
        with subtests.test(name), pytest.raises(PsdError, match=f"^{name} must be given") as raised:
            build(**{name: texts[name]})
        assert MARK not in str(raised.value)
    both = {"table": texts["table"], "query": texts["query"]}
    with pytest.raises(PsdError) as raised:
        psd.build("postgresql://host/db", bounds=BOUNDS, epsilon=1, **both)
    assert MARK not in str(raised.value)


def test_recipes_show_no_private_value():
    values = {name: marked(name) for name in PrivateInputs.__dataclass_fields__}
    private = PrivateInputs(**{**values, "inputs": (marked("inputs"),), "report_private": True})
    assert MARK not in repr(private)
    assert set(PrivateInputs.__dataclass_fields__) >= set(field_names(private=True))
    table = private.to_table()
    assert set(table) >= set(field_names(private=True))
    text = f'[private]\ndataset = "{marked("dataset")}"\n[release]\noutput = "a"\nepsilon = 1\n'
    recipe = Recipe.from_toml(text + "bounds = [0, 0, 1, 1]")
    (release,) = recipe.releases
    public = release.to_table(release.terms())
    assert MARK not in repr(public) + repr(recipe) + str(recipe)
    for name in field_names(private=True):
        with pytest.raises(ParameterError, match=f"key of release '{name}' does not exist") as told:
            Recipe.from_toml(f'{text}{name} = "{MARK}_value"')
        assert f"{MARK}_value" not in str(told.value)


@pytest.mark.deep
def test_commands_leave_no_private_value(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    POINTS.to_csv(f"{MARK}.csv", index=False)
    ledger = Ledger.create(marked("ledger"))
    ledger.register(marked("dataset"), budget=9)
    paths = "--ledger", marked("ledger"), "--dataset", marked("dataset")
    whose = "--analyst", marked("analyst"), "--report-private"
    kept = "--keep-tally", marked("tally")
    area = "--bounds", *BOUNDS, "--method", "grid"
    outcome = cli("build", f"{MARK}.csv", "-o", "out/r.psd.parquet", "--epsilon", 1, *area, *paths,
                  *whose, *kept)  # fmt: skip
    assert outcome.code == 0, outcome
    assert MARK.encode() not in all_bytes(Path("out"))
    assert not [line for line in outcome.out.splitlines() if MARK in line and "PRIVATE" not in line]
    with open(marked("ledger"), "rb") as file:
        written = file.read()
    assert marked("dataset").encode() in written
    assert marked("tally").encode() not in written
    for more in (("--epsilon", 0), ("--epsilon", 1, "--method", "kd")):
        outcome = cli(
            "build", f"{MARK}.csv", "-o", "out/s.psd.parquet", *area, *paths, *whose, *more
        )
        assert outcome.code != 0
        assert MARK not in outcome.out + outcome.err
    assert np.sum([charge.done for charge in ledger.state().charges.values()]) == 1
