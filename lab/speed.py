"""Speed and memory where users meet them, beside peers of the same run, with bars.

    python lab/speed.py -o docs/measured/data/speed.csv
    python lab/speed.py --only csv,users --rounds 3
    python lab/speed.py --growth -o docs/measured/data/growth.csv
    python lab/speed.py --quick                # whether all of it runs: small sizes, no bars

A row measures one command or call in a process of its own, in turn with its peers, and has the
medians of all rounds: CPU seconds (user and system, of all threads), wall-clock seconds from start
to end, and the peak of memory in MB (10^6 bytes). A line of a peer has its own figures, and what
the command takes as multiples of them: the median over the rounds of the ratio inside a round. Read
the ratios of CPU seconds on a machine with other work; those of wall-clock need two idle cores. The
script makes all data, from fixed seeds, in a temporary folder (3 GB).

With --growth three curves take the place of the table: rows of a file, nodes of a release, slices
of a series. A slope is that of log time, or log memory, by log size, since the size before; that of
the last line of a row is fitted to all sizes from one on. 1 is linear, 0 flat.

The exit code is 1 if a bar is missed. Bars are for the default sizes. Peers that are not installed
are left out, with the bars that compare with them.
"""

import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from bench_polygons import districts
from common import PSD, ROOT, Cost, draw, items, run_python, study, write_table

import psd
from psd.apps.evaluation.workload import draw_workload
from psd.apps.planning.population import AssumedDensity, draw_population

BOUNDS = (-8, 49, 3, 61)
DOMAIN, AREA = psd.Domain(bounds=BOUNDS), ("--bounds", *BOUNDS)
FIRST, NEXT = (-1.2, 53.2, -0.7, 53.7), (-5.1, 56.1, -4.6, 56.6)
START = np.datetime64("2024-01-01T00")
NODES_PER_RECORD = 3.17
MANY = ("--max-nodes", 10**8)


class Sizes(NamedTuple):
    """What the rows measure; bars are for these sizes."""

    rows: int = 10**7
    large: int = 5 * 10**7
    few: int = 10**6  # rows of builds of every method, and of those with regions
    lattice: int = 1400  # columns and rows that peers count, as many as the method grid has
    slices: int = 168
    month: int = 744  # slices
    nodes: int = 10**6
    walked: int = 2 * 10**5  # nodes of the release that many boxes are asked of
    boxes: int = 10**5
    regions: int = 2000
    wards: int = 600  # fewer regions
    devices: int = 10**6


QUICK = Sizes(20_000, 50_000, 10_000, 50, 6, 12, 5000, 5000, 2000, 60, 30, 5000)


# Made-up data.


def towns(random: np.random.Generator, size: int) -> np.ndarray:
    """Points around four hundred towns, with six decimals, shape (size, 2)."""
    centres = np.random.default_rng(1).uniform((-7, 50), (2, 60), (400, 2))
    spread = random.normal(0, (0.15, 0.1), (size, 2))
    return (centres[random.integers(0, 400, size)] + spread).round(6)


