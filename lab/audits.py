"""What audits of every method see: lower bounds on epsilon, beside what they ought to see.

    python lab/audits.py [--methods A,B] [--epsilon 1] [--pairs 5000] [--jobs 2]
        [-o docs/measured/data/audits.csv]

Each line is one run of the command that its first column stands for. Exits with 1 if an audit
fails. No data are read, so nothing is spent.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from common import environment, study, write_page

import psd

INTRODUCTION = """# Audit table

Made by `{command}` (psd {version}).

Each row is `psd check audit --method METHOD --epsilon {epsilon} --pairs {pairs}`, with `--unit user
--max-contributions 4` where the unit is a user. The columns of canaries and pairs have the lower
bound on epsilon and, after the slash, what this attack would see of a sound build; for pairs, the
better of the two directions. Reach is the largest loss of a pair of builds that was met, by the
law of the draws; a reach below {epsilon} is not a fault of an audit. All bounds of a row hold
together with probability 99.9 %.

"""
HEADS = ("method", "unit", "canaries", "pairs", "reach", "outcome")
USER = ("--unit", "user", "--max-contributions", "4")


def audited(method: str, user: bool, options: argparse.Namespace) -> dict[str, Any]:
    """What the command says."""
    words = ["check", "audit", "--method", method, "--epsilon", options.epsilon, "--format", "json"]
    words += ["--pairs", str(options.pairs), "--jobs", str(options.jobs), *(USER if user else ())]
    ended = subprocess.run(
        [sys.executable, "-m", "psd_cli", *words],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def row(method: str, user: bool, found: dict[str, Any]) -> tuple[str, ...]:
    """One line of the table."""
    first, *pairs = found["findings"]
    best = max(pairs, key=lambda finding: finding["lower"])
    outcome = found["outcome"].split(":")[0]
    unit = "user" if user else "record"
    return (method, unit, shown(first), shown(best), f"{found['reach']:.2f}", outcome)


def shown(finding: dict[str, Any]) -> str:
    """Bound and expectation of an attack."""
    expected = finding["expected"]
    return f"{finding['lower']:.2f} / {'-' if expected is None else f'{expected:.2f}'}"


def rows(options: argparse.Namespace, failed: list[bool]) -> Iterator[tuple[str, ...]]:
    """Two rows for each method; and whether each failed."""
    for method in options.methods:
        for user in (False, True):
            found = audited(method, user, options)
            failed.append(found["failed"])
            yield row(method, user, found)


def main() -> None:
    parser = study(__doc__, methods=",".join(psd.methods()), jobs=2)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--pairs", type=int, default=5_000)
    options = parser.parse_args()
    failed: list[bool] = []
    values = {"epsilon": options.epsilon, "pairs": options.pairs}
    write_page(options.output, INTRODUCTION, HEADS, rows(options, failed), **values)
    sys.exit(any(failed))


if __name__ == "__main__":
    main()
