"""Cases of small functions of reading: names of columns and files, sizes, ids as numbers."""

import errno
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from psd.errors import InputDataError, ResourceError
from psd.ingest.columns import closest_text, resolve_columns, unit_of_names
from psd.ingest.id_columns import header_in_memory
from psd.ingest.input_paths import (
    ending_kind,
    has_known_ending,
    has_partition_values,
    uncompressed_name,
)
from psd.ingest.memory_limit import parse_memory, split_memory
from psd.ingest.points import number_rule, srid_of
from psd.ingest.sources import Columns
from psd.ingest.sources._arrow import fault_class
from psd.ingest.tally import widen_columns
from psd.ingest.user_partitions import short_names, short_numbers

POINTS = np.zeros(2, [("x", float), ("y", float)])
PARTITION = Path("/data/user=ann/part-0.parquet")


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (unit_of_names, [("Longitude", "Latitude")], "degrees"),
        (unit_of_names, [("easting", "northing")], "metres"),
        (unit_of_names, [("x", "y")], None),
        (closest_text, ["lat", ["lon", "latt"]], "its columns are lon, latt; did you mean 'latt'?"),
        (ending_kind, [Path("a/visits.parquet")], "parquet"),
        (ending_kind, [Path("visits.csv.gz")], "csv"),
        (has_known_ending, ["visits.csv"], True),
        (has_known_ending, ["visits.kml"], False),
        (uncompressed_name, ["visits.csv.gz"], "visits.csv"),
        (uncompressed_name, ["visits.csv"], "visits.csv"),
        (has_partition_values, [PARTITION], True),
        (has_partition_values, [Path("/data/part-0.parquet")], False),
        (parse_memory, ["1.5GB"], 1_500_000_000),
        (split_memory, [900], (600, 300)),
        (split_memory, [None], (None, None)),
        (srid_of, ["EPSG:5179", None], 5179),
        (srid_of, ["EPSG:5179", "OGC:CRS84"], 4326),
        (srid_of, ["LOCAL_CS[]", None], None),
        (fault_class, [OSError(errno.ENOSPC, "No space left on device")], ResourceError),
        (fault_class, [ValueError("expected 3 fields")], InputDataError),
    ],
)
def test_function_gives_the_expected_value(function, arguments, expected):
    assert function(*arguments) == expected


def test_columns_are_found_by_their_names_in_any_case():
    found = resolve_columns(Columns(user="ID"), ["id", "Longitude", "Latitude"])
    assert list(found) == ["Longitude", "Latitude", "id"]


def test_header_in_memory_has_the_names_of_a_table_alone():
    assert header_in_memory(POINTS).names == ["x", "y"]
    header = header_in_memory("points.csv")
    assert (header.names, header.has_geometries) == ([], False)


def test_rule_of_points_in_text_names_their_forms():
    rule = number_rule(Columns(wkt="geom"), 4326)
    assert rule.startswith("must hold points in WKT such as POINT (127.01 37.5), EWKT or hex")


def test_strata_widen_columns():
    assert widen_columns(np.array([5, 5]), np.array([0, 2]), 8).tolist() == [5, 21]


def test_short_ids_are_numbers_by_their_bytes():
    numbers, is_short = short_numbers(pa.array(["a", "", "ab", "longer than eight"]))
    assert numbers[:3].tolist() == [97, 0, 25185]
    assert is_short.tolist() == [True, True, True, False]
    assert short_names(pa.array([97, 0, 25185], pa.uint64())).to_pylist() == ["a", "", "ab"]
