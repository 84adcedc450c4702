"""Every feature of a query on every kind of release."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.release.post_processing import DENSITIES, ESTIMATES, PostProcessing
from psd.space.covariate import Covariate
from support.cli_runner import cli

DOMAIN = psd.Domain(bounds=(0, 0, 16, 16), crs="EPSG:3857", lattice=(64, 64))
BOX = (1.3, 2.2, 9.4, 10.1)
NESTED = [(3, 3, 4.5, 5), (2, 2, 6, 7), (1, 1, 9, 9)]
TRIANGLE = shapely.Polygon([(2, 2), (12, 3), (5, 13)])
INSIDE = gpd.GeoDataFrame(geometry=[shapely.Point(8, 8).buffer(7)], crs="EPSG:3857")


def rows(users=60, size=400):
    random = np.random.default_rng(7)
    x, y = np.clip(random.normal(8, 2.5, (2, size)), 0, 15.9)
    times = np.datetime64("2024-01-05") + random.integers(0, 50, size)
    ids = random.integers(0, users, size).astype(str)
    return pd.DataFrame({"lon": x, "lat": y, "id": ids, "time": times.astype(str)})


def covariate():
    random = np.random.default_rng(3)
    return Covariate(domain=DOMAIN, raster=random.integers(0, 5, (8, 8)).astype(np.uint16))


KINDS = {
    "plain": {},
    "adaptive": {"method": "cascade"},
    "boundary": {"boundary": INSIDE},
    "adaptive with a boundary": {"method": "cascade", "boundary": INSIDE},
    "covariate": {"covariate": covariate},
    "boundary and covariate": {"boundary": INSIDE, "covariate": covariate},
    "rows of users": {"user": "id", "max_contributions": 3},
    "users": {"user": "id", "count": "users"},
    "days of users": {"user": "id", "max_contributions": 2, "per": "day", "time": "time"},
}


def build(kind):
    arguments = {"method": psd.decompositions.Quadtree(height=4), **KINDS[kind]}
    if callable(arguments.get("covariate")):
        arguments["covariate"] = arguments["covariate"]()
    return psd.build(rows(), domain=DOMAIN, epsilon=2, **arguments)


def views(release):
    densities = [d for d in DENSITIES if d != "covariate" or release.record.covariate is not None]
    return [
        PostProcessing(estimate=estimate, density=d) for estimate in ESTIMATES for d in densities
    ]


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_every_feature_answers(kind):
    built = build(kind)
    for view in views(built):
        release = built.replace(post_processing=view)
        for regions in ([BOX], TRIANGLE):
            crs = DOMAIN.crs if regions is TRIANGLE else None
            answers = release.query(regions, crs=crs).table
            assert np.isfinite(answers[["estimate", "error", "lower", "upper"]]).all(axis=None)
            [explanation] = release.query(regions, crs=crs).explain()
            as_it_is = explanation.remedies.iloc[0]
            assert as_it_is["error"] == pytest.approx(answers["error"][0], rel=1e-6)
            joint = release.query(regions, crs=crs).joint().answers
            assert joint["estimate"].tolist() == answers["estimate"].tolist()
        assert (release.query(NESTED).nested()["ring"] >= 0).all()
        assert release.query([BOX], errors=False).arrays["estimate"][0] == pytest.approx(
            release.query([BOX])["estimate"][0]
        )


def test_more_epsilon_helps_also_where_a_boundary_leaves_cells_uncounted():
    release = build("boundary")
    [explanation] = release.query([(0, 0, 4, 4)]).explain()
    errors = explanation.remedies.set_index("change")["perturbation_error"]
    assert errors["10 times the epsilon"] < errors["2 times the epsilon"] < errors["as it is"]


@pytest.mark.parametrize("flag", ["--joint", "--nested", "--explain"])
@pytest.mark.parametrize("kind", ["plain", "boundary", "users"])
def test_every_option_of_the_command_answers(kind, flag, tmp_path):
    build(kind).save(tmp_path / "r.psd.parquet")
    boxes = ["--box", 3, 3, 5, 5, "--box", 1, 1, 9, 9]
    outcome = cli("query", tmp_path / "r.psd.parquet", *boxes, flag)
    assert outcome.code == 0, outcome.err
    assert outcome.out
