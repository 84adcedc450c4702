"""Series of releases: what belongs together, the file and its refusals, and queries."""

import contextlib
import dataclasses
import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

import psd
from psd._util.declared_parameters import parameters_from_file
from psd.decompositions.adaptive_grid import AdaptiveGrid
from psd.errors import InputDataError, ParameterError, ReleaseFormatError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.ledger.receipts import read_receipt
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.unit import PrivacyUnit, counted_unit
from psd.publish.drawing import draw_series, slice_tally
from psd.release.file import SERIES_KEY, read_release
from psd.release.post_processing import PostProcessing
from psd.release.series_file import is_series, read_series
from psd.space.covariate import Covariate
from support.forged_releases import file_of, stamped, table_of
from support.releases import changed, encode
from support.releases import decode_series as decode
from support.tables import refused

DOMAIN = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(8, 8))
MONTHS = psd.TimeSlices.parse("month", "2024-01..2024-04", "Asia/Seoul")
K3 = PrivacyUnit(kind="user", max_contributions=3)
SURE = 10**12


def rows(count=400, months=6, users=7, seed=1):
    """Rows in and beside the slices, in and beside the domain."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1, 9, (2, count))
    month = np.datetime64("2023-12") + rng.integers(0, months, count)
    user = pa.array([f"u{n}" for n in rng.integers(0, users, count)])
    return Batch(x=x, y=y, user=user, time=month.astype("datetime64[us]") + rng.integers(10**12))


def made(unit=K3, bound="series", epsilon=SURE, method=None, data=None, **more):
    counted = tally_batches(
        [data or rows()], DOMAIN, unit=counted_unit(unit, bound), key=b"k", slices=MONTHS
    )
    method = method or psd.decompositions.Quadtree(height=2, budget="leaf")
    how = {"budget": Budget(epsilon), "method": method, "unit": unit, **more}
    return draw_series(counted, DOMAIN, MONTHS, scope=bound, **how)


def test_each_slice_counts_its_own_rows():
    data = rows()
    series = made(PrivacyUnit(), data=data)
    inside = (data.x >= 0) & (data.x < 8) & (data.y >= 0) & (data.y < 8)
    months = data.time.astype("datetime64[M]").astype(str)
    for name in series:
        assert series[name].total == pytest.approx(np.count_nonzero(inside & (months == name)))
    assert list(series) == list(MONTHS.names)
    assert len(series.slices) == 4
    assert series.record.epsilon == SURE
    assert repr(series) == "<Release: 4 slices by month, quadtree, epsilon 1000 per record>"
    data = rows(2_000)
    together, each = made(data=data), made(bound="slice", data=data)
    totals = [sum(release.total for release in s._releases) for s in (together, each)]
    assert totals == pytest.approx([7 * 3, 4 * 7 * 3])
    assert [r.record.epsilon for r in together._releases] == [SURE] * 4
    assert [r.record.epsilon for r in each._releases] == [SURE // 4] * 4
    assert (together.record.epsilon, each.record.epsilon) == (SURE, SURE)
    assert {r.unit.kind for r in each._releases} == {"user"}


def test_shares_of_epsilon_are_rounded_down_and_each_slice_has_its_noise(subtests):
    series = made(bound="slice", epsilon=7)
    assert series.record.releases[0].epsilon == 1
    assert series.record.epsilon == 4
    with pytest.raises(ParameterError, match="epsilon must be at least"):
        made(bound="slice", epsilon=3)
    day = PrivacyUnit(kind="user-day", time_zone="UTC")
    table = [("per slice", PrivacyUnit(), day, PrivacyUnit(kind="user", weight=6))]
    refused(subtests, ParameterError, table, lambda unit: counted_unit(unit, "slice"))
    # A planted build that draws once for all slices would give the same counts again.
    data = dataclasses.replace(rows(), time=np.full(400, np.datetime64("2024-02-01", "us")))
    series = made(PrivacyUnit(), epsilon=10**6, data=data)
    assert all((series[name].tree.count != 0).any() for name in series)
    assert [len(series[name].tree) for name in series] == [21] * 4
    empty = dataclasses.replace(rows(), x=np.full(400, np.nan))
    counts = [tuple(r.tree.count.tolist()) for r in made(epsilon=10**6, data=empty)._releases]
    assert len(set(counts)) == 4


def test_tallies_and_releases_that_do_not_belong_together_are_refused(tmp_path):
    counts = tally_batches([rows()], DOMAIN)
    how = {"budget": Budget(SURE), "method": psd.decompositions.Grid(size=2), "unit": PrivacyUnit()}
    with pytest.raises(ParameterError, match="slices must be those"):
        draw_series(counts, DOMAIN, MONTHS, **how)
    with pytest.raises(ParameterError, match="got one without"):
        slice_tally(counts, 0)
    counts = tally_batches([rows()], DOMAIN, slices=MONTHS)
    with pytest.raises(ParameterError, match="slices must be those"):
        draw_series(counts, DOMAIN, psd.TimeSlices.parse("month", "2024-01"), **how)
    with pytest.raises(InputDataError, match="have no time"):
        made(data=dataclasses.replace(rows(), time=None))
    series = made()
    _, *others = series._releases
    odd = made(epsilon=10**9)._releases[0]
    with pytest.raises(ParameterError, match="differ in epsilon"):
        changed(series, releases=tuple(one.record for one in (odd, *others)))
    with pytest.raises(ParameterError, match=r"one per slice \(4\), got 3"):
        changed(series, releases=tuple(one.record for one in others))

    class Replayed(SecureSampler):
        pass

    with pytest.raises(ParameterError, match="not saved"):
        made(sampler=Replayed()).save(tmp_path / "s")
    assert not list(tmp_path.iterdir())


def test_the_file_gives_the_same_series(tmp_path, subtests):
    for bound, method in (
        ("series", AdaptiveGrid()),
        ("slice", psd.decompositions.Quadtree(height=1)),
        ("series", psd.decompositions.Grid()),
    ):
        series = made(bound=bound, method=method)
        series.save(tmp_path / "s.psd.parquet", overwrite=True)
        again = psd.load(tmp_path / "s.psd.parquet")
        with subtests.test(method=method):
            assert again.slices == series.slices
            assert encode(again) == encode(series)
    known = Covariate(domain=DOMAIN, raster=np.array([[0, 1], [2, 3]], np.uint16))
    series = made(covariate=known, post_processing=PostProcessing(density="covariate"))
    series.save(tmp_path / "s")
    read = psd.load(tmp_path / "s")
    assert all(np.array_equal(r.record.covariate.raster, known.raster) for r in read._releases)
    box = [(0, 0, 3, 3)]
    assert read.query(box)["estimate"].tolist() == series.query(box)["estimate"].tolist()


def test_a_slice_saved_alone_is_a_release_and_a_series_is_none(tmp_path):
    series = made()
    series["2024-02"].save(tmp_path / "feb")
    assert psd.load(tmp_path / "feb").total == series["2024-02"].total
    series.save(tmp_path / "s")
    assert [is_series(tmp_path / name) for name in ("feb", "s", "absent")] == [False, True, False]
    assert [psd.load(tmp_path / name).slices for name in ("feb", "s")] == [None, MONTHS]
    with pytest.raises(ReleaseFormatError, match="single release and not a series"):
        read_series(tmp_path / "feb")
    with pytest.raises(ReleaseFormatError, match="series of time slices and not a single release"):
        read_release(tmp_path / "s")
    for ask in (lambda: series.index.fit, lambda: series.total, lambda: series.to_geopandas()):
        with pytest.raises(ParameterError, match="must be one time slice for this, got 4; take"):
            ask()
    with pytest.raises(ParameterError, match="release must have time slices, got one without"):
        series["2024-02"]["2024-02"]
    with pytest.raises(ParameterError, match="'2024-05' is not in this series"):
        series["2024-05"]
    before = (tmp_path / "s").read_bytes()
    with pytest.raises(psd.errors.WriteError, match="exists"):
        made().save(tmp_path / "s")
    assert (tmp_path / "s").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["feb", "s"]


@pytest.mark.parametrize("unit", [PrivacyUnit(), K3, PrivacyUnit(kind="user", weight=6)])
def test_releases_that_are_joined_may_count_the_same_records(unit):
    """The epsilons of releases that any code joins add up, in the object, the text and the file."""
    joined = psd.Release.from_slices(MONTHS, [made(unit)._releases[0]] * 4)
    for series in (joined, decode(encode(joined))):
        assert series.record.epsilon == 4 * SURE
        assert series.record.guarantee_text.startswith(f"epsilon 4000 {unit.guarantee_text}")
        assert ("in each slice" in series.record.guarantee_text) == (unit == K3)


def test_joined_builds_of_the_same_records_state_the_sum(tmp_path):
    table = pd.DataFrame({"lon": [1.0] * 5, "lat": [1.0] * 5})
    options = {"domain": (0, 0, 2, 2), "epsilon": 1, "method": "grid"}
    builds = [psd.build(table, **options) for _ in MONTHS]
    joined = psd.Release.from_slices(MONTHS, builds)
    assert (joined.record.source, joined.record.guarantee_text) == (
        "curator",
        "epsilon 4 per record",
    )
    ledger = psd.Ledger.create(tmp_path / "l")
    ledger.register("rows", 10)
    account = psd.ledger.Account(ledger, "rows")
    paid = [psd.build(table, **options, account=account) for _ in MONTHS]
    for releases in (paid, [paid[0]] * 4, [*builds[:3], paid[0]]):
        with pytest.raises(ParameterError, match="must not state a charge of a ledger"):
            psd.Release.from_slices(MONTHS, releases)


def test_a_series_states_one_charge(tmp_path):
    """A series of releases with different receipts is neither made nor read."""
    built = made()
    receipts = [{"ledger": "a", "charge": "b"}] * 3 + [{"ledger": "a", "charge": "c"}]
    records = [
        changed(release, parameters=parameters_from_file(receipt)).record
        for release, receipt in zip(built._releases, receipts, strict=True)
    ]
    with pytest.raises(ParameterError, match="state different charges of a ledger"):
        changed(built, releases=tuple(records))
    path = tmp_path / "s"
    for last, is_sound in ((receipts[0], True), (receipts[3], False), ({}, False)):
        path.write_bytes(rewritten(built, edit(parameters=[*receipts[:3], last])))
        assert (read_receipt(path) is not None) == is_sound
        with contextlib.nullcontext() if is_sound else pytest.raises(ReleaseFormatError):
            psd.load(path)


def test_queries_answer_slice_by_slice_with_the_columns_of_polygons():
    series = made(PrivacyUnit())
    answers = series.query([(0, 0, 8, 8), (0, 0, 4, 4)], each="slice").table
    assert answers.columns[0] == "slice"
    assert answers["slice"].tolist() == [n for n in MONTHS for _ in range(2)]
    for name in series:
        own = series[name].query([(0, 0, 8, 8), (0, 0, 4, 4)]).table
        part = answers[answers["slice"] == name].drop(columns="slice")
        assert part.equals(own)
    table = gpd.GeoDataFrame(
        {"name": ["a"]}, geometry=[shapely.box(1, 1, 5, 5)], crs=DOMAIN.crs, index=[7]
    )
    answers = made().query(table, each="slice").table
    assert isinstance(answers, gpd.GeoDataFrame)
    assert answers.index.tolist() == [7] * 4
    assert answers.columns[:2].tolist() == ["slice", "name"]
    assert "slice" not in table.columns
    with pytest.raises(ParameterError, match="column slice"):
        made().query(table.assign(slice=1), each="slice")


def rewritten(series, change=lambda header: header, table=lambda table: table):
    """Bytes of a series whose header or table was tampered with."""
    read = table(table_of(encode(series)))
    header = json.loads(read.schema.metadata[SERIES_KEY])
    text = change(header)
    text = text if isinstance(text, str) else json.dumps(text)
    return file_of(read, stamped(read, {SERIES_KEY: text}))


def edit(**changes):
    return lambda header: {**header, **changes}


def of_release(**changes):
    return lambda header: {**header, "release": {**header["release"], **changes}}


def twice_stated(header, parameters):
    return edit(parameters=[{}, {}, {}, parameters])(of_release(parameters=parameters)(header))


def replaced_slice(table, values):
    nodes = pa.array(values(table["slice"].to_numpy()), pa.int32())
    return table.set_column(0, table.schema.field(0), nodes)


def test_headers_are_read_strictly(subtests):
    whole, sliced = made(), ["2024-01", "2024-01", "2024-02", "2024-03"]
    for told, *changes in (
        ("not strict JSON", lambda h: "{", lambda h: json.dumps(h)[:-1] + ', "by": "day"}'),
        ("not a JSON object", lambda h: "[]"),
        ("other fields", edit(more=1), edit(series=2), of_release(more=1)),
        ("is not known; this library reads 1", edit(psd_series=2), edit(psd_series=True)),
        ("one of hour", edit(by="year"), edit(by=["month"])),
        ("bound or slices", edit(bound="year"), edit(bound=["slice"]), edit(slices="2024-01")),
        ("is repeated", edit(slices=sliced)),
        ("of the form 2024-01 ", edit(slices=["2024-01", 5, 6, 7])),
        ("slices must be 1 to 10,000, got 0", edit(slices=[])),
        ("not sorted by slice", edit(slices=["2024-01"], parameters=[{}])),
        ("time_zone", edit(time_zone=3)),
        ("does not fit", edit(parameters=[{}])),
        ("parameters is not valid", edit(parameters=[{}, {}, {}, []])),
        ("parameters is not valid", edit(parameters=[{}, {}, {}, {"a": [1]}])),
        ("one that all slices share", lambda h: twice_stated(h, {"size": 2})),
        ("header is not a JSON object", edit(release=[])),
        ("epsilon", of_release(epsilon="0")),
        ("must spend at most epsilon", of_release(epsilon="0.5")),
        ("field unit", of_release(unit="nobody")),
    ):
        for number, change in enumerate(changes, start=1):
            with subtests.test(told, number=number), pytest.raises(ReleaseFormatError, match=told):
                decode(rewritten(whole, change), "s")


def test_tables_are_read_strictly(subtests):
    whole, columns = made(), "columns are not those"
    for name, told, change in (
        ("no level", columns, lambda t: t.drop_columns("level")),
        ("no slice", columns, lambda t: t.drop_columns("slice")),
        ("three rows", "node in each slice", lambda t: t.slice(0, 3)),
        ("three slices", "a slice has none", lambda t: t.slice(0, 21 * 3)),
        ("reversed", "not sorted", lambda t: replaced_slice(t, lambda v: v[::-1])),
        ("from 1", "a slice has none", lambda t: replaced_slice(t, lambda v: v + 1)),
        ("even numbers", "a slice has none", lambda t: replaced_slice(t, lambda v: v * 2)),
        ("a row less", "tree|child|cover|tile", lambda t: t.slice(0, 21 * 4 - 1)),
    ):
        with subtests.test(name), pytest.raises(ReleaseFormatError, match=told):
            decode(rewritten(whole, table=change), "s")


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "s"
    made().save(path)
    content = path.read_bytes()
    for cut in (0, 3, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        with pytest.raises(ReleaseFormatError):
            psd.load(path)
    for at in range(4, len(content), 97):
        path.write_bytes(content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :])
        with contextlib.suppress(ReleaseFormatError):  # and no other error
            psd.load(path)
    with pytest.raises(ReleaseFormatError, match="does not exist"):
        psd.load(tmp_path / "absent")
