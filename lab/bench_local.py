"""Speed and accuracy of local campaigns: `python lab/bench_local.py speed`.

``speed`` measures the device, reports into support counts, lines through `collect` and counting of
parts, each beside its peer in the same run, in seconds of CPU of one process. With pure-ldp on the
path (PYTHONPATH), its OLH is a peer. ``accuracy`` gives the scores of the shared workload
(``bench/workload.py`` in the folder that PSD_SHARED names) for numbers of devices, epsilons and
rounds, with reports drawn device by device. ``peers`` gives the scores of 4, 1 and 7 rounds, of a
uniform grid with its guideline and of HDG on the same populations, with support counts drawn by
their exact laws (`psd.planning.local_reports`); with ``--shrink 8`` the points are shrunk 8-fold in
the domain.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from psd.local import device  # noqa: E402
from psd.local.aggregation import counted_groups, release_of  # noqa: E402
from psd.local.bulk import (  # noqa: E402
    ManyWords,
    draw_groups,
    find_answers,
    format_reports,
    randomise_group,
)
from psd.local.campaign_design import design  # noqa: E402
from psd.local.collection import collect  # noqa: E402
from psd.local.counting import GroupCounts, count_support  # noqa: E402
from psd.local.lines import Reports  # noqa: E402
from psd.local.partitions import grid_cells  # noqa: E402
from psd.local.parts import PartWriter  # noqa: E402
from psd.local.protocols import protocol_of  # noqa: E402
from psd.local.rounds import round_after  # noqa: E402
from psd.planning.local_reports import draw_campaign  # noqa: E402
from support.local import HASHING, campaign, campaign_bytes  # noqa: E402

from local_peers import answer, hdg, uniform_grid  # noqa: E402 isort: skip

ANSWERS = grid_cells(5)
SETS = ("uk_road_accidents", "london_stop_search", "osm_andorra_2016")


def seconds(work):
    """CPU time of a call, and its result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def show(what, figure, bar):
    print(f"| {what} | {figure} | {bar} |", flush=True)


def olh_rate(answers):
    """Reports a second that a peer counts, and its name: pure-ldp's OLH, or a keyed hash.

    Both hash every answer with the seed of every report.
    """
    try:
        from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    except ImportError:
        return keyed_hash_rate(answers), "a hash of each answer"
    client, server = LHClient(1.0, answers, use_olh=True), LHServer(1.0, answers, use_olh=True)
    reports = [client.privatise(1 + i % answers) for i in range(300)]
    spent, _ = seconds(lambda: [server.aggregate(report) for report in reports])
    return len(reports) / spent, "pure-ldp's OLH"


def keyed_hash_rate(answers):
    """Reports a second with a hash of Python for each report and answer."""
    import hashlib

    count = 20

    def supports(seed):
        return [
            hashlib.blake2b(b"%d %d" % (seed, v), digest_size=4).digest()[0] % 4 == 1
            for v in range(answers)
        ]

    spent, _ = seconds(lambda: np.sum([supports(seed) for seed in range(count)], axis=0))
    return count / spent


