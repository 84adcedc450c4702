"""Releases of values: what is read, dropped and refused, what a file keeps, and how users weigh."""

import dataclasses
import warnings
import weakref

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shapely import box

import psd
from psd.errors import InputDataError, ParameterError
from psd.ledger.ledger import Ledger
from psd.privacy.values import ENDINGS, MAX_VALUES, WEIGHT, Value, check_values
from psd.query.areas import BoxAreas
from psd.release.codecs import is_values
from psd.testing import SCRIPTS, RecordingSampler, SeededSampler

BOUNDS = (0, 0, 8, 8)
HOW = {"bounds": BOUNDS, "crs": "EPSG:3857", "lattice": (8, 8), "method": "grid", "epsilon": 10}


def city(n=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(0.01, 7.99, (n, 2)), columns=["x", "y"])
    return frame.assign(fare=rng.uniform(-5, 70, n), tip=rng.uniform(0, 2, n), u=np.arange(n) % 90)


def true_sums(release, name):
    """Sums of a value by a release without noise, at the root of its tree."""
    number = release.record.value_named(name)
    value, sums = release.record.values[number], release.record.tree.sums
    measured = np.flatnonzero(release.record.tree.loss)
    leaf = release.record.tree.is_leaf[measured]
    high, low = sums[measured[leaf], number].sum(axis=0) / release.record.record_weight
    return value.upper * high + value.lower * low


def echo(data, **how):
    given = {"x": "x", "y": "y", "set": {"size": 4}, **HOW, **how}
    return psd.build(data, sampler=RecordingSampler(SCRIPTS[0]), **given)


def test_sums_are_those_of_values_clamped_to_their_bounds():
    data = city()
    release = echo(data, values={"fare": (0, 60), "tip": (0, 1)})
    for name, low, high in (("fare", 0, 60), ("tip", 0, 1)):
        expected = data[name].clip(low, high).sum()
        assert true_sums(release, name) == pytest.approx(expected, rel=1e-5)
    assert release.query([BOUNDS])["estimate"].iloc[0] == pytest.approx(len(data))


def test_answers_have_sums_and_means():
    data = city()
    answers = echo(data, values={"fare": (0, 60)}).query([BOUNDS], mean="fare", sum=["fare"])
    expected = data.fare.clip(0, 60)
    assert answers["mean_fare"].iloc[0] == pytest.approx(expected.mean(), rel=1e-4)
    assert answers["sum_fare"].iloc[0] == pytest.approx(expected.sum(), rel=1e-4)


def test_values_of_a_file_have_a_form(subtests):
    one = {"name": "fare", "lower": 0.0, "upper": 60.0}
    for values, is_right in (
        ([one], True),
        (None, False),
        ([], False),
        ({}, False),
        *(([other], False) for other in (1, None, "fare", [], {}, {**one, "rows": 3})),
        *(([{**one, name: other}], False) for name, other in (
            ("lower", 0), ("upper", "60"), ("upper", -1.0), ("name", ["fare"]), ("name", ""),
        )),
        ([one, one], False),
        ([{**one, "name": str(n)} for n in range(MAX_VALUES + 1)], False),
    ):  # fmt: skip
        with subtests.test(str(values)[:80]):
            assert is_values(values) is is_right


