"""Areas outside the bounds: refused by the caller's id, left out, or answered by 0."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

from psd.errors import ParameterError
from psd.testing.data import release_from_counts
from support.cli_runner import cli, fails
from support.releases import as_drawn

RELEASE = release_from_counts(np.arange(64).reshape(8, 8) * 10)
INSIDE, FAR, NORTH = (
    shapely.box(*bounds) for bounds in ((0, 0, 4.5, 8), (20, 0, 24, 8), (0, 20, 1, 24))
)


def wards(*shapes, **columns):
    return gpd.GeoDataFrame(columns, geometry=list(shapes), crs=RELEASE.domain.crs)


def test_a_refusal_names_the_callers_id():
    named = wards(INSIDE, FAR, id=["w1", "w81"], ward=["a", "b"])
    with pytest.raises(ParameterError, match=r"region 'w81' lies outside .* \(1 of 2 do\)"):
        RELEASE.query(named)
    with pytest.raises(ParameterError, match="region 'b' lies outside"):
        RELEASE.query(named.drop(columns="id"))
    with pytest.raises(ParameterError, match="region 2 lies outside"):
        RELEASE.query(wards(INSIDE, FAR, ward=["a", "a"]))
    crossing = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    with pytest.raises(ParameterError, match="region 'w2' is not valid"):
        RELEASE.query(wards(INSIDE, crossing, id=["w1", "w2"]))


@pytest.mark.parametrize("kind", ["table", "series", "shapes", "boxes"])
def test_others_have_the_answers_that_they_have_alone(kind):
    shapes = [FAR, INSIDE, NORTH]
    given = {
        "table": wards(*shapes, id=["a", "b", "c"]),
        "series": gpd.GeoSeries(shapes, crs=RELEASE.domain.crs),
        "shapes": shapes,
        "boxes": [shape.bounds for shape in shapes],
    }[kind]
    how = {"crs": RELEASE.domain.crs} if kind == "shapes" else {}
    areas = [INSIDE.bounds] if kind == "boxes" else [INSIDE]
    alone = RELEASE.query(areas, **({} if kind == "boxes" else {"crs": RELEASE.domain.crs}))
    skipped = RELEASE.query(given, outside="skip", **how)
    zeros = RELEASE.query(given, outside="zero", **how)
    for name in ("estimate", "error", "lower", "upper"):
        assert skipped[name].tolist() == alone[name].tolist()
        assert zeros[name].tolist() == [0, alone[name].iloc[0], 0]
    assert skipped.areas.outside.skipped == 2
    assert skipped.table["id"].tolist() == ["b" if kind == "table" else 2]
    for answers in (skipped, zeros):
        assert answers.total().estimate == pytest.approx(alone["estimate"].iloc[0])
        assert len(answers.explain()) == len(answers.to_geopandas()) == len(answers)
    none = RELEASE.query([FAR.bounds], outside="skip")
    assert len(none) == len(none.table) == 0


def test_names_and_other_words_are_refused():
    with pytest.raises(ParameterError, match="outside must be one of refuse, skip, zero"):
        RELEASE.query([INSIDE.bounds], outside="drop")


def test_the_command_says_how_many_it_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    as_drawn(RELEASE).save("r")
    wards(INSIDE, FAR, id=["w1", "w81"]).to_file("w.gpkg")
    told = fails(2, "query r --polygons w.gpkg")
    assert "region 'w81' lies outside" in told
    assert "--outside skip or --outside zero" in told
    done = cli("query r --polygons w.gpkg --outside skip")
    assert "(1 of 2 regions lie outside the bounds and are left out)" in done.err
    assert "w81" not in done.out
    assert "w81" in cli("query r --polygons w.gpkg --outside zero").out
    for words in ("--top 2", "--nested"):
        assert "--outside must be" in fails(2, f"query r --polygons w.gpkg --outside skip {words}")
