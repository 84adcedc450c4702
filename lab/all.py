"""All studies, one after another, into one page.

    python lab/all.py --quick [-o try/lab]      # the headline figures, at reduced size
    python lab/all.py [--data FOLDER]           # whole studies: says in advance how long
    python lab/all.py --quick --only accuracy,calibration

Each study is a process of its own. Its command, its CPU and wall-clock seconds and what it prints
stand in `quick.md` or `whole.md` of the folder that -o names. What fails is named at the end: a
study whose program fails, or that misses one of its own bars, unless its page says that some are
missed. Exits with 1 if one failed.
"""

import argparse
import os
import resource
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from common import ROOT, environment, items


class Study(NamedTuple):
    """A command of the lab.

    Its arguments quick and whole, None where it is not run so; the page that holds its figures; and
    CPU minutes of the whole study on what a clone has.
    """

    script: str
    quick: str | None
    whole: str | None
    page: str
    minutes: float
    may_miss: bool = False  # bars, as its page says


STUDIES = (
    Study("accuracy", "--sets seoul,city-towns --methods auto,adaptive-grid,grid,privtree,quadtree"
          " --epsilons 0.1,1 --runs 2", "", "measured/accuracy.md", 15),
    Study("ablation", "--sets seoul --epsilons 1 --runs 2", "", "measured/accuracy.md", 8),
    Study("large", "--sets seoul --methods auto --epsilons 1 --runs 3", "",
          "measured/accuracy.md", 15),
    Study("calibration", "--sets seoul --methods auto,grid --epsilons 1 --runs 2", "",
          "measured/data/README.md", 15),
    Study("coverage_matrix", "--sets seoul --epsilons 1 --runs 2 --districts 100"
          " --rows 'as it is;streets'", "", "measured/coverage.md", 110, True),
    Study("coverage_matrix", "--kind given --sets places-india --epsilons 1 --runs 2"
          " --title Hold-out", "--kind given --title Hold-out", "measured/coverage.md", 4, True),
    Study("coverage_matrix", "--kind lattices --sets seoul --rows '256, in the middle'"
          " --epsilons 1 --runs 2 --districts 100", "--kind lattices --epsilons 0.1,1,3 --runs 4",
          "measured/coverage.md", 18, True),
    Study("constants", "--sets seoul --rows 'streets$'", "",
          "measured/data/README.md", 15),
    Study("polygon_coverage", "--sets seoul --rows '3 decimals$' --epsilons 1 --runs 2", "",
          "measured/coverage.md", 8),
    Study("declared", "--sets seoul --rows '3 decimals, declared' --epsilons 1 --runs 2", "",
          "measured/coverage.md", 15),
    Study("workload", "--sets seoul --classes tiny --epsilons .05 --methods 'grid, workload'"
          " --runs 2", "", "measured/coverage.md", 90),
    Study("bias", "--sets seoul --methods auto --epsilons 1 --builds 10", "", "measured/bias.md",
          180),
    Study("spread", "--sets seoul --methods auto --epsilons 1 --draws 10 --queries 20", "",
          "measured/data/README.md", 160),
    Study("regions", "--sets seoul --districts 30 --epsilons 1 --builds 1", "",
          "measured/regions.md", 8),
    Study("region_practice", "--sets seoul --districts 100 --builds 1", "", "measured/regions.md",
          3),
    Study("region_bias", "--sets seoul --districts 100 --epsilons 1 --builds 10", "",
          "measured/regions.md", 5),
    Study("region_levels", "--sets seoul --epsilons 1 --builds 2", "", "measured/regions.md", 10),
    Study("values", "--sets fares --districts 100 --epsilons 1 --answers 1000 --opendp plain", "",
          "measured/data/README.md", 12, True),
    Study("values", "--cut --sets fares --epsilons 1 --runs 2", "--cut", "measured/data/README.md",
          15),
    Study("plans", "--sets seoul --epsilons 1 --runs 1", "", "guide/planning.md", 4),
    Study("gaussian", "--sets seoul --slices 1,12,52 --rows 1 --epsilons 1 --methods auto --runs 1",
          "", "guide/delta.md", 10),
    Study("plans", "--cubes --records 20000 --epsilons 1 --runs 1", "--cubes", "guide/planning.md",
          5),
    Study("gaussian", "--cubes --records 6000 --slices 56 --epsilons 1 --runs 1", "--cubes",
          "measured/data/README.md", 10),
    Study("slice_sums", "--sets seoul --slices 4 --epsilons 1 --methods auto", "",
          "measured/data/README.md", 10),
    Study("cube", "--records 30000 --epsilons 1 --builds 1 --queries 10", "",
          "measured/data/README.md", 12),
    Study("categories", "--records 30000 --epsilons 1 --builds 1 --queries 5",
          "--records 140000 --queries 20", "measured/data/README.md", 10),
    Study("times", "--records 60000 --epsilons 0.3 --builds 1 --queries 5", "",
          "measured/data/README.md", 2),
    Study("region_cubes", "--records 30000 --epsilons 1 --builds 1 --wards 8", "",
          "measured/data/README.md", 12),
    Study("bounds", "--sets seoul --epsilons 1 --runs 1", "", "guide/units.md", 9),
    Study("private_bounds", "--sets city-streets --draws 10", "", "guide/units.md", 2),
    Study("choices", "--lists 1 --runs 2 --epsilons 0.1,1", "", "measured/data/README.md", 5),
    Study("choices", "--time --rows 100000", "--time", "measured/data/README.md", 1),
    Study("markets", "--rows 100000 --markets 100 --splits 200", "", "measured/market-choices.md",
          1),
    Study("suggest", "--models weights --epsilons 0.3 --every 20", "", "guide/suggestions.md", 4),
    Study("stream_growth", "--steps 2,50 --of 100 --size 32", "", "measured/streams.md", 4),
    Study("counters", "--steps 52", "", "measured/streams.md", 3),
    Study("bench_local", "speed --reports 1000000", "speed", "measured/local.md", 1),
    Study("bench_local", "accuracy --sets seoul --devices 1e5 --epsilons 1 --runs 1", "accuracy",
          "measured/local.md", 20),
    Study("bench_local", "peers --sets seoul --devices 1e5 --epsilons 1 --runs 1", "peers --runs 2",
          "measured/local.md", 15),
    Study("bench_local", "numbers --devices 1e4 --epsilons 1 --runs 1", "numbers",
          "measured/local.md", 9),
    Study("points", "--sets seoul --epsilons 1 --runs 2", "", "measured/data/README.md", 3),
    Study("points", "--size 1e6", "--size 1e7", "measured/data/README.md", 1),
    Study("together", "--draws 20", "", "guide/statistics.md", 3),
    Study("audits", "--methods auto,grid --pairs 300", "--pairs 2000", "measured/data/README.md",
          30),
    Study("figures", None, "", "privacy/how-we-test-privacy.md", 3),
    Study("bench_noise", "", "", "measured/benchmarks.md", 3),
    Study("bench_quantile", None, "", "measured/benchmarks.md", 2),
    Study("speed", "--quick", "", "measured/data/README.md", 40, True),
    Study("speed", "--quick --growth", "--growth", "measured/data/README.md", 60, True),
    Study("bench_query", "--methods auto,quadtree --boxes 100000 --runs 1", "",
          "measured/data/README.md", 5),
    Study("bench_polygons", "--districts 100 --size 100 --peer 10", "",
          "measured/data/README.md", 3),
    Study("bench_map", None, "", "measured/data/README.md", 3),
    Study("bench_sources", "--rows 200000", "", "measured/data/README.md", 8),
    Study("stages", "--rows 1e6 --repeats 1", "", "measured/ingest.md", 1),
)  # fmt: skip