def test_a_record_of_values_is_refused_where_its_parts_do_not_agree(subtests, tmp_path):
    for change, words in (
        ({"values": ()}, "values must be those that the tree has sums of"),
        ({"values": (Value("fare", 0, 60),) * 2}, "different names"),
    ):
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            dataclasses.replace(echo(city(20), values={"fare": (0, 60)}).record, **change)
    for place, name, other, words in (
        (lambda record: record, "part_weight", 1, "a part of a value is not saved"),
        (lambda record: record.values[0], "lower", 0, "two bounds that are floats"),
        (lambda record: record.tree, "sums", [[1]], "sums of the tree must be an array of int64"),
    ):
        release = echo(city(20), values={"fare": (0, 60)})
        object.__setattr__(release.record, "source", "curator")
        object.__setattr__(place(release.record), name, other)
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            release.save(tmp_path / "r.psd.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("unit", [{}, {"user": "u", "max_contributions": 100}])
def test_records_without_a_value_are_left_out_before_anything_is_bounded(unit):
    data = city()
    data.loc[::3, "fare"] = np.nan
    release = echo(data, values={"fare": (0, 60)}, **unit)
    kept = data.dropna()
    assert release.query([BOUNDS])["estimate"].iloc[0] == pytest.approx(len(kept))
    assert true_sums(release, "fare") == pytest.approx(kept.fare.clip(0, 60).sum(), rel=1e-5)


def test_a_bound_of_records_keeps_values_of_kept_records_in_any_order():
    data = pd.DataFrame({"x": 1.5, "y": 1.5, "u": "ann", "fare": [0.0, 10, 20, 30, 40, 50]})
    how = {"user": "u", "max_contributions": 2, "values": {"fare": (0, 60)}}
    from psd.ingest.sources import Columns, read
    from psd.ingest.tally_builder import tally_batches
    from psd.privacy.unit import PrivacyUnit
    from psd.space.domain import Domain

    domain = Domain(bounds=BOUNDS, crs="EPSG:3857", lattice=(8, 8))
    columns = Columns(x="x", y="y", user="u", values=("fare",))
    unit = PrivacyUnit(kind="user", max_contributions=2)
    seen = set()
    for seed in range(40):
        key = seed.to_bytes(16, "little")
        sums = set()
        for order in (data, data.iloc[::-1], data.sample(frac=1, random_state=seed)):
            batches = read(order.reset_index(drop=True), columns, domain)
            tally = tally_batches(
                batches, domain, unit=unit, key=key, values=[Value("fare", 0, 60)]
            )
            assert tally.counts.tolist() == [2]
            sums.add(int(tally.values[0, 0]))
        assert len(sums) == 1  # whatever the order of the records
        seen |= sums
    assert len(seen) > 5  # and all pairs are possible
    assert how["max_contributions"] == 2


def test_users_weigh_equally_and_means_are_not_rounded_down():
    """A floor alone would make a small mean of users with many records too small."""
    rng = np.random.default_rng(1)
    n = 4000
    data = pd.DataFrame(rng.uniform(0.01, 7.99, (n, 2)), columns=["x", "y"])
    data = data.assign(u=np.arange(n) % 2, fare=0.1)  # 2,000 records of each user
    release = echo(data, user="u", count="users", values={"fare": (0, 1)})
    assert release.record.record_weight == 1
    sums = release.record.tree.sums[release.record.tree.is_leaf].sum(axis=0)[0]
    assert sums.sum() == release.record.tree.count[release.record.tree.is_leaf].sum()
    assert sums[0] / sums.sum() == pytest.approx(0.1, abs=0.002)
    assert sums.sum() <= 2 * WEIGHT


@pytest.mark.parametrize(
    ("column", "is_read"),
    [
        (["1", " 2.5 ", "NA", "", None], True),
        ([1, 2, 3, 4, 5], True),
        ([True, False, True, False, True], True),
        (["1", "2 EUR", "3", "4", "5"], False),
        (["1", "2,5", "3", "4", "5"], False),
        ([1.0, np.inf, 2.0, 3.0, 4.0], False),
        (["1", "1e400", "3", "4", "5"], False),
        (pd.to_datetime(["2024-01-01"] * 5), False),
    ],
)
def test_values_are_numbers_wherever_the_records_lie(column, is_read):
    for x in ([1.0] * 5, [99.0] * 5):  # inside of the bounds, and outside
        data = pd.DataFrame({"x": x, "y": 1.0, "fare": column})
        if is_read:
            echo(data, values={"fare": (0, 60)})
        else:
            with pytest.raises(InputDataError, match="column 'fare' must hold finite numbers"):
                echo(data, values={"fare": (0, 60)})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"fare": (60, 0)}, "value 'fare' must have a lower and a larger upper bound"),
        ({"fare": (0, 0)}, "value 'fare' must have a lower and a larger upper bound"),
        ({"fare": (0, float("inf"))}, "value 'fare' must have finite bounds, of at most"),
        ({"fare": (0, 10**300)}, "value 'fare' must have finite bounds, of at most"),
        ({"fare": 60}, "values must have two bounds for each column"),
        ({"fare": ("low", "high")}, "values must have two numbers as bounds"),
        (["fare", 0, 60], "values must"),
        ({f"v{number}": (0, 1) for number in range(20)}, "values must be at most 6"),
        ({"x": (0, 60)}, "must be different columns"),
        ({"nothing": (0, 60)}, "no column 'nothing'"),
        *(
            ({name: (0, 60)}, "^values must have names of 1 to 100 printable characters, got '")
            for name in ("", "f" * 101, "fa\nre", "\udc80", "fa\x00re")
        ),
    ],
)
def test_wrong_values_are_refused_in_one_sentence(values, message):
    with pytest.raises((ParameterError, InputDataError), match=message):
        echo(city(20), values=values)


