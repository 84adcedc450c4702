"""Areas outside the bounds: refused by the caller's id, left out, or answered by 0."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
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


def of_two_wards(gaps):
    """Release of two wards in the west of bounds of 8 by 8."""
    shapes = [shapely.box(0, 0, 4, 4), shapely.box(0, 4, 4, 8)]
    table = gpd.GeoDataFrame({"ward": ["a", "b"]}, geometry=shapes, crs=RELEASE.domain.crs)
    rng = np.random.default_rng(3)
    points = pd.DataFrame({"x": rng.uniform(0, 8, 400), "y": rng.uniform(0, 8, 400)})
    how = {"regions": table, "region_id": "ward", "gaps": gaps, "method": "none"}
    return psd.build(points, domain=RELEASE.domain, epsilon=5, x="x", y="y", **how)


def test_areas_in_no_region_are_named(tmp_path, monkeypatch):
    """A part of the bounds where nothing was counted is answered by 0 +- 0, which looks exact."""
    release = of_two_wards("outside")
    within, sliver, part, all_of_it = (0, 0, 3, 8), (0, 0, 4.003, 8), (0, 0, 5, 8), (5, 0, 6, 8)
    told = "lie in no region of the release; nothing was counted there, so 0 there is no estimate"
    for areas, number in (
        ([within, sliver], 0), ([within, part], 1), ([part, all_of_it, within], 2),
    ):  # fmt: skip
        for given in (areas, wards(*(shapely.box(*area) for area in areas))):
            answers = release.query(given)
            several = "1 area reaches" if number == 1 else f"{number} areas reach"
            notes = (f"{several} into parts of the bounds that {told}",) * (number > 0)
            assert answers.notes == notes
            assert (told in repr(answers)) == (told in answers._repr_html_()) == (number > 0)
    assert release.query(level="ward").notes == ()
    assert release.query(top=2).notes == ()
    assert release.query([all_of_it]).table["estimate"].tolist() == [0]
    beyond = release.query([(0, 0, 3, 9), (5, 0, 6, 9)]).notes
    assert [note.split(" into ")[0].split(" beyond ")[0] for note in beyond] == [
        "2 regions reach", "1 area reaches"
    ]  # fmt: skip
    for other in (of_two_wards("elsewhere"), RELEASE):
        assert other.query([all_of_it]).notes == ()
    monkeypatch.chdir(tmp_path)
    release.save("r")
    assert (
        f"warning: 1 area reaches into parts of the bounds that {told}"
        in cli("query r --box 5 0 6 8").err
    )
    assert "no region" not in cli("query r --box 0 0 3 8").err
