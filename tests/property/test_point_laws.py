"""Points in WKB: the quick way and the parser of shapely read the same."""

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from psd.errors import InputDataError
from psd.ingest import points

NUMBERS, POINT = st.floats(allow_infinity=False, width=64), shapely.Point(1, 2)
POINTS = st.lists(st.one_of(st.none(), st.tuples(NUMBERS, NUMBERS)), max_size=12)


def parsed(array):
    return points.point_coordinates(shapely.from_wkb(array.to_numpy(zero_copy_only=False)), "g")


@given(
    POINTS,
    st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()]),
    st.sampled_from(["plain", "srid", "big-endian", "height", "mixed"]),
    st.integers(0, 3),
)
def test_both_ways_agree(places, kind, spelling, skipped):
    shapes = [None if place is None else shapely.Point(place) for place in places]
    wkb = shapely.to_wkb(shapes, byte_order=0 if spelling == "big-endian" else 1)
    if spelling in ("srid", "mixed"):
        with_srid = shapely.to_wkb(shapely.set_srid(shapes, 5179), include_srid=True)
        of_these = slice(None) if spelling == "srid" else slice(1, None, 2)
        wkb[of_these] = with_srid[of_these]
    if spelling == "height":
        wkb = shapely.to_wkb(shapely.force_3d(shapes, 7.0), output_dimension=3)
    array = pa.array(list(wkb), pa.binary()).cast(kind).slice(skipped)
    found, expected = points.decode_points(array, "g"), parsed(array)
    # A point with one coordinate that is no number is nowhere, whichever way it is read.
    missing = np.isnan(found).any(axis=0)
    np.testing.assert_array_equal(missing, np.isnan(expected).any(axis=0))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one[~missing], other[~missing])


def test_the_quick_way_is_for_finite_points_alone():
    shapes = ("LINESTRING (0 0, 1 1)", "MULTIPOINT (1 1)", "POLYGON ((0 0, 1 1, 1 0, 0 0))")
    for wkb, words in [
        *((shapely.to_wkb([POINT, shapely.from_wkt(shape)]), "hold points") for shape in shapes),
        (shapely.to_wkb([shapely.Point(np.inf, 1)]), "infinite"),
        ([b"\x07" * 21], "must hold geometries in WKB"),
        ([b"\x07" * 25], "must hold geometries in WKB"),
    ]:
        with pytest.raises(InputDataError, match=words):
            points.decode_points(pa.array(wkb, pa.binary()), "g")
