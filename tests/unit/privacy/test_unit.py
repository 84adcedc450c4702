"""Units of privacy: what goes together, what it says, and answers in users."""

import io
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import psd
from psd.errors import ParameterError, ReleaseFormatError
from psd.estimation.least_squares import infer_counts
from psd.estimation.posterior import posterior_counts
from psd.privacy.unit import WEIGHT, PrivacyUnit, privacy_unit
from psd.release.post_processing import PostProcessing
from psd.statistics.raster import density_raster
from support.noise import for_users
from support.releases import changed, decode, encode
from support.tables import refuses

DOMAIN = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
DAY = {"per": "day", "time": "t", "time_zone": "Asia/Seoul"}
K4 = {"user": "u", "max_contributions": 4}


def unit_of(user=None, max_contributions=None, **more):
    return privacy_unit(user=user, max_contributions=max_contributions, **more)


def test_what_the_arguments_say(subtests):
    for arguments, fields in (
        ({}, {}),
        (K4, {"kind": "user", "max_contributions": 4}),
        ({**K4, **DAY}, {"kind": "user-day", "max_contributions": 4, "time_zone": "Asia/Seoul"}),
        ({**K4, "max_per_slice": 2}, {"kind": "user", "max_contributions": 4, "max_per_slice": 2}),
        ({"user": "u", "count": "users"}, {"kind": "user", "weight": WEIGHT}),
        ({"time": "t", "time_zone": "Asia/Seoul"}, {}),
    ):
        with subtests.test(arguments=arguments):
            assert unit_of(**arguments) == PrivacyUnit(**fields)


def test_what_does_not_go_together_is_refused(subtests):
    needed, counted = "given with user= and max_contributions=", {"user": "u", "count": "users"}
    rows = [
        ({"max_contributions": 4}, "user must name the column"),
        ({"count": "users"}, "user must name the column"),
        (DAY, "user must name the column"),
        ({"user": "u"}, "max_contributions must be given"),
        ({"user": "u", **DAY}, "max_contributions must be given"),
        ({**K4, "per": "day"}, "time must name the column"),
        ({**K4, "count": "users"}, "must be left out"),
        ({**counted, **DAY}, "per must be left out"),
        ({**K4, "per": "hour"}, "one of day, user-slice, got"),
        ({"user": "u", "count": "people"}, "one of records, users, got"),
        ({"user": "u", "max_contributions": "x"}, "integer"),
        ({"max_per_slice": 1}, needed),
        ({**K4, "max_per_slice": 1, **DAY}, needed),
        ({**counted, "max_per_slice": 1}, needed),
        ({**K4, "max_per_slice": 5}, "at most that of max_contributions=, 4, got 5"),
        ({**K4, "max_per_slice": 0}, "max_per_slice must be between 1 and"),
    ]
    refuses(subtests, unit_of, rows, ParameterError)
    zoned = {"kind": "user-day", "time_zone": "UTC"}
    for fields in (
        {"kind": "household"},
        {"kind": "record", "max_contributions": 2},
        {"kind": "record", "weight": 5},
        {"kind": "user-day"},
        {"kind": "user", "time_zone": "UTC"},
        {**zoned, "weight": 5},
        {**zoned, "time_zone": "Seoul (local)"},
    ):
        with subtests.test(fields=fields), pytest.raises(ParameterError):
            PrivacyUnit(**fields)


def test_every_unit_says_what_it_is():
    day = PrivacyUnit(kind="user-day", max_contributions=4, time_zone="Asia/Seoul")
    assert day.guarantee_text == (
        "per user and day in Asia/Seoul, at most 4 records of each; a user of T days has T epsilon"
    )
    assert day.counted_text == "kept records, at most 4 of each user and day"
    assert PrivacyUnit().guarantee_text == "per record"
    slices = PrivacyUnit(kind="user", max_contributions=4, max_per_slice=1)
    assert slices.contributions == 4  # of all slices together, so the noise is made for 4
    assert slices.guarantee_text == (
        "per user, at most 4 records of each, at most 1 of them in each time slice"
    )
    assert slices.counted_text == (
        "kept records, at most 4 of each user, at most 1 of them in each time slice"
    )
    assert "T slices" in PrivacyUnit(kind="user-slice", max_contributions=2).guarantee_text
    assert PrivacyUnit(kind="user", weight=6).guarantee_text == "per user, counts are users"
    assert all(WEIGHT % rows == 0 for rows in range(1, 17))  # shares of users with few rows


