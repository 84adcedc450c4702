"""psd check audit: attacks on builds of synthetic data, compared with their epsilon."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd.decompositions import methods

from ..options.command import INTEGER, NUMBER, Command, parse_settings
from ..options.common import TABLE_OR_JSON
from ..output.tables import Column, print_columns
from ..output.terminal import show_stage

if TYPE_CHECKING:
    from psd.apps.auditing.attacks import Audit, Plot


@click.command("audit", cls=Command, short_help="Attack builds of synthetic data.")
@click.option("--method", required=True, type=click.Choice(methods()), help="Method to audit.")
@click.option(
    "--epsilon", required=True, help="Epsilon of each build; attacks are strongest at 1 to 2."
)
@click.option(
    "--delta",
    metavar="D",
    help="Audit builds with Gaussian noise of this delta, the probability with which a build may "
    "reveal more than epsilon allows.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Parameter of the method."
)
@click.option(
    "--unit",
    "kind",
    type=click.Choice(["record", "user"]),
    default="record",
    show_default=True,
    help="Unit of privacy: what is added or removed.",
)
@click.option(
    "--max-contributions",
    type=INTEGER,
    help="Largest number of records kept of each user; requires --unit user.",
)
@click.option(
    "--canaries",
    type=INTEGER,
    default=1024,
    show_default=True,
    help="Largest number of canaries in a build.",
)
@click.option(
    "--runs",
    type=INTEGER,
    default=32,
    show_default=True,
    help="Number of builds with canaries.",
)
@click.option(
    "--pairs",
    type=INTEGER,
    default=5_000,
    show_default=True,
    help="Number of small trees of each of two neighbouring data sets; 0 omits this attack.",
)
@click.option(
    "--confidence",
    type=NUMBER,
    default=0.999,
    show_default=True,
    help="Joint confidence of all bounds.",
)
@click.option("--jobs", type=INTEGER, help="Parallel processes; one per processor by default.")
@TABLE_OR_JSON
def run_audit(
    method: str,
    epsilon: str,
    delta: str | None,
    settings: tuple[str, ...],
    kind: str,
    max_contributions: int | None,
    form: str,
    jobs: int | None,
    **sizes: Any,
) -> None:
    """Attack builds of synthetic data, and compare the measured privacy loss with epsilon.

    Canaries are records, or users, of which each is in the data with probability 1/2. An attacker
    who knows all other data guesses from the release files of `psd build` which of them are in
    it. Pairs are small trees of two neighbouring data sets. The successes of an attack give a
    lower bound on epsilon, which holds with the stated confidence. If it exceeds the epsilon of
    the build, the exit code is 10. The column `expected` is what the attack measures on a correct
    build; a bound far below it shows that the attack failed. With --delta, builds have Gaussian
    noise, and the bound is one on epsilon at this delta. No real data are read.

    \b
    Examples:
      psd check audit --method quadtree --epsilon 1
      psd check audit --method quadtree --epsilon 1 --delta 1e-6
      psd check audit --method kd-standard --epsilon 2 --set height=1 --set structure_share=0.9
      psd check audit --method grid --epsilon 1 --unit user --max-contributions 4 --format json
    """  # noqa: D301
    from psd._util.processes import available_processors
    from psd.apps.auditing.attacks import audit
    from psd.decompositions import method as method_by_name
    from psd.errors import AuditError
    from psd.privacy.unit import PrivacyUnit

    if (kind == "user") != (max_contributions is not None):
        raise click.UsageError("--unit user and --max-contributions must be given together")
    unit = PrivacyUnit()
    if max_contributions is not None:
        unit = PrivacyUnit(kind="user", max_contributions=max_contributions)
    decomposition = method_by_name(method, parse_settings(settings))
    law = [] if delta is None else ["--delta", delta, "--noise", "gaussian"]
    words = [*law, "--method", method, *(word for text in settings for word in ("--set", text))]
    with show_stage() as stage:
        outcome = audit(
            decomposition,
            epsilon,
            delta=delta,
            unit=unit,
            jobs=available_processors() if jobs is None else jobs,
            make=_by_command(epsilon, words),
            progress=stage,
            **sizes,
        )
    click.echo(_as_json(outcome)) if form == "json" else _print_audit(outcome)
    if outcome.failed:
        raise AuditError(f"{method} is {outcome.sentence}")


def _by_command(epsilon: str, words: list[str]) -> Callable[[Plot], Callable[[Path, Path], None]]:
    """Builds by the command `psd build`."""
    from ..main import cli

    def bind_plot(plot: Plot) -> Callable[[Path, Path], None]:
        args = ["--epsilon", epsilon, "--crs", "EPSG:3857", *words]
        args += ["--bounds", *(f"{edge:g}" for edge in plot.bounds)]
        if plot.unit.has_user:
            args += ["--user", "user", "--max-contributions", str(plot.unit.max_contributions)]

        def build_release(rows: Path, release: Path) -> None:
            with redirect_stdout(io.StringIO()):
                cli.main(["build", str(rows), "-o", str(release), *args], standalone_mode=False)

        return build_release

    return bind_plot


def _as_json(outcome: Audit) -> str:
    """The audit as an object."""
    from psd.privacy.loss import delta_text, epsilon_text

    def finite_or_none(value: object) -> object:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    rows = [{**dataclasses.asdict(f), "verdict": f.verdict} for f in outcome.results]
    content = {
        "method": outcome.method,
        "epsilon": epsilon_text(outcome.loss.epsilon),
        "delta": None if outcome.loss.delta is None else delta_text(outcome.loss.delta),
        "unit": outcome.unit.guarantee_text,
        "confidence": outcome.confidence,
        "lower": outcome.lower,
        "expected": outcome.expected,
        "reach": outcome.reach,
        "rho": finite_or_none(outcome.rho),
        "failed": outcome.failed,
        "outcome": outcome.sentence,
        "findings": [{name: finite_or_none(v) for name, v in row.items()} for row in rows],
    }
    return json.dumps(content, indent=2, allow_nan=False)


def _print_audit(outcome: Audit) -> None:
    """The audit as a table, and its outcome."""
    rows, is_pure = [], outcome.loss.is_pure
    for row in outcome.results:
        figures = (row.seen, row.lower, row.upper, row.expected, row.proved)[: 5 - is_pure]
        shown = ("-" if math.isnan(figure) else f"{figure:.3f}" for figure in figures)
        rows.append((row.attack, f"{row.samples:,}", *shown, row.verdict))
    proved = () if is_pure else ("at delta",)
    headings = ("attack", "samples", "seen", "lower", "upper", "expected", *proved, "verdict")
    columns = []
    for heading, values in zip(headings, zip(*rows, strict=True), strict=True):
        words = heading in ("attack", "verdict")
        columns.append(Column(heading=heading, values=list(values), left=words, folds=words))
    print_columns(columns)
    if outcome.reach:
        click.echo(f"the attack on pairs of small trees can measure at most {outcome.reach:.3f}")
    if outcome.rho:
        click.echo(f"builds of small trees spend a rho of at most {outcome.rho:.6f}")
    if not is_pure:
        click.echo(f"claim: {outcome.loss.text}{outcome.loss.failure_note}")
    click.echo(
        f"confidence {outcome.confidence:g}, {outcome.unit.guarantee_text}: {outcome.sentence}"
    )


COMMANDS = {"check audit": run_audit}