class Result(NamedTuple):
    """What a study cost and printed."""

    command: str
    cpu: float
    wall: float
    code: int
    text: str
    failed: bool


def run(study: Study, arguments: str, data: Path | None) -> Result:
    """Run a study in a process of its own."""
    script = ROOT / "lab" / f"{study.script}.py"
    words = shlex.split(arguments)
    takes_sets = "add_sets(" in script.read_text(encoding="utf-8") or study.script.startswith("reg")
    more = ["--data", str(data.resolve())] if data and takes_sets else []
    shown = shlex.join(["python", f"lab/{script.name}", *words])
    shown += " --data FOLDER" if more else ""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(script), *words, *more],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
    )
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    text = done.stdout
    if done.returncode and "Traceback" in done.stderr:
        text += "\n```text\n" + "\n".join(done.stderr.splitlines()[-15:]) + "\n```\n"
    missed = study.may_miss and done.returncode == 1 and "Traceback" not in done.stderr
    return Result(shown, cpu, wall, done.returncode, text, bool(done.returncode) and not missed)


def section(study: Study, result: Result) -> str:
    """Part of the page: headings of a study are below its own."""
    lines = [f"#{line}" if line.startswith("#") else line for line in result.text.splitlines()]
    head = f"## {study.script}\n\n`{result.command}`: {result.cpu:.0f} CPU seconds, "
    head += f"{result.wall:.0f} s. The page with its figures is docs/{study.page}."
    if result.code:
        head += f" **Failed with {result.code}.**" if result.failed else " It misses a bar."
    return head + "\n\n" + "\n".join(lines).strip() + "\n"


