"""Counts that were given: the release, its file and what is exported from it say so."""

import dataclasses
import json
from functools import partial

import geopandas as gpd
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psd
from psd.decompositions import as_method
from psd.errors import ParameterError
from psd.release.post_processing import INFERENCE_VERSION
from psd.release.record import ReleaseRecord
from support.releases import as_drawn, changed, decode, decode_series, encode

NOTE = "; given: psd did not draw these counts and does not vouch for epsilon"
MONTHS = psd.TimeSlices.parse("month", "2024-01..2024-02")


def given():
    """Exact counts at a stated epsilon of 1: nothing like a release of the curator."""
    return psd.testing.release_from_counts([[5, 1], [0, 2]])


def renamed():
    """Given counts under the name of a method."""
    return changed(given(), method="quadtree")


def drawn():
    table = pd.DataFrame({"lon": [0.5], "lat": [0.5]})
    domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    return psd.build(table, domain=domain, epsilon=1, method=psd.decompositions.Grid(size=2))


@pytest.mark.parametrize("make", [given, renamed])
def test_given_counts_are_given_again_after_loading(make, tmp_path):
    release = make()
    for path in (tmp_path / "first", tmp_path / "second"):
        assert release.record.source == "given"
        assert release.record.guarantee_text == "epsilon 1 per record" + NOTE
        assert repr(release).endswith(f"epsilon 1 per record{NOTE}>")
        release.save(path)
        release = psd.load(path)
    assert release.replace(post_processing=release.record.post_processing).record.source == "given"
    series = decode_series(encode(psd.Release.from_slices(MONTHS, (make(), make()))))
    assert series.record.source == "given"
    assert series.record.guarantee_text == "epsilon 2 per record" + NOTE
    assert repr(series).endswith(f"epsilon 2 per record{NOTE}>")
    assert {release.record.source for release in series._releases} == {"given"}


def test_a_release_of_the_curator_says_nothing_more():
    release = decode(encode(drawn()))
    assert (release.record.source, release.record.guarantee_text) == (
        "curator",
        "epsilon 1 per record",
    )
    assert repr(release).endswith("epsilon 1 per record>")
    assert "release_source" not in release.to_geopandas()
    for make, expected in {drawn: "curator", given: "given", renamed: "given"}.items():
        header = json.loads(pq.read_schema(pa.BufferReader(encode(make()))).metadata[b"psd"])
        assert header["source"] == expected
    assert changed(renamed(), source="curator").digest != renamed().digest


def test_given_counts_do_not_become_the_curators_by_mistake():
    with pytest.raises(ParameterError, match="differ in source"):
        psd.Release.from_slices(MONTHS, (renamed(), changed(renamed(), source="curator")))
    with pytest.raises(ParameterError, match="source must not be curator for method 'given'"):
        dataclasses.replace(given().record, source="curator")
    fields = {field.name: field.default for field in dataclasses.fields(ReleaseRecord)}
    assert fields["source"] == "given"

    @dataclasses.dataclass(frozen=True)
    class Given:
        """Nothing."""

        name = "given"
        paper = ""

        def build(self, curator):
            """Build nothing."""

    with pytest.raises(ParameterError, match="must not be named 'given'"):
        psd.decompositions.register(Given)
    with pytest.raises(ParameterError, match="must not be named 'given'"):
        as_method(Given())


@pytest.mark.parametrize("cells", ["leaves", "all"])
@pytest.mark.parametrize("suffix", [".csv", ".gpkg", ".geojson", ".parquet"])
def test_tables_of_given_counts_say_so_in_every_row(suffix, cells, tmp_path):
    path = tmp_path / f"r{suffix}"
    given().export(path, cells=cells)
    # The styles of a GeoPackage are a layer as well.
    package = partial(gpd.read_file, layer="cells")
    readers = {".csv": pd.read_csv, ".parquet": gpd.read_parquet, ".gpkg": package}
    read = readers.get(suffix, gpd.read_file)
    assert set(read(path)["release_source"]) == {"given"}
    as_drawn(given()).export(path, cells=cells, overwrite=True)
    assert "release_source" not in read(path)


def test_the_version_of_estimates_is_a_number():
    record = given().record
    for wrong in ("1", None, True, 0, INFERENCE_VERSION + 1, 1.0):
        with pytest.raises(ParameterError, match="version must be an integer from 1 to"):
            dataclasses.replace(record, inference=wrong)