def test_a_file_keeps_sums_and_a_release_without_values_keeps_its_bytes(tmp_path):
    with_values = psd.build(city(), x="x", y="y", values={"fare": (0, 60)}, **HOW)
    path = tmp_path / "r.psd.parquet"
    with_values.save(path)
    loaded = psd.load(path)
    assert loaded.digest == with_values.digest
    assert loaded.record.values == with_values.record.values
    assert (loaded.record.tree.sums == with_values.record.tree.sums).all()
    asked = {"areas": [(0, 0, 4, 4)], "mean": "fare"}
    assert (
        loaded.query(**asked)["mean_fare"].tolist()
        == with_values.query(**asked)["mean_fare"].tolist()
    )
    plain = psd.build(city(), x="x", y="y", **HOW)
    plain.save(tmp_path / "p.psd.parquet")
    assert psd.load(tmp_path / "p.psd.parquet").record.values == ()


def test_a_series_has_values_of_each_slice(tmp_path):
    data = city().assign(t=["2024-01-03", "2024-02-04"] * 200)
    slices = {"time": "t", "slices": "2024-01..2024-02"}
    series = psd.build(data, x="x", y="y", values={"fare": (0, 60)}, **slices, **HOW)
    series.save(tmp_path / "s.psd.parquet")
    answers = psd.load(tmp_path / "s.psd.parquet").query([BOUNDS], each="slice", mean="fare")
    expected = data.groupby("t").fare.apply(lambda fares: fares.clip(0, 60).mean()).tolist()
    assert np.allclose(answers["mean_fare"], expected, atol=2)


@pytest.mark.parametrize("each", [None, "slice"])
@pytest.mark.parametrize("together", [True, False], ids=["small", "large"])
def test_slices_of_which_nothing_is_kept_have_the_same_values(each, together, monkeypatch):
    data = city(600).assign(t=[f"2024-{month:02}-03" for month in range(1, 7)] * 100)
    values = {"fare": (0, 60), "tip": (0, 1)}
    slices = {"time": "t", "slices": "2024-01..2024-06"}
    kept = psd.build(data, x="x", y="y", values=values, **slices, **HOW)
    asked = {"each": each, "mean": ["fare", "tip"], "sum": "fare"}
    expected = kept.query([BOUNDS, (0, 0, 3, 5)], **asked).table
    # The release would be kept but for the fits of its two values.
    monkeypatch.setattr(
        "psd.api.publication.MOST_KEPT", 3 * sum(len(kept[name].tree) for name in kept)
    )
    if not together:
        monkeypatch.setattr("psd.query.index.LEAST_NODES", 1)
    asked_of, alive = [], []

    def totals(areas, index, made=BoxAreas.totals):
        asked_of.append(weakref.ref(index))
        alive.append(sum(each() is not None for each in asked_of))
        return made(areas, index)

    monkeypatch.setattr(BoxAreas, "totals", totals)
    fresh = kept.replace()
    found = fresh.query([BOUNDS, (0, 0, 3, 5)], **asked)
    pd.testing.assert_frame_equal(found.table, expected, rtol=1e-12)
    assert len(alive) == 5 * 6
    # A slice and both bounds of one value, one after another, however many slices there are.
    assert max(alive) <= 3


def test_columns_of_values_are_a_list_or_a_tuple_of_names():
    assert psd.Columns(values=["fare", "tip"]) == psd.Columns(values=("fare", "tip"))
    for wrong in ("fare", 5, None, [1]):
        with pytest.raises(ParameterError, match="values must be names of columns, such as"):
            psd.Columns(values=wrong)


def test_values_are_answered_with_their_errors():
    release = psd.build(city(), x="x", y="y", values={"fare": (0, 60)}, **HOW)
    with pytest.raises(ParameterError, match="errors must be True with mean or sum"):
        release.query([BOUNDS], mean="fare", errors=False)