def summary(done: list[tuple[Study, Result]]) -> str:
    """What all studies cost, and which failed."""
    cpu, wall = (sum(getattr(result, kind) for _, result in done) for kind in ("cpu", "wall"))
    said = f"{len(done)} studies took {cpu / 60:.1f} CPU minutes, {wall / 60:.1f} minutes."
    failed = [f"- failed: `{result.command}`" for _, result in done if result.failed]
    return "\n".join([said, *([""] if failed else []), *failed])


def chosen(options: argparse.Namespace) -> list[tuple[Study, str]]:
    """Studies that are run, and their arguments."""
    pairs = [(study, study.quick if options.quick else study.whole) for study in STUDIES]
    names = options.only or [study.script for study in STUDIES]
    unknown = set(names) - {study.script for study in STUDIES}
    if unknown:
        raise SystemExit(f"no study {', '.join(sorted(unknown))}")
    return [(study, words) for study, words in pairs if words is not None and study.script in names]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="reduced sizes, a few minutes in all")
    parser.add_argument("--only", type=items, help="names of scripts, with commas")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="as of the scripts; not quick")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("try/lab"), help="folder to write"
    )
    options = parser.parse_args()
    if options.quick and options.data:
        parser.error("--quick runs on what a clone has")
    studies = chosen(options)
    if not options.quick:
        minutes = sum(study.minutes for study, _ in studies)
        print(f"{len(studies)} studies, about {minutes:.0f} CPU minutes", flush=True)
    os.environ["PSD_CACHE"] = "off"
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / ("quick.md" if options.quick else "whole.md")
    done: list[tuple[Study, Result]] = []
    for study, arguments in studies:
        result = run(study, arguments, options.data)
        done.append((study, result))
        parts = ["# Studies", summary(done), *(section(*each) for each in done)]
        path.write_text("\n\n".join(parts), encoding="utf-8")  # so that nothing is lost
        mark = "  FAILED" if result.failed else "  misses a bar" if result.code else ""
        print(f"{result.cpu:6.0f} CPU s {result.wall:6.0f} s  {result.command}{mark}", flush=True)
    print(f"{summary(done)}\nwrote {path}")
    return int(any(result.failed for _, result in done))


if __name__ == "__main__":
    sys.exit(main())
