"""From a CSV to a release: time and memory by rows, beside a bare scan and pandas.

    python tests/benchmarks/ingest.py --rows 1e5,1e6,1e7,5e7 -o docs/measured/ingest-table.md

Makes files of four columns (user_id, timestamp, lon, lat; fifty rows of each user, around 400
towns) and runs, each in a process of its own, one after another, best of several:

- scan: DuckDB, ``select sum(lon), sum(lat), count(*)``, with the types given, without its start;
- pandas: ``read_csv(path, engine="c", dtype={"user_id": str, "timestamp": str})``;
- build: ``psd build --method quadtree --set height=10``, 1.4 million nodes, from start to end;
- users: the same with ``--user user_id --max-contributions 10``.

Exits with 1 if a limit is missed: at 10^7 rows build is at most 4 scans, less than pandas, and
takes at most 1.0 GB; at 5 x 10^7 at most 3 scans and 3 GB; users is at most 3 builds; and a row
costs no more at 5 x 10^7 rows than at 10^7.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

BOUNDS = ["-8", "49", "3", "61"]
TYPES = "{'user_id': 'VARCHAR', 'timestamp': 'VARCHAR', 'lon': 'DOUBLE', 'lat': 'DOUBLE'}"
SCAN = f"""
import sys, time, duckdb
started = time.perf_counter()
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
connection.execute("select sum(lon), sum(lat), count(*) from read_csv($1, columns = {TYPES}, "
                   "header = true, auto_detect = false)", [sys.argv[1]]).fetchall()
print(time.perf_counter() - started)
"""
PANDAS = """
import sys, time, pandas
started = time.perf_counter()
pandas.read_csv(sys.argv[1], engine="c", dtype={"user_id": str, "timestamp": str})
print(time.perf_counter() - started)
"""

# Limits: in scans, in GB, by rows.
LIMITS = {10**7: (4.0, 1.0), 5 * 10**7: (3.0, 3.0)}
USERS_LIMIT = 3.0


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


def run(command: list[str]) -> tuple[float, float, str]:
    """Seconds, peak memory in GB, and output of a process."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command[0]} failed")
    return time.perf_counter() - started, usage.ru_maxrss * 1024 / 1e9, output


def measured(path: Path, out: Path, repeats: int) -> dict[str, tuple[float, float]]:
    """Best seconds and largest memory of each contender, taken in turn."""
    build = [sys.executable, "-m", "psd_cli", "build", str(path), "-o", str(out), "--overwrite"]
    build += ["--epsilon", "1", "--bounds", *BOUNDS, "--method", "quadtree", "--set", "height=10"]
    contenders = {
        "scan": [sys.executable, "-c", SCAN, str(path)],
        "pandas": [sys.executable, "-c", PANDAS, str(path)],
        "build": build,
        "users": [*build, "--user", "user_id", "--max-contributions", "10"],
    }
    best = dict.fromkeys(contenders, (np.inf, 0.0))
    for _ in range(repeats):
        for name, command in contenders.items():
            seconds, memory, output = run(command)
            if name in ("scan", "pandas"):
                seconds = float(output)
            best[name] = (min(best[name][0], seconds), max(best[name][1], memory))
    return best


def faults(found: dict[int, dict[str, tuple[float, float]]]) -> list[str]:
    """Limits that are missed."""
    missed = []
    for rows, (scans, memory) in LIMITS.items():
        if rows not in found:
            continue
        took = {name: seconds for name, (seconds, _) in found[rows].items()}
        checks = {
            f"build takes more than {scans:g} scans": took["build"] > scans * took["scan"],
            "build takes longer than pandas reads": took["build"] > took["pandas"],
            "users take more than 3 builds": took["users"] > USERS_LIMIT * took["build"],
            f"build takes more than {memory:g} GB": found[rows]["build"][1] > memory,
            f"users take more than {memory:g} GB": found[rows]["users"][1] > memory,
        }
        missed += [f"{rows:,} rows: {text}" for text, is_missed in checks.items() if is_missed]
    if all(rows in found for rows in LIMITS):
        small, large = (found[rows]["build"][0] / rows for rows in LIMITS)
        missed += ["a row costs more in the larger file"] * (large > small)
    return missed


def table(found: dict[int, dict[str, tuple[float, float]]]) -> str:
    """Markdown table."""
    lines = [
        "| rows | scan s | pandas s | build s | scans | build GB | users s | builds | users GB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for rows, by in found.items():
        scan, pandas, build, users = (by[name][0] for name in ("scan", "pandas", "build", "users"))
        lines.append(
            f"| {rows:,} | {scan:.2f} | {pandas:.2f} | {build:.2f} | {build / scan:.1f} | "
            f"{by['build'][1]:.2f} | {users:.2f} | {users / build:.1f} | {by['users'][1]:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="1e5,1e6,1e7")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for rows in (int(float(text)) for text in given.rows.split(",")):
            path = Path(folder, "rows.csv")
            make(path, rows)
            found[rows] = measured(path, Path(folder, "out.psd.parquet"), given.repeats)
            print(table({rows: found[rows]}), flush=True)
    missed = faults(found)
    print("\n".join(missed) or "all limits kept")
    if given.output:
        command = f"python tests/benchmarks/ingest.py --rows {given.rows} --repeats {given.repeats}"
        page = "docs/measured/ingest-table.md"
        head = f"# From a CSV to a release\n\nMade by `{command} -o {page}`. "
        given.output.write_text(f"{head}That file defines the columns.\n\n{table(found)}\n")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