def test_a_release_says_which_values_it_has_and_their_bounds(tmp_path):
    release = psd.build(city(), x="x", y="y", values={"fare": (0, 60)}, **HOW)
    assert release.metadata["values"].startswith("fare from 0 to 60;")
    assert "values" not in psd.build(city(), x="x", y="y", **HOW).metadata
    table = release.to_geopandas()
    assert {"mean_fare", "mean_fare_error", "sum_fare_lower"} <= set(table.columns)
    assert ((table.mean_fare >= 0) & (table.mean_fare <= 60)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 1e-6}, "too small; the noise"),
        ({"user": "u", "max_contributions": 13_000}, "at most 12797 with values"),
    ],
    ids=["epsilon", "users"],
)
def test_values_are_refused_before_a_charge(tmp_path, change, message):
    city().to_csv(tmp_path / "rides.csv")
    ledger = Ledger.create(tmp_path / "l")
    has_users = "user" in change
    columns = psd.Columns(x="x", y="y", user="u" if has_users else None, values=("fare",))
    unit = {"unit": "user"} if has_users else {}
    ledger.register("rides", budget=100, columns=columns, **unit)
    how = {**HOW, "x": "x", "y": "y", "values": {"fare": (0, 60)}, **change}
    with pytest.raises(ParameterError, match=message):
        psd.build(tmp_path / "rides.csv", ledger=ledger, dataset="rides", **how)
    assert not ledger.state().charges


@pytest.mark.parametrize("names", [("fare\n",), ("f" * 101,), ("fare", "fare_error")])
def test_names_that_no_file_keeps_are_refused_before_a_charge(tmp_path, names):
    data = city(20).drop(columns="fare").assign(**dict.fromkeys(names, 1.0))
    ledger = Ledger.create(tmp_path / "l")
    ledger.register("rides", budget=100, columns=psd.Columns(x="x", y="y", values=names))
    values = dict.fromkeys(names, (0, 60))
    with pytest.raises(ParameterError, match=r"^values must have names"):
        psd.build(data, x="x", y="y", values=values, ledger=ledger, dataset="rides", **HOW)
    assert not ledger.state().charges


@pytest.mark.parametrize("ending", ENDINGS[1:])
def test_values_with_one_column_of_answers_are_refused(ending):
    message = f"^values must have names whose columns differ, got fare, fare{ending}; .* mean_fare"
    with pytest.raises(ParameterError, match=message):
        check_values([Value("fare", 0, 1), Value("fare" + ending, 0, 1)])
    both = [Value("fare", 0, 1), Value("fare" + ending.upper(), 0, 1)]
    assert check_values(both) == tuple(both)


def test_names_that_two_endings_bring_together_are_refused_too():
    with pytest.raises(ParameterError, match=r"two columns mean_fare_perturbation_error$"):
        check_values([Value("fare", 0, 1), Value("fare_perturbation", 0, 1)])


def test_endings_are_those_of_columns_of_answers():
    answers = echo(city(), values={"fare": (0, 60)}).query([BOUNDS], mean="fare", sum="fare")
    for kind, endings in (("mean", {*ENDINGS}), ("sum", {*ENDINGS} - {"_quality"})):
        named = {name for name in answers.table if name.startswith(f"{kind}_fare")}
        assert named == {f"{kind}_fare{ending}" for ending in endings}


