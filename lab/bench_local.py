"""Speed and accuracy of local campaigns, beside peers.

    python lab/bench_local.py speed [--reports 10000000]
    python lab/bench_local.py accuracy [--devices 1e4,1e5,1e6] [--epsilons 1,2,4] [--rounds 4]
        [--runs 6] [--data FOLDER] [--sets A,B]
    python lab/bench_local.py peers [--shrink 8] ...
    python lab/bench_local.py numbers [--runs 6]

``speed`` measures the device, reports into support counts, lines through `collect` and counting of
parts, each beside its peer in the same run, in seconds of CPU of one process. With pure-ldp on the
path (PYTHONPATH), its OLH is a peer. ``accuracy`` gives the scores of the boxes of
`psd/apps/evaluation/workload.py` for numbers of devices, epsilons and rounds, with reports drawn
device by device. ``peers`` gives the scores of 4, 1 and 7 rounds, of a uniform grid with its
guideline and of HDG on the same populations, with support counts drawn by their exact laws
(`psd.apps.planning.local_plan`); with ``--shrink 8`` the points are shrunk 8-fold in the domain.
``numbers`` gives errors of distributions of numbers by square-wave: reports are drawn from the
exact law of each step, the error is the mean absolute error of 1,000 random intervals whose ends
are those of the 64 bins, in thousandths of the devices, and coverage is the share of bins whose
interval of 95 % holds the number of devices.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import numpy as np
from common import (
    environment,
    holds,
    means_by_class,
    run_python,
    study,
    table,
    timed,
    whole_numbers,
)
from data_sets import add_sets, chosen_sets
from local_peers import answer, hdg, uniform_grid

from psd.apps.evaluation.true_counts import count_in_boxes, relative_base
from psd.apps.evaluation.true_errors import geometric_mean
from psd.apps.evaluation.workload import draw_workload
from psd.apps.local import device
from psd.apps.local.aggregation import GroupCounts, count_support, counted_groups, release_of
from psd.apps.local.answer_tables import BINS, estimate_distribution
from psd.apps.local.campaign_design import design, grid_cells
from psd.apps.local.collection import PartWriter, Reports, collect
from psd.apps.local.protocols import protocol_class, protocol_of
from psd.apps.local.randomization import (
    ManyWords,
    draw_groups,
    find_answers,
    format_reports,
    randomise_group,
)
from psd.apps.local.rounds import round_after
from psd.apps.planning.local_plan import draw_campaign
from support.local import HASHING, campaign, campaign_bytes

ANSWERS = grid_cells(5)


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
    spent, _ = timed(lambda: [server.aggregate(report) for report in reports])
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

    spent, _ = timed(lambda: np.sum([supports(seed) for seed in range(count)], axis=0))
    return count / spent


def speed(options):
    one = campaign(((1_000_000, list(ANSWERS), HASHING),))
    protocol, words = protocol_of(one.groups[0]), device.Words()
    draw = one.groups[0].draw
    assert draw.codes
    print("| what | measured | bar |\n|---|---|---|")
    spent, _ = timed(lambda: [draw.randomise(5, words) for _ in range(100_000)])
    show("device, reports/s of CPU", f"{100_000 / spent:,.0f}", ">= 100,000")
    size = 1_000_000
    answers = np.full(size, 5)
    spent, drawn = timed(lambda: randomise_group(one, 0, answers, ManyWords(size)))
    show("many devices, reports/s of CPU", f"{size / spent:,.0f}", ">= 1,000,000")
    spent, _ = timed(lambda: protocol.support(protocol.tabulate(drawn.codes)))
    peer, name = olh_rate(len(ANSWERS))
    show("reports into support counts, 1,024 cells", f"{size / spent:,.0f}/s, "
         f"{size / spent / peer:,.0f} times {name}, {peer:,.0f}/s", ">= 10,000 times")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        lines_of(one, drawn, Path(folder))
        parts_of(one, options.reports, Path(folder))
    spent = sorted(start_of_device() for _ in range(5))[2]
    show("python -I device.py --help, median of 5", f"{spent:.2f} s of CPU", "<= 0.2 s")
    for name, bar in (("device.py", 800), ("device.js", 500)):
        source = Path(device.__file__).with_name(name).read_text()
        show(f"lines of {name}", len(source.splitlines()), f"<= {bar}")


def start_of_device():
    """CPU seconds of the help of the device, in a process of its own without packages."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-I", device.__file__, "--help"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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
    peer, _ = timed(lambda: connection.execute(query).fetchall())
    spent, done = timed(lambda: collect(str(folder / "c.json"), [str(path)], str(folder / "in")))
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
    peer, _ = timed(lambda: connection.execute(query).fetchall())
    spent, counts = timed(lambda: count_support(one, into))
    assert counts.groups[0].reports == count
    bytes_each = sum(f.stat().st_size for f in into.iterdir()) / count
    show(f"{count:,} reports in Parquet, against a bare scan", f"{spent / peer:.1f} times, "
         f"{bytes_each:.0f} bytes a report", "<= 15 times")  # fmt: skip
    peak = run_python(COUNT, folder / "c.json", into).memory / 1e3
    show("largest memory of a process that counts them", f"{peak:.2f} GB", "<= 1.5 GB")


