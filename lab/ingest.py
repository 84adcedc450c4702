"""From a CSV to a release: CPU time, wall-clock and memory by rows, beside a bare scan and pandas.

    python lab/ingest.py --rows 1e4,1e6,1e7,5e7 -o docs/measured/data/ingest.csv

Makes files of four columns (user_id, timestamp, lon, lat; fifty rows of each user, around 400
towns) and runs, each in a process of its own, in turn:

- auto: ``psd build`` with the default method;
- scan: DuckDB, ``select sum(lon), sum(lat), count(*)``, with the types given;
- pandas: ``read_csv`` with the C engine and the types of the coordinates given;
- users: as auto, with ``--user user_id --max-contributions 10``;
- quadtree: as auto, with ``--method quadtree --set height=10``, 1.4 million nodes.

The table has medians of all runs: CPU seconds (user and system, children included) and wall-clock
seconds of the process from start to end, and the largest peak memory in GB.

Exits with 1 if a limit is missed. The CPU time of auto is at most 2.5 scans at 10^7 rows and 2 at
5 x 10^7; its wall-clock is below pandas, its memory at most 1 GB at both; users take at most 1.5
times the CPU time of auto at both; the CPU time of quadtree is at most 4 and 3 scans; a row costs
no more at 5 x 10^7 than at 10^7; and a build of 10^4 rows takes at most 1.2 s of wall-clock.
Wall-clock times need a machine with two idle cores: those of other loads are not comparable.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
from common import PSD, Cost, run_python, study, whole_numbers, write_table

BOUNDS = ["-8", "49", "3", "61"]
TYPES = "{'user_id': 'VARCHAR', 'timestamp': 'VARCHAR', 'lon': 'DOUBLE', 'lat': 'DOUBLE'}"
SCAN = f"""
import sys, duckdb
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
connection.execute("select sum(lon), sum(lat), count(*) from read_csv($1, columns = {TYPES}, "
                   "header = true, auto_detect = false)", [sys.argv[1]]).fetchall()
"""
PANDAS = """
import sys, pandas
pandas.read_csv(sys.argv[1], engine="c", dtype={"lon": "float64", "lat": "float64"})
"""

# Limits by rows: CPU time of auto and of quadtree in scans, and the memory of auto in GB.
LIMITS = {10**7: (2.5, 4.0, 1.0), 5 * 10**7: (2.0, 3.0, 1.0)}
USERS_LIMIT = 1.5
START_LIMIT = 1.2


def make(path: Path, rows: int) -> None:
    """Write the file, a million rows at a time."""
    import pyarrow as pa
    import pyarrow.csv as pc

    random = np.random.default_rng(1)
    towns = random.uniform((-7, 50), (2, 60), (400, 2))
    writer = None
    for start in range(0, rows, 10**6):
        size = min(10**6, rows - start)
        places = towns[random.integers(0, 400, size)] + random.normal(0, (0.15, 0.1), (size, 2))
        table = pa.table(
            {
                "user_id": pa.array(random.integers(0, max(rows // 50, 1), size)).cast(pa.string()),
                "timestamp": pa.array(
                    random.integers(1_704_067_200, 1_706_745_600, size), pa.timestamp("s")
                ).cast(pa.string()),
                "lon": places[:, 0].round(6),
                "lat": places[:, 1].round(6),
            }
        )
        if writer is None:
            with path.open("wb") as file:
                file.write(b"user_id,timestamp,lon,lat\n")
            options = pc.WriteOptions(include_header=False, quoting_style="none")
            writer = pc.CSVWriter(path.open("ab"), table.schema, write_options=options)
        writer.write(table)
    if writer is not None:
        writer.close()


def medians(path: Path, out: Path, repeats: int) -> dict[str, Cost]:
    """Median times and largest memory of each contender, run in turn."""
    auto = (PSD, "build", path, "-o", out, "--overwrite", "--epsilon", 1, "--bounds", *BOUNDS)
    contenders: dict[str, tuple] = {
        "auto": auto,
        "scan": (SCAN, path),
        "pandas": (PANDAS, path),
        "users": (*auto, "--user", "user_id", "--max-contributions", 10),
        "quadtree": (*auto, "--method", "quadtree", "--set", "height=10"),
    }
    runs: dict[str, list[Cost]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, words in contenders.items():
            runs[name].append(run_python(*words))
    return {
        name: Cost(
            median(each.cpu for each in of_name),
            median(each.wall for each in of_name),
            max(each.memory for each in of_name) * 1024**2 / 1e9,
            "",
        )
        for name, of_name in runs.items()
    }


def faults(rows: int, by: dict[str, Cost]) -> list[str]:
    """Limits that are missed."""
    auto, users = by["auto"], by["users"]
    checks = {f"a build takes more than {START_LIMIT} s": rows <= 10**4 and auto.wall > START_LIMIT}
    if rows in LIMITS:
        scans, of_tree, memory = LIMITS[rows]
        checks |= {
            f"auto takes more than {scans:g} scans": auto.cpu > scans * by["scan"].cpu,
            f"quadtree takes more than {of_tree:g} scans": (
                by["quadtree"].cpu > of_tree * by["scan"].cpu
            ),
            "auto takes longer than pandas reads": auto.wall > by["pandas"].wall,
            f"auto takes more than {memory:g} GB": auto.memory > memory,
            f"users take more than {USERS_LIMIT} times auto": users.cpu > USERS_LIMIT * auto.cpu,
        }
    return [f"{rows:,} rows: {text}" for text, is_missed in checks.items() if is_missed]


HEADER = ["rows", "auto CPU", "auto scans", "auto wall", "auto GB", "scan CPU", "scan wall"]
HEADER += ["pandas CPU", "pandas wall", "users CPU", "users autos", "users GB"]
HEADER += ["quadtree CPU", "quadtree scans", "quadtree GB"]


def row(rows: int, by: dict[str, Cost]) -> list[str]:
    """Row of the table."""
    auto, scan, pandas, users, tree = (
        by[name] for name in ("auto", "scan", "pandas", "users", "quadtree")
    )
    numbers = [auto.cpu, auto.cpu / scan.cpu, auto.wall, auto.memory, scan.cpu, scan.wall]
    numbers += [pandas.cpu, pandas.wall, users.cpu, users.cpu / auto.cpu, users.memory]
    numbers += [tree.cpu, tree.cpu / scan.cpu, tree.memory]
    return [f"{rows:,}", *(f"{number:.2f}" for number in numbers)]


def main() -> None:
    parser = study(__doc__)
    parser.add_argument("--rows", type=whole_numbers, default=[10**4, 10**6, 10**7])
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    missed: list[str] = []
    cost: dict[int, float] = {}

    def rows_of_table(folder: Path) -> Iterator[list[str]]:
        for rows in given.rows:
            path = folder / "rows.csv"
            make(path, rows)
            by = medians(path, folder / "out.psd.parquet", given.repeats)
            missed.extend(faults(rows, by))
            cost[rows] = by["auto"].cpu / rows
            print(rows, *row(rows, by)[1:], flush=True)
            yield row(rows, by)

    with tempfile.TemporaryDirectory() as folder:
        write_table(given.output, HEADER, rows_of_table(Path(folder)))
    if cost.keys() >= LIMITS.keys() and cost[max(LIMITS)] > cost[min(LIMITS)]:
        missed.append("a row costs more in the larger file")
    print("\n".join(missed) or "all limits kept")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
