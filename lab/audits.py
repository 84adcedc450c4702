"""What audits of every method see: lower bounds on epsilon, beside what they ought to see.

    python lab/audits.py [--methods A,B] [--epsilon 1] [--pairs 5000]
        [-o docs/measured/audit-table.md]

Each line is one run of the command that its first column stands for. Exits with 1 if an audit
fails. No data are read, so nothing is spent.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import psd

INTRODUCTION = """# Audit table

Made by `{command}` (psd {version}).

Each row is `psd audit --method METHOD --epsilon {epsilon} --pairs {pairs}`, with `--unit user
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
    words = ["audit", "--method", method, "--epsilon", options.epsilon, "--format", "json"]
    words += ["--pairs", str(options.pairs), *(USER if user else ())]
    ended = subprocess.run(
        [sys.executable, "-m", "psd_cli", *words], capture_output=True, text=True, check=False
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


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", default=",".join(psd.methods()), help="audited")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--pairs", type=int, default=5_000)
    parser.add_argument("-o", "--output", type=Path, help="page to write instead of printing it")
    options = parser.parse_args()
    lines, failed = [HEADS, ("---",) * len(HEADS)], False
    for method in options.methods.split(","):
        for user in (False, True):
            found = audited(method, user, options)
            failed |= found["failed"]
            lines.append(row(method, user, found))
            print(*lines[-1], file=sys.stderr, flush=True)
    text = INTRODUCTION.format(
        command=shlex.join(["python", "lab/audits.py", *sys.argv[1:]]),
        version=psd.__version__,
        epsilon=options.epsilon,
        pairs=f"{options.pairs}",
    ) + "".join(f"| {' | '.join(line)} |\n" for line in lines)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    sys.exit(failed)


if __name__ == "__main__":
    main()