COUNT = """
import sys
from pathlib import Path
from psd.apps.local.campaigns import load_campaign
from psd.apps.local.aggregation import count_support
count_support(load_campaign(sys.argv[1]), Path(sys.argv[2]))
"""


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


def drawn_boxes(one, unit=None):
    """Points of a set, and the usual boxes."""
    points = one.inside if unit is None else unit
    return points, draw_workload(points[:, 0], points[:, 1], one.bounds)


def true_counts(points, weight, queries):
    """Devices in each box."""
    return count_in_boxes(points[:, 0], points[:, 1], np.asarray(weight, np.int64), queries.boxes)


def relative_errors(queries, estimate, true, size):
    """Mean relative error of each class."""
    return means_by_class(queries.classes, np.abs(estimate - true) / relative_base(true, size))


def accuracy(options):
    """Scores and coverage, by set, number of devices and epsilon."""
    scores = []
    print("| set | devices | epsilon | rounds | score | coverage |\n|---|---|---|---|---|---|")
    for one in chosen_sets(options):
        points, queries = drawn_boxes(one)
        for size in options.devices or (10**4, 10**5, 10**6):
            for epsilon in options.epsilons or (1, 2, 4):
                errors, covered = [], []
                for run in range(options.runs):
                    generator = np.random.default_rng([run, size, int(epsilon), 9])
                    drawn = points[generator.integers(0, len(points), size)]
                    release = release_in_rounds(
                        one.bounds, drawn[:, 0], drawn[:, 1], epsilon, options.rounds
                    )
                    true = true_counts(drawn, np.ones(size), queries)
                    answers = release.query(queries.boxes).table
                    estimates = answers["estimate"].to_numpy()
                    errors.append(relative_errors(queries, estimates, true, size))
                    covered.append(holds(answers, true).mean())
                scores.append(geometric_mean(np.mean(errors, axis=0)))
                print(f"| {one.name} | {size:,} | {epsilon} | {options.rounds} | "
                      f"{scores[-1]:.3f} | {np.mean(covered):.3f} |", flush=True)  # fmt: skip
    print(f"\nGeometric mean {geometric_mean(np.array(scores)):.4f}")


METHODS = ("4 rounds", "1 round", "7 rounds", "uniform grid", "HDG")


def peers(options):
    """Scores of numbers of rounds and of peers, on the same populations."""
    found = []
    print(f"| set | devices | epsilon | {' | '.join(METHODS)} |\n|{'---|' * (3 + len(METHODS))}")
    for one in chosen_sets(options):
        low, side = np.array(one.bounds[:2]), np.diff(np.reshape(one.bounds, (2, 2)), axis=0)[0]
        unit = (one.inside - low) / side
        if options.shrink > 1:
            unit = unit / options.shrink + 0.3
        points, queries = drawn_boxes(one, low + unit * side if options.shrink > 1 else None)
        for size in options.devices or (10**4, 10**5, 10**6):
            for epsilon in options.epsilons or (1, 2, 4):
                errors = [
                    errors_of_methods(one.bounds, points, unit, queries, size, epsilon, run)
                    for run in range(options.runs)
                ]
                found.append([geometric_mean(each) for each in np.mean(errors, axis=0)])
                figures = " | ".join(f"{score:.3f}" for score in found[-1])
                print(f"| {one.name} | {size:,} | {epsilon:g} | {figures} |", flush=True)
    means = np.exp(np.log(found).mean(axis=0))
    shown = (f"{name} {mean:.4f}" for name, mean in zip(METHODS, means, strict=True))
    print(f"\nGeometric means: {', '.join(shown)}")
    print(f"4 rounds against them: {', '.join(f'{means[0] / m:.2f}' for m in means)}")