def test_a_column_whose_name_lists_registered_ones_costs_the_price_of_a_fault(tmp_path):
    """That it can be read is a bit of the records, which an epsilon of 0.01 does not buy."""
    data = city(20).assign(**{"fare, tip": 1.0})
    for values, spent in ((("fare", "tip"), 10**7), (("fare, tip",), 10 * 10**9 // 20)):
        ledger = Ledger.create(tmp_path / f"{len(values)}.ledger")
        columns = psd.Columns(x="x", y="y", values=("fare", "tip"))
        ledger.register("rides", budget=10, columns=columns)
        how = {
            **HOW,
            "epsilon": "0.01",
            "x": "x",
            "y": "y",
            "method": psd.decompositions.Grid(size=1),
        }
        how |= {"values": dict.fromkeys(values, (0, 60)), "ledger": ledger, "dataset": "rides"}
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            psd.build(data, **how)
        assert ledger.state().spent("rides") == spent
        otherwise = [each for each in told if "reads values otherwise" in str(each.message)]
        assert len(otherwise) == (values != ("fare", "tip"))


@pytest.mark.parametrize("kind", ["mean", "sum"])
def test_a_question_of_what_is_no_name_is_refused_in_one_sentence(kind):
    release = echo(city(), values={"fare": (0, 60)})
    with pytest.raises(ParameterError, match=f"^{kind} must be one of fare, got '5'$"):
        release.query([BOUNDS], **{kind: 5})


class Cluster:
    """An engine that would count records elsewhere."""

    def tally(self, *args, **named):
        pytest.fail("an engine was asked")


@pytest.mark.parametrize("way", ["carried users", "build of tallies", "engine"])
def test_what_counts_records_alone_refuses_values_before_anything_is_charged(way, tmp_path):
    city().to_csv(tmp_path / "rides.csv")
    ledger = Ledger.create(tmp_path / "l")
    columns = psd.Columns(x="x", y="y", values=("fare",))
    ledger.register("rides", budget=100, columns=columns)
    how = {"x": "x", "y": "y", "values": {"fare": (0, 60)}, "ledger": ledger, "dataset": "rides"}
    area = {name: HOW[name] for name in ("bounds", "crs", "lattice")}
    before = sorted(tmp_path.iterdir())
    counted = psd.tally(city(), part="rides", x="x", y="y", **area)
    path, values = tmp_path / "rides.csv", how["values"]
    build = {
        "carried users": lambda: psd.tally(
            path,
            tmp_path / "t",
            **area,
            **how,
            user="u",
            max_contributions=1,
            key=b"k" * 32,
            carry_users=True,
        ),
        "engine": lambda: psd.build(path, engine=Cluster(), **HOW, **how),
        "build of tallies": lambda: psd.build(counted, epsilon=1, values=values),
    }[way]
    with pytest.raises(ParameterError, match="values must be left out") as told:
        build()
    assert "\n" not in str(told.value)
    assert not ledger.state().charges
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("regions", [None, [(0, 0, 4, 8), (4, 0, 8, 8)]])
def test_tallies_of_parts_give_the_release_of_all_records(tmp_path, regions):
    data, given = city(), {"x": "x", "y": "y", "values": {"fare": (0, 60), "tip": (0, 1)}}
    area = {name: HOW[name] for name in ("bounds", "crs", "lattice")}
    if regions is not None:
        shapes = gpd.GeoDataFrame(
            {"id": ["a", "b"]}, geometry=[box(*r) for r in regions], crs=HOW["crs"]
        )
        given |= {"regions": shapes, "region_id": "id"}
    paths = []
    for number, rows in enumerate((data[:150], data[150:])):
        paths.append(tmp_path / f"{number}.tally")
        psd.tally(rows, paths[-1], part=str(number), **area, **given)
    whole = psd.tally(data, part="all", **area, **given)
    merged = psd.merge(*paths[::-1])
    for name in ("columns", "rows", "counts", "values"):
        assert np.array_equal(getattr(merged.tally, name), getattr(whole.tally, name)), name
    assert merged.tally.record_weight == WEIGHT
    build = {"epsilon": 1, "sampler": SeededSampler(5)}
    terms = {k: v for k, v in given.items() if k.startswith("region")}
    if regions is None:
        build |= {"method": "grid", "set": {"size": 4}}
    made = psd.build(paths, **build, **terms)
    build["sampler"] = SeededSampler(5)
    expected = psd.build(data, per="record", **area, **given, **build)
    assert made.record.values == expected.record.values
    assert np.array_equal(made.record.tree.sums, expected.record.tree.sums)
    assert np.array_equal(made.record.tree.count, expected.record.tree.count)


def test_tallies_with_values_are_merged_by_one_rule_and_read_with_care(tmp_path):
    area = {name: HOW[name] for name in ("bounds", "crs", "lattice")} | {"x": "x", "y": "y"}
    one, other = tmp_path / "a", tmp_path / "b"
    psd.tally(city(), one, part="a", values={"fare": (0, 60)}, **area)
    psd.tally(city(), other, part="b", values={"fare": (0, 50)}, **area)
    plain = psd.tally(city(), part="c", **area)
    for second in (other, plain):
        with pytest.raises(InputDataError, match="different values, or bounds of values"):
            psd.merge(one, second)
    with pytest.raises(ParameterError, match="values must be left out for tallies"):
        psd.build(one, epsilon=1, values={"fare": (0, 60)})
    table = pq.read_table(one)
    heavy = pa.array([WEIGHT * n + 1 for n in table["count"].to_pylist()], pa.int64())
    for weights in (heavy, pa.array([-1] * len(table), pa.int64())):
        broken = table.set_column(table.schema.get_field_index("weight0"), "weight0", weights)
        pq.write_table(broken, other, write_page_checksum=True)
        with pytest.raises(InputDataError, match="is damaged, or of another version"):
            psd.merge(other, plain)
    psd.tally(city(), tmp_path / "c", part="c", **area)
    assert b'"values"' not in pq.read_schema(tmp_path / "c").metadata[b"PRIVATE psd tally"]


@pytest.mark.parametrize(
    "column",
    [
        [[1]] * 3,
        [{"a": 1}] * 3,
        pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int8())),
        pa.UnionArray.from_sparse(pa.array([0] * 3, pa.int8()), [pa.array([1, 2, 3])]),
        pa.array(pd.period_range("2024-01", periods=3, freq="M")),
        pa.DictionaryArray.from_arrays([0, 0, 0], pa.array([1], pa.date32())),
        pa.RunEndEncodedArray.from_arrays(pa.array([3], pa.int32()), ["cheap"]),
    ],
    ids=["lists", "structs", "maps", "union", "period", "dates", "runs of text"],
)
def test_values_of_other_types_are_refused_as_other_values(column):
    table = pa.table({"x": [1.5] * 3, "y": [1.5] * 3, "fare": column})
    with pytest.raises(InputDataError, match="'fare' must hold finite numbers"):
        echo(table, values={"fare": (0, 60)})