def make(path: Path, rows: int) -> None:
    """Write a file of user_id, lon and lat, CSV by its name or Parquet: ten rows of a user."""
    random = np.random.default_rng(1)
    users = np.char.mod("u%07d", np.arange(max(rows // 10, 1)))
    writer = None
    for start in range(0, rows, 10**6):  # a million at a time
        size = min(10**6, rows - start)
        lon, lat = towns(random, size).T
        user = pa.array(users).take(pa.array(random.integers(0, len(users), size)))
        table = pa.table({"user_id": user, "lon": lon, "lat": lat})
        if writer is None and path.suffix == ".csv":
            plain = pc.WriteOptions(quoting_header="none", quoting_style="none")
            writer = pc.CSVWriter(path, table.schema, write_options=plain)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write(table)
    if writer is not None:
        writer.close()


@dataclass(frozen=True)
class Made:
    """Files of a folder, each made when it is first wanted."""

    folder: Path

    def _once(self, name: str, write: Callable[[Path], object]) -> Path:
        path = self.folder / name
        if not path.exists():
            print(f"making {name}", file=sys.stderr, flush=True)
            write(path)
        return path

    def empty(self) -> str:
        """A folder of the fits of releases, with nothing in it."""
        return tempfile.mkdtemp(dir=self.folder)

    def rows(self, rows: int, ending: str = "csv") -> Path:
        """Rows of users."""
        return self._once(f"{rows}.{ending}", partial(make, rows=rows))

    def timed(self, rows: int, slices: int) -> Path:
        """Rows at times of some hours, more by day than by night."""

        def write(path: Path) -> None:
            random = np.random.default_rng(4)
            lon, lat = towns(random, rows).T
            busy = 1 + 0.8 * np.sin(np.arange(slices) / 24 * 2 * np.pi)
            hour = np.repeat(np.arange(slices), random.multinomial(rows, busy / busy.sum()))
            seconds = random.permutation(hour) * 3600 + random.integers(0, 3600, rows)
            pq.write_table(
                pa.table({"lon": lon, "lat": lat, "time": START.astype("M8[s]") + seconds}), path
            )

        return self._once(f"{rows}-{slices}.parquet", write)

    def release(self, nodes: int) -> Path:
        """A release of about a number of nodes."""

        def write(path: Path) -> None:
            density, random = AssumedDensity(kind="clustered"), np.random.default_rng(0)
            people = draw_population(int(nodes / NODES_PER_RECORD), DOMAIN, density, random)
            draw(people, DOMAIN, "cascade", "10").save(path)

        return self._once(f"{nodes}-nodes.psd.parquet", write)

    def series(self, slices: int, rows: int) -> Path:
        """A series of hours with a number of rows each."""

        def write(path: Path) -> None:
            random, size = np.random.default_rng(3), slices * rows
            lon, lat = towns(random, size).T
            seconds = np.repeat(np.arange(slices), rows) * 3600 + random.integers(0, 3600, size)
            times = START.astype("M8[s]") + seconds
            source = path.with_suffix(".rows")
            pq.write_table(pa.table({"lon": lon, "lat": lat, "time": times}), source)
            hours = f"{START}..{START + np.timedelta64(slices - 1, 'h')}"
            build(source, path, "--time", "time", "--slices", hours, epsilon=10)
            source.unlink()

        return self._once(f"{slices}-{rows}.psd.parquet", write)

    def boxes(self, number: int) -> Path:
        """Boxes of four sizes, half of them on data."""

        def write(path: Path) -> None:
            x, y = towns(np.random.default_rng(2), 10_000).T
            inside = (x > -8) & (x < 3) & (y > 49) & (y < 61)
            drawn = draw_workload(x[inside], y[inside], BOUNDS, per_class=number // 8)
            np.save(path, drawn.boxes)

        return self._once(f"{number}-boxes.npy", write)

    def regions(self, number: int) -> Path:
        """Polygons that tile the bounds, with some 200 vertices each."""
        return self._once(f"{number}.gpkg", districts(number, DOMAIN).to_file)

    def campaign(self, devices: int) -> Path:
        """A campaign of one round."""

        def write(path: Path) -> None:
            words = ("--epsilon", 1, "--devices", devices, "--rounds", 1, *AREA)
            run_psd("local", "design", "-o", path, *words)

        return self._once(f"{devices}.json", write)


# Commands, calls and peers.


def run_psd(*words: object, cache: str = "off") -> Cost:
    """Run the program."""
    return run_python(PSD, *words, PSD_CACHE=cache)


def build(path: Path, out: Path, *words: object, epsilon: float = 1) -> Cost:
    """Run `psd build`."""
    words = ("-o", out, "--overwrite", "--epsilon", epsilon, *words)
    return run_psd("build", path, *words, *(() if "--regions" in words else AREA))


def query(path: Path, box: tuple[float, ...], cache: str) -> Cost:
    """Run `psd query` for one box."""
    return run_psd("query", path, *MANY, "--box", *box, cache=cache)


FIRST_BOX = """
import sys, psd
psd.load(sys.argv[1]).query([tuple(map(float, sys.argv[2:]))]).table
"""
BOXES = """
import sys, time
if sys.argv[3] == "plain":
    sys.modules["numba"] = None
import numpy, psd
release, boxes = psd.load(sys.argv[1]), numpy.load(sys.argv[2])
release.query(boxes[:1000]).table  # what is worked out once
cpu, wall = time.process_time(), time.perf_counter()
release.query(boxes).table
print(time.process_time() - cpu, time.perf_counter() - wall)
"""
DUCKDB = """
import sys, duckdb
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
source = ("read_csv($1, columns = {'user_id': 'VARCHAR', 'lon': 'DOUBLE', 'lat': 'DOUBLE'}, "
          "header = true, auto_detect = false)")
"""
SCAN = f"""{DUCKDB}
connection.execute("select sum(lon), sum(lat), count(*) from " + source, [sys.argv[1]]).fetchall()
"""
HISTOGRAM = f"""{DUCKDB}
size = int(sys.argv[2])
connection.execute(f"select floor((lon + 8) / 11 * {{size}})::INT a, floor((lat - 49) / 12 * "
                   f"{{size}})::INT b, count(*) from " + source + " where lon >= -8 and lon < 3 "
                   "and lat >= 49 and lat < 61 group by a, b", [sys.argv[1]]).fetchnumpy()
"""
POLARS = """
import sys, polars
from polars import Int32, col
size = int(sys.argv[2])
scan = polars.scan_csv if sys.argv[1].endswith(".csv") else polars.scan_parquet
inside = (col("lon") >= -8) & (col("lon") < 3) & (col("lat") >= 49) & (col("lat") < 61)
column, row = (col("lon") + 8) * (size / 11), (col("lat") - 49) * (size / 12)
scan(sys.argv[1]).filter(inside).group_by(column.cast(Int32), row.cast(Int32)).len().collect()
"""
PANDAS = """
import sys, numpy, pandas
table = pandas.read_csv(sys.argv[1], engine="c", usecols=["lon", "lat"], dtype="float64")
numpy.histogram2d(table["lon"], table["lat"], int(sys.argv[2]), ((-8, 3), (49, 61)))
"""
OPENDP = """
import sys, numpy, pandas, opendp.prelude as dp
dp.enable_features("contrib")
size = int(sys.argv[2])
table = pandas.read_csv(sys.argv[1], engine="c", usecols=["lon", "lat"], dtype="float64")
column, row = (table["lon"] + 8) * (size / 11), (table["lat"] - 49) * (size / 12)
inside = (column >= 0) & (column < size) & (row >= 0) & (row < size)
cells = row[inside].astype("i4") * size + column[inside].astype("i4")
space = dp.vector_domain(dp.atom_domain(T="i32")), dp.symmetric_distance()
count = dp.t.then_count_by_categories(list(range(size * size)), null_category=False, TOA="i64")
(space >> count >> dp.m.then_laplace(scale=1.0))(cells.tolist())
"""
SJOIN = """
import sys, geopandas, pandas
table = pandas.read_csv(sys.argv[1], engine="c", usecols=["lon", "lat"], dtype="float64")
points = geopandas.GeoDataFrame(
    geometry=geopandas.points_from_xy(table["lon"], table["lat"], crs="EPSG:4326"))
regions = geopandas.read_file(sys.argv[2])
geopandas.sjoin(points, regions, predicate="within").groupby("name").size()
"""


def needs_numba() -> bool:
    """Whether a plain installation has numba."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return any(each.startswith("numba") for each in project["dependencies"])


class Row(NamedTuple):
    """What is measured, its bars, and the rows beside it.

    A bar is a field of Cost, its largest value, and s, MB or the row beside of which it is a ratio.
    """

    text: str
    run: Callable[[], Cost]
    bars: str = ""  # with semicolons
    peers: tuple[str, ...] = ()
    package: str = "psd"  # without which it is left out


def randomize(made: Made, devices: int) -> Cost:
    """Reports of a table."""
    words = made.campaign(devices), made.rows(devices), "-o", made.folder / "reports.jsonl"
    return run_psd("local", "randomize", *words, "--overwrite")


def rows_of(made: Made, size: Sizes) -> dict[str, Row]:
    """What is measured, peers last."""
    csv, large = f"{size.rows:,} rows of CSV", f"{size.large:,} rows of CSV"
    few, nodes = f"{size.few:,} rows of CSV", f"{size.nodes:,} nodes"
    hours = f"{START}..{START + np.timedelta64(size.slices - 1, 'h')}"
    user, out = ("--user", "user_id", "--max-contributions", 10), made.folder / "out.psd.parquet"

    def series(slices: int) -> Callable[[], Cost]:
        return lambda: query(made.series(slices, 700), FIRST, made.empty())

    def mapped() -> Cost:
        words = (made.series(size.slices, 330), "-o", made.folder / "map.html", "--overwrite")
        return run_psd("map", *words, cache=made.empty())

    def loaded() -> Cost:
        return run_python(FIRST_BOX, made.release(size.nodes), *FIRST, PSD_CACHE=made.empty())

    def built(
        rows: int, *words: object, ending: str = "csv", epsilon: float = 1
    ) -> Callable[[], Cost]:
        return lambda: build(made.rows(rows, ending), out, *words, epsilon=epsilon)

    def of_hours(*words: object) -> Callable[[], Cost]:
        return lambda: build(made.timed(size.rows, size.slices), out, *words)

    def with_regions(regions: int) -> Callable[[], Cost]:
        more = ("--region-id", "name")
        return lambda: built(size.few, "--regions", made.regions(regions), *more)()

    def exported(ending: str) -> Callable[[], Cost]:
        file = made.folder / f"out.{ending}"
        return lambda: run_psd("export", made.release(size.nodes), file, "--overwrite")

    def next_box() -> Cost:
        path, cache = made.release(size.nodes), made.empty()
        query(path, FIRST, cache)  # not measured: the next one has what it kept
        return query(path, NEXT, cache)

    def many_boxes(kind: str) -> Callable[[], Cost]:
        def inside() -> Cost:
            cost = run_python(BOXES, made.release(size.walked), made.boxes(size.boxes), kind)
            cpu, wall = map(float, cost.printed.split())
            return cost._replace(cpu=cpu, wall=wall)

        return inside

    def counted(code: str, rows: int, ending: str = "csv") -> Callable[[], Cost]:
        return lambda: run_python(code, made.rows(rows, ending), size.lattice)

    def joined(regions: int) -> Callable[[], Cost]:
        return lambda: run_python(SJOIN, made.rows(size.few), made.regions(regions))

    return {
        "series-box": Row(f"psd query, the first box, {size.slices} slices", series(size.slices),
                          "CPU <= 8 s; memory <= 600 MB"),
        "series-box-month": Row(f"psd query, the first box, {size.month} slices",
                                series(size.month), "CPU <= 20 s; memory <= 1000 MB"),
        "series-map": Row(f"psd map, {size.slices} slices", mapped,
                          "CPU <= 10 s; memory <= 1000 MB"),
        "grid": Row(f"psd build --method grid, {csv}", built(size.rows, "--method", "grid"),
                    "memory <= 600 MB; CPU <= 2.5 scan", ("scan", "histogram")),
        "csv": Row(f"psd build, {csv}", built(size.rows),
                   "memory <= 1000 MB; CPU <= 1.7 scan; wall <= 1.7 polars",
                   ("scan", "histogram", "pandas", "polars", "opendp")),
        "parquet": Row(f"psd build, {size.rows:,} rows of Parquet",
                       built(size.rows, ending="parquet"), "wall <= 1.5 polars-parquet",
                       ("polars-parquet",)),
        "hours": Row(f"psd build --method cube, {size.slices} hours, {size.rows:,} rows of Parquet",
                    of_hours("--method", "cube", "--time", "time", "--slices", hours),
                    "CPU <= 3 without-time; memory <= 1500 MB", ("without-time",)),
        "users": Row(f"psd build --user, {csv}", built(size.rows, *user), "CPU <= 2.8 scan",
                     ("scan",)),
        "csv-large": Row(f"psd build, {large}", built(size.large),
                         "memory <= 1000 MB; CPU <= 2 scan-large", ("scan-large",)),
        "users-large": Row(f"psd build --user, {large}", built(size.large, *user),
                           "CPU <= 2.8 scan-large", ("scan-large",)),
        "epsilon-10": Row(f"psd build --epsilon 10, {csv}", built(size.rows, epsilon=10),
                          "memory <= 1000 MB"),
        "quadtree": Row(f"psd build, 1,398,101 nodes of a quadtree, {csv}",
                        built(size.rows, "--method", "quadtree", "--set", "height=10"),
                        "CPU <= 4 scan", ("scan",)),
        "regions": Row(f"psd build, {size.regions:,} regions, {few}", with_regions(size.regions),
                       "CPU <= 0.9 sjoin", ("sjoin",)),
        "wards": Row(f"psd build, {size.wards:,} regions, {few}", with_regions(size.wards), "",
                     ("sjoin-wards",)),
        "small": Row("psd build, 10,000 rows of CSV", built(10**4), "CPU <= 1.2 s"),
        **{name: Row(f"psd build --method {name}, {few}", built(size.few, "--method", name), "",
                     ("pandas-few",))
           for name in psd.methods() if name not in ("grid", "quadtree")},
        "start": Row("psd --help", lambda: run_psd("--help"), "CPU <= 0.4 s", ("python",)),
        "boxes": Row(f"query, {size.boxes:,} boxes, {size.walked:,} nodes, plain installation",
                     many_boxes("compiled"), "CPU <= 0.5 s")
        if needs_numba() else
        Row(f"query, {size.boxes:,} boxes, {size.walked:,} nodes, plain installation",
            many_boxes("plain"), "CPU <= 4 s", ("compiled",)),
        "first-box": Row(f"psd query, the first box, {nodes}",
                         lambda: query(made.release(size.nodes), FIRST, made.empty()),
                         "CPU <= 1.6 s", ("info",)),
        "first-box-python": Row(f"load and query, the first box, {nodes}", loaded, "CPU <= 1.3 s"),
        "next-box": Row(f"psd query, the next box, {nodes}", next_box, "CPU <= 0.9 s"),
        "geopackage": Row(f"psd export, GeoPackage, {nodes}", exported("gpkg"),
                          "memory <= 500 MB"),
        "flatgeobuf": Row(f"psd export, FlatGeobuf, {nodes}", exported("fgb"), "memory <= 500 MB"),
        "export-csv": Row(f"psd export, CSV, {nodes}", exported("csv"), "CPU <= 20 s"),
        "randomize": Row(f"psd local randomize, {size.devices:,} rows",
                         lambda: randomize(made, size.devices),
                         "memory <= 300 MB; memory <= 1.2 tenth", ("tenth",)),
        # Beside them.
        "scan": Row("DuckDB, scan", counted(SCAN, size.rows)),
        "scan-large": Row("DuckDB, scan", counted(SCAN, size.large)),
        "histogram": Row("DuckDB, histogram", counted(HISTOGRAM, size.rows)),
        "pandas": Row("pandas, read_csv and histogram", counted(PANDAS, size.rows)),
        "pandas-few": Row("pandas, read_csv and histogram", counted(PANDAS, size.few)),
        "polars": Row("polars, group_by", counted(POLARS, size.rows), package="polars"),
        "polars-parquet": Row("polars, group_by", counted(POLARS, size.rows, "parquet"),
                              package="polars"),
        "without-time": Row("without time", of_hours()),
        "opendp": Row("OpenDP, count_by_categories and laplace", counted(OPENDP, size.rows),
                      package="opendp"),
        "sjoin": Row("GeoPandas, sjoin", joined(size.regions)),
        "sjoin-wards": Row("GeoPandas, sjoin", joined(size.wards)),
        "compiled": Row("with numba", many_boxes("compiled"), package="numba"),
        "info": Row("psd info", lambda: run_psd("info", made.release(size.nodes), *MANY)),
        "tenth": Row("a tenth of the rows", lambda: randomize(made, size.devices // 10)),
        "python": Row("python -c pass", lambda: run_python("pass")),
    }  # fmt: skip


# Tables.


def measure(rows: dict[str, Row], names: list[str], rounds: int) -> dict[str, list[Cost]]:
    """Costs of some rows in every round, in turn, with memory in MB of 10^6 bytes."""
    runs: dict[str, list[Cost]] = {name: [] for name in names}
    for _ in range(rounds):
        for name, costs in runs.items():
            cost = rows[name].run()
            costs.append(cost._replace(memory=cost.memory * 1.024**2))
            print(name, *figures(costs[-1]), file=sys.stderr, flush=True)
    return runs


def middle(costs: list[Cost]) -> Cost:
    """Medians of some costs."""
    cpu, wall, memory = (median(values) for values in list(zip(*costs, strict=True))[:3])
    return Cost(cpu, wall, memory, "")


def divide(cost: Cost, other: Cost) -> Cost:
    """Ratios of two costs."""
    return Cost(cost.cpu / other.cpu, cost.wall / other.wall, cost.memory / other.memory, "")


def figures(cost: Cost, digits: int = 0) -> list[str]:
    """Cells of a cost, or of a ratio of costs with more digits."""
    return [f"{cost.cpu:.2f}", f"{cost.wall:.2f}", f"{cost.memory:.{digits}f}"]


HEADER = ["row", "what", "CPU s", "wall s", "MB", "CPU ratio", "wall ratio", "MB ratio"]
HEADER += ["bar", "kept"]


def lines(
    rows: dict[str, Row], names: list[str], rounds: int, missed: list[str]
) -> Iterator[list[str]]:
    """Lines of the table: of each row, and of each peer beside it."""
    for name in names:
        peers = [peer for peer in rows[name].peers if find_spec(rows[peer].package)]
        try:
            runs = measure(rows, [name, *peers], rounds)
        except SystemExit as failure:  # of a process, which may have had no memory left
            missed.append(f"{name}: {failure}")
            yield [name, rows[name].text, *[""] * 6, rows[name].bars, "no"]
            continue
        bars = [bar for bar in rows[name].bars.split("; ") if bar]
        for each, costs in runs.items():
            found, ratios, units = middle(costs), ["", "", ""], ["s", "MB"]
            if each != name:
                pairs = zip(runs[name], costs, strict=True)
                found, units = middle([divide(*pair) for pair in pairs]), [each]
                ratios = figures(found, 2)
            own, bad = [bar for bar in bars if bar.split()[3] in units], []
            for bar in own:
                kind, _, limit, _ = bar.split()
                if getattr(found, kind.lower()) > float(limit):
                    bad.append(f"{name}, {bar}: {getattr(found, kind.lower()):.3g}")
            missed += bad
            kept = ("no" if bad else "yes") if own else ""
            yield [name, rows[each].text, *figures(middle(costs)), *ratios, "; ".join(own), kept]


class Curve(NamedTuple):
    """Rows whose sizes grow, and the largest slopes from one of the sizes on."""

    sizes: tuple[int, ...]
    rows: tuple[str, ...]
    since: int
    cpu: float
    memory: float = float("inf")


# Each is named like a field of Sizes.
CURVES = {
    "rows": Curve((10**4, 10**5, 10**6, 10**7, 5 * 10**7), ("csv", "users", "scan"), 10**6, 1.1),
    "nodes": Curve((10**4, 10**5, 10**6, 10**7), ("first-box", "next-box", "info"), 10**5, 1.1),
    "slices": Curve((1, 12, 168, 744, 8760), ("series-box",), 168, 1.1, 0.1),
}
GROWTH = ["curve", "row", "size", "CPU s", "wall s", "MB", "CPU slope", "MB slope", "bar", "kept"]


def slopes(sizes: tuple[int, ...], costs: list[Cost]) -> tuple[float, float]:
    """Slopes of log CPU time and of log memory by log size."""
    log = np.log([(cost.cpu, cost.memory) for cost in costs])
    cpu, memory = np.polyfit(np.log(sizes), log, 1)[0]
    return cpu, memory


def growth(
    made: Made, names: list[str], few: int | None, rounds: int, missed: list[str]
) -> Iterator[list[str]]:
    """Lines of the curves: of each size, with the slope since the size before, then of the rest."""
    for name in names:
        curve = CURVES[name]
        found: dict[str, list[Cost]] = {row: [] for row in curve.rows}
        for index, size in enumerate(curve.sizes[:few]):
            rows = rows_of(made, Sizes()._replace(**{name: size}))
            for row, costs in measure(rows, list(curve.rows), rounds).items():
                found[row].append(middle(costs))
                two = slopes(curve.sizes[index - 1 : index + 1], found[row][-2:]) if index else ()
                shown = [f"{slope:.2f}" for slope in two] or ["", ""]
                yield [name, row, f"{size:,}", *figures(found[row][-1]), *shown, "", ""]
        if few:
            continue
        begin = curve.sizes.index(curve.since)
        for row, costs in found.items():
            cpu, memory = slopes(curve.sizes[begin:], costs[begin:])
            cells = [f"from {curve.since:,}", "", "", "", f"{cpu:.2f}", f"{memory:.2f}"]
            if not rows[row].bars:  # what is beside them
                yield [name, row, *cells, "", ""]
                continue
            kept = cpu <= curve.cpu and memory <= curve.memory
            bar = f"CPU <= {curve.cpu}" + (f"; MB <= {curve.memory}" if curve.memory < 1 else "")
            missed += [] if kept else [f"{name}, {row}, slopes {cpu:.2f} and {memory:.2f}: {bar}"]
            yield [name, row, *cells, bar, "yes" if kept else "no"]


def main() -> int:
    parser = study(__doc__)
    parser.add_argument("--only", type=items, help="names of rows, or of curves, with commas")
    parser.add_argument("--rounds", type=int, help="runs of everything, in turn [5; quick 1]")
    parser.add_argument("--rows", type=float, help="rows of the larger files [1e7]")
    parser.add_argument("--growth", action="store_true", help="curves, in place of the table")
    parser.add_argument("--quick", action="store_true", help="small sizes, no bars")
    options = parser.parse_args()
    size = QUICK if options.quick else Sizes()
    if options.rows:
        size = size._replace(rows=int(options.rows), large=int(5 * options.rows))
    rounds = options.rounds or (1 if options.quick else 5)
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder))
        rows = rows_of(made, size)
        beside = {peer for row in rows.values() for peer in row.peers}
        known = list(CURVES) if options.growth else [name for name in rows if name not in beside]
        names = options.only or known
        if unknown := set(names) - {*known}:
            parser.error(f"--only must be some of {','.join(known)}, got {','.join(unknown)}")
        if options.growth:
            few = 2 if options.quick else None
            write_table(options.output, GROWTH, growth(made, names, few, rounds, missed))
        else:
            if options.quick:
                rows = {name: row._replace(bars="") for name, row in rows.items()}
            write_table(options.output, HEADER, lines(rows, names, rounds, missed))
    if missed or not options.quick:
        print("\n".join(f"missed: {text}" for text in missed) or "all bars kept")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