def errors_of_methods(box, points, unit, queries, size, epsilon, run):
    """Mean relative error of each method and class of boxes, for a population."""
    random = np.random.default_rng([run, size, int(epsilon), 9])
    weight = random.multinomial(size, np.full(len(points), 1 / len(points)))
    drawn = weight > 0
    points, unit, weight = points[drawn], unit[drawn], weight[drawn]
    true, (x, y), boxes = true_counts(points, weight, queries), points.T, queries.boxes
    estimates = []
    for rounds in (4, 1, 7):
        first = design(box, epsilon, size, rounds=rounds)
        estimates.append(
            draw_campaign(first, x, y, weight, random).query(boxes, errors=False).arrays["estimate"]
        )
    corner, side = np.array(box[:2]), np.diff(np.reshape(box, (2, 2)), axis=0)[0]
    inside = (boxes - np.tile(corner, 2)) / np.tile(side, 2)
    estimates.append(
        uniform_grid(box, x, y, weight, epsilon, random)
        .query(boxes, errors=False)
        .arrays["estimate"]
    )
    estimates.append(size * answer(hdg(unit, weight, epsilon, random), inside))
    return [relative_errors(queries, estimate, true, size) for estimate in estimates]


def clipped_normal(generator, size):
    return np.clip(generator.normal(0.49, 0.3, size), 0, 1)


def two_peaks(generator, size):
    first = generator.random(size) < 0.5
    return np.where(first, generator.normal(0.35, 0.05, size), generator.normal(0.75, 0.08, size))


def beta(generator, size):
    return generator.beta(0.6, 6, size)


SHAPES = {"clipped normal": clipped_normal, "two peaks": two_peaks, "beta(.6, 6)": beta}


def measure_numbers(shape, devices, epsilon, seed):
    """Error of intervals and coverage of bins, of one run."""
    generator = np.random.default_rng(seed)
    values = np.clip(SHAPES[shape](generator, devices), 0, 1)
    steps = np.bincount(np.rint(values * (device.STEPS - 1)).astype(int), minlength=device.STEPS)
    matrix = protocol_class("square-wave").best(epsilon * device.NANO).matrix()
    draws = [generator.multinomial(n, row) for n, row in zip(steps, matrix, strict=True) if n]
    counts = np.sum(draws, axis=0)
    shares, errors = estimate_distribution(matrix, counts)
    true = steps.reshape(BINS, -1).sum(axis=1) / devices
    covered = (np.abs(shares - true) <= 1.96 * errors).mean()
    ends = np.sort(generator.integers(0, BINS + 1, (1000, 2)), axis=1)
    wrong = np.concatenate([[0], np.cumsum(shares - true)])
    return np.abs(wrong[ends[:, 1]] - wrong[ends[:, 0]]).mean() * 1e3, covered


def numbers(options):
    """Errors of distributions of numbers."""
    rows = []
    for shape in SHAPES:
        for devices in options.devices or (10**4, 10**5):
            for epsilon in options.epsilons or (1, 4):
                results = [
                    measure_numbers(shape, devices, epsilon, seed) for seed in range(options.runs)
                ]
                error, covered = np.mean(results, axis=0)
                rows.append((shape, f"{devices:,}", f"{epsilon}", f"{error:.1f}", f"{covered:.2f}"))
    header = ("numbers", "devices", "epsilon", "error of an interval, 1e-3", "coverage of bins")
    print(table(header, rows), end="")


def main():
    parser = study(__doc__, runs=6)
    add_sets(parser, "seoul,city-towns,city-streets")
    parser.add_argument("what", choices=["speed", "accuracy", "peers", "numbers"])
    parser.add_argument("--reports", type=int, default=10_000_000, help="of the speed")
    parser.add_argument("--devices", type=whole_numbers, help="[1e4,1e5,1e6]")
    parser.add_argument("--epsilons", type=whole_numbers, help="[1,2,4]")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--shrink", type=float, default=1, help="of the points, for the peers")
    options = parser.parse_args()
    parts = {"speed": speed, "accuracy": accuracy, "peers": peers, "numbers": numbers}
    parts[options.what](options)


if __name__ == "__main__":
    main()