@pytest.mark.parametrize(
    "column",
    [
        np.array([1 + 2j] * 3),
        pd.period_range("2024-01", periods=3, freq="M"),
        pd.Series([np.timedelta64(3, "D"), 2, np.int8(1)], dtype=object),
    ],
    ids=["complex", "period", "durations"],
)
def test_columns_of_pandas_that_are_no_numbers_are_refused(column):
    data = pd.DataFrame({"x": [1.5] * 3, "y": 1.5}).assign(fare=column)
    with pytest.raises(InputDataError, match="'fare' must hold finite numbers"):
        echo(data, values={"fare": (0, 60)})


@pytest.mark.parametrize(
    "column",
    [
        pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), [10.0, 40.0]),
        pa.array([10, 10, 40]).dictionary_encode(),
        pa.array(["10", "10", "40"]).dictionary_encode(),
        pd.arrays.SparseArray([10.0, 10, 40]),
        np.array([10, 10, 40], np.longdouble),
    ],
    ids=["runs", "dictionary", "texts", "sparse", "long"],
)
def test_encoded_numbers_are_read_as_numbers(column):
    data = pd.DataFrame({"x": [1.5] * 3, "y": 1.5})
    if isinstance(column, pa.Array):
        data = pa.Table.from_pandas(data).append_column("fare", column)
    else:
        data = data.assign(fare=column)
    release = echo(data, values={"fare": (0, 60)})
    assert true_sums(release, "fare") == pytest.approx(60, rel=1e-5)


@pytest.mark.parametrize("how", ["values", "where"])
def test_a_source_that_reads_no_values_is_refused_in_one_sentence(how, monkeypatch):
    from dataclasses import replace

    from psd.ingest.sources import frame

    def without(items, columns, domain, made=frame.batches):
        for batch in made(items, columns, domain):
            yield replace(batch, values=None, match=None)

    monkeypatch.setattr(frame, "batches", without)
    asked = {"values": {"fare": (0, 60)}} if how == "values" else {"where": "fare < 60"}
    with pytest.raises(InputDataError, match=f"{how}= must be left out with this input"):
        echo(city(20), **asked)


def test_a_missing_column_names_the_argument_that_asks_for_it(tmp_path):
    city(20).to_csv(tmp_path / "rides.csv")
    for data in (city(20), tmp_path / "rides.csv"):
        with pytest.raises(InputDataError, match=r"no column 'fair'.*values="):
            echo(data, values={"fair": (0, 60)})