def in_users(counts, weight, epsilon="1"):
    made = psd.Release.from_counts(
        psd.decompositions.grid_tree(DOMAIN, 4), counts, epsilon, domain=DOMAIN
    )
    return changed(made, unit=PrivacyUnit(kind="user", weight=weight))


@pytest.mark.parametrize("estimate", ["least-squares", "signed", "posterior"])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "8"])
def test_answers_are_those_of_real_noise_on_users(estimate, epsilon):
    """As the weight grows, noise of scale M / epsilon over M becomes that of 1 / epsilon."""
    users = np.array([[9, 0, 1, 4], [0, 0, 30, 2], [5, 1, 0, 0], [7, 3, 3, 0]])
    view = PostProcessing(estimate=estimate)
    coarse, fine = (
        in_users(users * weight, weight, epsilon).replace(post_processing=view)
        for weight in (WEIGHT, 40 * WEIGHT)
    )
    asked = [(0, 0, 2, 2), (0.5, 0.5, 3, 3), (0, 0, 4, 4)]
    table = coarse.query(asked).table
    pd.testing.assert_frame_equal(table, fine.query(asked).table, rtol=1e-6)
    variance = 2 / float(epsilon) ** 2
    assert coarse.index.fit.estimates.variance[-16:] == pytest.approx(variance, rel=1e-6)
    if estimate == "least-squares":
        assert coarse.index.fit.estimates.signed[0] == pytest.approx(users.sum())


def test_a_scale_is_a_change_of_unit_and_nothing_else():
    """Estimates of counts over 6 with the noise of 6 are a sixth of those of the counts."""
    tree = in_users(np.arange(16).reshape(4, 4) * 5, 1).tree
    plain, scaled = infer_counts(for_users(tree, 6)), infer_counts(for_users(tree, 6), 6)
    assert scaled.signed * 6 == pytest.approx(plain.signed)
    assert scaled.count * 6 == pytest.approx(plain.count)
    assert scaled.variance * 36 == pytest.approx(plain.variance)
    assert scaled.slope == pytest.approx(plain.slope)
    posterior = posterior_counts(for_users(tree, 6), scaled, 6) * 6
    expected = posterior_counts(for_users(tree, 6), plain)
    assert posterior == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.deep
def test_everything_that_a_release_says_is_in_users(tmp_path):
    made = in_users(np.full((4, 4), 50 * WEIGHT), WEIGHT)
    assert made.total == pytest.approx(800)
    assert density_raster(made.index.fit, 2, 2).count.sum() == pytest.approx(800)
    assert made.query([(0, 0, 4, 4)]).joint().answers["estimate"].tolist() == pytest.approx([800])
    assert made.query(top=1)["estimate"].tolist() == pytest.approx([50])
    assert made.to_geopandas()["estimate"].sum() == pytest.approx(800)
    assert made.query([(0, 0, 2, 4)], errors=False).arrays["estimate"].tolist() == pytest.approx(
        [400]
    )
    drawn = made.query(quantiles=True, classes=2, size=(2, 2), draws=10).table
    assert drawn["error"].max() < drawn["density"].max()


@pytest.mark.deep
def test_a_user_is_one_however_many_rows():
    ids = ["a"] * 300 + list(map(str, range(100)))
    table = pd.DataFrame({"lon": [0.5] * 300 + [3.5] * 100, "lat": 0.5, "u": ids})
    method, counted = psd.decompositions.Grid(size=2), {"user": "u", "count": "users"}
    release = psd.build(table, domain=DOMAIN, epsilon=100, method=method, **counted)
    assert release.unit == PrivacyUnit(kind="user", weight=WEIGHT)
    assert release.total == pytest.approx(101, abs=1)
    assert release.query([(0, 0, 2, 2), (2, 0, 4, 2)], errors=False).arrays[
        "estimate"
    ] == pytest.approx([1, 100], abs=1)


def test_a_unit_stands_in_the_file():
    for fields in (
        {"kind": "user", "weight": WEIGHT},
        {"kind": "user-day", "max_contributions": 3, "time_zone": "Asia/Seoul"},
        {"kind": "user-slice", "max_contributions": 3},
    ):
        made = changed(in_users(np.zeros((4, 4), int), 1), unit=PrivacyUnit(**fields))
        assert decode(encode(made)).unit == made.unit
    # A header with a unit that contradicts itself is refused.
    content = encode(in_users(np.zeros((4, 4), int), WEIGHT))
    table = pq.read_table(io.BytesIO(content))
    header = json.loads(table.schema.metadata[b"psd"]) | {"unit": "record"}
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({b"psd": json.dumps(header).encode()}), sink)
    with pytest.raises(ReleaseFormatError, match="unit record must have"):
        decode(sink.getvalue())