def speed(reports):
    one = campaign(((1_000_000, list(ANSWERS), HASHING),))
    protocol, words = protocol_of(one.groups[0]), device.Words()
    draw = one.groups[0].draw
    assert draw.codes
    print("| what | measured | bar |\n|---|---|---|")
    spent, _ = seconds(lambda: [draw.randomise(5, words) for _ in range(100_000)])
    show("device, reports/s of CPU", f"{100_000 / spent:,.0f}", ">= 100,000")
    size = 1_000_000
    answers = np.full(size, 5)
    spent, drawn = seconds(lambda: randomise_group(one, 0, answers, ManyWords(size)))
    show("many devices, reports/s of CPU", f"{size / spent:,.0f}", ">= 1,000,000")
    spent, _ = seconds(lambda: protocol.support(protocol.tabulate(drawn.codes)))
    peer, name = olh_rate(len(ANSWERS))
    show("reports into support counts, 1,024 cells", f"{size / spent:,.0f}/s, "
         f"{size / spent / peer:,.0f} times {name}, {peer:,.0f}/s", ">= 10,000 times")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        lines_of(one, drawn, Path(folder))
        parts_of(one, reports, Path(folder))
    starts = []
    for _ in range(5):
        start, cpu = time.perf_counter(), os.times()
        subprocess.run([sys.executable, "-I", device.__file__, "--help"], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        done = os.times()
        spent = done.children_user + done.children_system - cpu.children_user - cpu.children_system
        starts.append((time.perf_counter() - start, spent))
    wall, cpu = (sorted(column)[2] for column in zip(*starts, strict=True))
    show("python -I device.py --help, median of 5", f"{wall:.2f} s, {cpu:.2f} s of CPU", "<= 0.2 s")
    for name, bar in (("device.py", 800), ("device.js", 500)):
        source = Path(device.__file__).with_name(name).read_text()
        show(f"lines of {name}", len(source.splitlines()), f"<= {bar}")


def lines_of(one, drawn, folder):
    """Lines through collect, against DuckDB's reader of JSON."""
    count = 300_000
    some = Reports(group=0, nonce=drawn.nonce[:count], codes=drawn.codes[:count])
    (folder / "c.json").write_bytes(campaign_bytes(((1_000_000, list(ANSWERS), HASHING),)))
    path = folder / "lines"
    path.write_text("".join(f"{line}\n" for line in format_reports(one, some)))
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    columns = (
        "{'psd-report': 'INTEGER', 'campaign': 'VARCHAR', 'group': 'INTEGER', 'nonce': 'VARCHAR', "
        "'answer': 'INTEGER[]'}"
    )
    query = (
        'select count(distinct nonce), sum(answer[1]), max(campaign), max("group") from read_json('
        f"'{path}', format = 'newline_delimited', columns = {columns})"
    )
    collect(str(folder / "c.json"), [str(path)], str(folder / "warm"))
    peer, _ = seconds(lambda: connection.execute(query).fetchall())
    spent, done = seconds(lambda: collect(str(folder / "c.json"), [str(path)], str(folder / "in")))
    assert done.reports == count
    show("lines through collect, against read_json", f"{count / spent:,.0f}/s, "
         f"{spent / peer:.1f} times", "<= 10 times")  # fmt: skip


def parts_of(one, count, folder):
    """Reports in Parquet, duplicates dropped, against a bare scan."""
    into, size = folder / "parts", 1_000_000
    into.mkdir()

    def batches():
        for _ in range(count // size):
            words = ManyWords(size)
            yield randomise_group(one, 0, np.arange(size) % 1025, words)

    PartWriter(one, into).write(batches())
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    query = (
        f"select max(nonce_high), max(nonce_low), sum(code), sum(\"group\") from '{into}/*.parquet'"
    )
    connection.execute(query).fetchall()
    peer, _ = seconds(lambda: connection.execute(query).fetchall())
    spent, counts = seconds(lambda: count_support(one, into))
    assert counts.groups[0].reports == count
    bytes_each = sum(f.stat().st_size for f in into.iterdir()) / count
    show(f"{count:,} reports in Parquet, against a bare scan", f"{spent / peer:.1f} times, "
         f"{bytes_each:.0f} bytes a report", "<= 15 times")  # fmt: skip
    peak = peak_gigabytes(folder / "c.json", into)
    show("largest memory of a process that counts them", f"{peak:.2f} GB", "<= 1.5 GB")


COUNT = """
import sys
from pathlib import Path
from psd.local.campaigns import load_campaign
from psd.local.counting import count_support
count_support(load_campaign(sys.argv[1]), Path(sys.argv[2]))
"""


def peak_gigabytes(campaign_file, into):
    """Largest memory of a process that counts the support of all parts."""
    child = subprocess.Popen([sys.executable, "-c", COUNT, campaign_file, into], cwd=ROOT)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0
    return usage.ru_maxrss * 1024 / 1e9


def release_in_rounds(box, x, y, epsilon, rounds):
    """Release of devices, each of which keeps its group."""
    one = design(box, epsilon, len(x), rounds=rounds)
    groups, counted = draw_groups(one, ManyWords(len(x))), []
    for number in range(len(one.groups)):
        mine = np.flatnonzero(groups == number)
        answers = find_answers(one, number, x[mine], y[mine])
        codes = randomise_group(one, number, answers, ManyWords(len(mine))).codes
        protocol = protocol_of(one.groups[number])
        support = protocol.support(protocol.tabulate(codes))
        counts = GroupCounts(group=number, protocol=protocol, reports=len(mine), support=support)
        counted += counted_groups(one, [counts])
        if rounds > 1 and number < rounds - 1:
            one = round_after(one, release_of(one, counted), counted)
    return release_of(one, counted)


def load_workload(shared: Path) -> Any:
    """Module of the shared workload; a benchmark beside this one has its name."""
    spec = importlib.util.spec_from_file_location("shared_workload", shared / "bench/workload.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def accuracy(devices, epsilons, rounds, runs, sets):
    shared = Path(os.environ["PSD_SHARED"])
    workload = load_workload(shared)

    scores = []
    print("| set | devices | epsilon | rounds | score | coverage |\n|---|---|---|---|---|---|")
    for name in sets:
        box = workload.BOXES[name]
        points = workload.load(shared / "data" / f"{name}.csv", box)
        boxes = workload.rectangles(points, box)
        for size in devices:
            for epsilon in epsilons:
                errors, covered = [], []
                for run in range(runs):
                    generator = np.random.default_rng([run, size, int(epsilon), 9])
                    drawn = points[generator.integers(0, len(points), size)]
                    release = release_in_rounds(box, drawn[:, 0], drawn[:, 1], epsilon, rounds)
                    true = workload.true_counts(drawn, boxes)
                    answers = release.query(boxes)
                    estimates = answers["estimate"].to_numpy()
                    errors.append(workload.relative_errors(estimates, true, size))
                    covered.append(((answers.lower <= true) & (true <= answers.upper)).mean())
                scores.append(float(np.exp(np.log(np.mean(errors, axis=0)).mean())))
                print(f"| {name} | {size:,} | {epsilon} | {rounds} | {scores[-1]:.3f} | "
                      f"{np.mean(covered):.3f} |", flush=True)  # fmt: skip
    print(f"\nGeometric mean {np.exp(np.mean(np.log(scores))):.4f}")


METHODS = ("4 rounds", "1 round", "7 rounds", "uniform grid", "HDG")


def peers(devices, epsilons, runs, sets, shrink):
    """Scores of numbers of rounds and of peers, on the same populations."""
    shared = Path(os.environ["PSD_SHARED"])
    workload, table = load_workload(shared), []
    print(f"| set | devices | epsilon | {' | '.join(METHODS)} |\n|{'---|' * (3 + len(METHODS))}")
    for name in sets:
        box = np.array(workload.BOXES[name])
        points = workload.load(shared / "data" / f"{name}.csv", tuple(box))
        low, side = box[:2], box[2:] - box[:2]
        unit = (points - low) / side
        if shrink > 1:
            unit = unit / shrink + 0.3
            points = low + unit * side
        boxes = workload.rectangles(points, tuple(box))
        for size in devices:
            for epsilon in epsilons:
                errors = [
                    errors_of_methods(workload, box, points, unit, boxes, size, epsilon, run)
                    for run in range(runs)
                ]
                table.append(np.exp(np.log(np.mean(errors, axis=0)).mean(axis=1)))
                figures = " | ".join(f"{score:.3f}" for score in table[-1])
                print(f"| {name} | {size:,} | {epsilon:g} | {figures} |", flush=True)
    means = np.exp(np.log(table).mean(axis=0))
    shown = (f"{name} {mean:.4f}" for name, mean in zip(METHODS, means, strict=True))
    print(f"\nGeometric means: {', '.join(shown)}")
    print(f"4 rounds against them: {', '.join(f'{means[0] / m:.2f}' for m in means)}")


def errors_of_methods(workload, box, points, unit, boxes, size, epsilon, run):
    """Mean relative error of each method and class of boxes, for a population."""
    random = np.random.default_rng([run, size, int(epsilon), 9])
    weight = random.multinomial(size, np.full(len(points), 1 / len(points)))
    drawn = weight > 0
    points, unit, weight = points[drawn], unit[drawn], weight[drawn]
    true = workload.true_counts(np.repeat(points, weight, axis=0), boxes)
    estimates = []
    for rounds in (4, 1, 7):
        first = design(tuple(box), epsilon, size, rounds=rounds)
        release = draw_campaign(first, points[:, 0], points[:, 1], weight, random)
        estimates.append(release.estimate(boxes))
    inside = (boxes - np.tile(box[:2], 2)) / np.tile(box[2:] - box[:2], 2)
    grid = uniform_grid(tuple(box), points[:, 0], points[:, 1], weight, epsilon, random)
    estimates.append(grid.estimate(boxes))
    estimates.append(size * answer(hdg(unit, weight, epsilon, random), inside))
    return [workload.relative_errors(estimate, true, size) for estimate in estimates]


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["speed", "accuracy", "peers"])
    parser.add_argument("--reports", type=int, default=10_000_000)
    parser.add_argument("--devices", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--shrink", type=float, default=1)
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    if options.what == "speed":
        speed(options.reports)
    elif options.what == "peers":
        peers(options.devices, options.epsilons, options.runs, options.sets, options.shrink)
    else:
        accuracy(options.devices, options.epsilons, options.rounds, options.runs, options.sets)


if __name__ == "__main__":
    main()
