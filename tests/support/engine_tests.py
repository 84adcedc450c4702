"""Tests that an engine passes on any server; its module has the fixtures `spark` and `inputs`."""

import pytest

from psd.errors import DomainError, InputDataError
from psd.ingest.sources import Columns
from psd.privacy.unit import PrivacyUnit
from support import engines

USER = PrivacyUnit(kind="user", max_contributions=3)

BOUNDED = {"user": "user", "time": "time", "slices": engines.SLICES["day"]}
BUILDS = {
    "in all slices": {"path": "turns", **BOUNDED, "max_contributions": 3},
    "in each slice": {"path": "turns", **BOUNDED, "max_contributions": 2, "per": "slice"},
    "user-slice": {"path": "turns", **BOUNDED, "max_contributions": 2, "per": "user-slice"},
    "limits": {"path": "turns", **BOUNDED, "max_contributions": 4, "max_per_slice": 1},
    "cube": {"path": "turns", **BOUNDED, "method": "cube", "max_contributions": 4},
    "boundary": {"path": "outline", "boundary": engines.polygons()},
    "another CRS": {"path": "metres", "input_crs": engines.METRES, "boundary": engines.polygons()},
}
"""Options of a build by the words of each, and the input that it reads."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return engines.write_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture
def quiet(spark, capfd):
    """Nothing is printed, but by a server that runs in this process."""
    yield
    assert spark.url or capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(("unit", "step"), engines.CASES.values(), ids=engines.CASES)
def test_cell_by_cell(spark, inputs, kind, unit, step):
    engines.assert_same(spark, inputs[kind], unit=unit, step=step)


@pytest.mark.parametrize("method", ["quadtree", "grid"])
def test_the_same_noise_makes_the_same_release(spark, inputs, method):
    engines.assert_same_release(spark, inputs["parquet"], domain=engines.DOMAIN, method=method)


@pytest.mark.parametrize("options", BUILDS.values(), ids=BUILDS)
def test_builds_of_all_options_make_the_same_release(spark, inputs, options):
    path = inputs[options["path"]]
    more = {name: value for name, value in options.items() if name != "path"}
    engines.assert_same_release(spark, path, **{"domain": engines.DOMAIN, "method": "grid", **more})


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("by", engines.SLICES)
@pytest.mark.parametrize("case", ["user, some in each slice", "user-slice"])
def test_slice_by_slice(spark, inputs, by, case):
    path = inputs["turns in text" if by == "week" else "turns"]
    engines.assert_same(spark, path, unit=engines.SLICED[case], slices=engines.SLICES[by])


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_filter_selects_the_same_records(subtests, spark, tmp_path, kind):
    table, path = engines.rows_to_filter(), tmp_path / f"points.{kind}"
    (engines.write_csv if kind == "csv" else engines.write_parquet)(table, path)
    for where in engines.FILTERS:
        with subtests.test(where):
            engines.assert_same(spark, str(path), Columns(user="user", where=where), unit=USER)


@pytest.mark.usefixtures("quiet")
def test_records_in_an_area(spark, inputs):
    options = {"area": engines.area(), "strata": engines.hierarchies()["a gap"]}
    engines.assert_same(spark, inputs["outline"], Columns(), **options)
    engines.assert_same(spark, inputs["csv"], unit=USER, area=options["area"])


@pytest.mark.usefixtures("quiet")
def test_coordinates_in_another_crs(spark, inputs):
    columns = Columns(user="user", time="time", input_crs=engines.METRES)
    engines.assert_same(spark, inputs["metres"], columns, unit=USER, area=engines.area())
    columns = Columns(user="user", input_crs="EPSG:4326")
    engines.assert_same(spark, inputs["csv"], columns, engines.PROJECTED, unit=USER)


@pytest.mark.parametrize("name", engines.ODD)
def test_odd_fields_are_taken_or_refused_alike(spark, tmp_path, name):
    values = engines.ODD[name]
    table = engines.beside_sound_ones(name, values)
    refused = engines.spark_verdicts(spark.url, table, tmp_path)
    assert refused == engines.duckdb_verdicts(table)
    assert 3 < sum(refused) < len(values) - 3


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("content", "told"), engines.REFUSED.values(), ids=engines.REFUSED)
def test_refused_without_a_word_of_the_data(spark, tmp_path, content, told):
    path = tmp_path / "points.csv"
    path.write_text(content)
    # Accents that stand apart are put together in this process.
    for engine in [spark] if "\u0301" in content else [spark, engines.Local()]:
        words = told if engine is spark else None
        with pytest.raises((InputDataError, DomainError), match=words) as raised:
            engine.tally(str(path), Columns(user="user"), engines.DOMAIN, unit=USER)
        assert "2468" not in str(raised.value)
        assert raised.value.__cause__ is raised.value.__context__ is None
