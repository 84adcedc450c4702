"""psd ledger account: what several spendings on the same people cost together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from ..options.command import Command, split_commas
from ..options.common import TABLE_OR_JSON
from ..output.tables import print_facts

if TYPE_CHECKING:
    from psd.accounting import Composition


MOST_TIMES = 10**9
LEAST_MULTIPLIER, LARGEST_MULTIPLIER = Fraction(1, 100), Fraction(10**9)


@click.command("account", cls=Command, short_help="Add up several spendings.")
@click.option(
    "--delta",
    required=True,
    metavar="D",
    help="Probability with which the spendings together may reveal more than epsilon allows: above "
    "0, below 0.001, far below one over the number of people.",
)
@click.option(
    "--pure",
    multiple=True,
    metavar="EPSILON[xTIMES]",
    help="Releases and answers of pure epsilon; may be repeated.",
)
@click.option(
    "--gaussian",
    multiple=True,
    metavar="MULTIPLIER[xTIMES]",
    help="Gaussian noise of a standard deviation of MULTIPLIER times the L2 sensitivity; may be "
    "repeated.",
)
@click.option(
    "--sampled",
    multiple=True,
    metavar="RATE,MULTIPLIER,STEPS",
    help="Gaussian noise on a new random sample of the people in each step, as in DP-SGD; RATE is "
    "the probability of a person. May be repeated.",
)
@click.option(
    "--tree",
    multiple=True,
    metavar="STEPS,MULTIPLIER",
    help="Running totals over steps by a binary tree of Gaussian sums, each person in one step, "
    "as in DP-FTRL; may be repeated.",
)
@TABLE_OR_JSON
def account(
    delta: str,
    pure: tuple[str, ...],
    gaussian: tuple[str, ...],
    sampled: tuple[str, ...],
    tree: tuple[str, ...],
    form: str,
) -> None:
    """Add up what several spendings on the same people cost together.

    Reads no data and no ledger. The smallest of up to three bounds holds. The pure epsilons are
    added, and the epsilon of all other spendings. Or the rhos of all spendings are added (zero-
    concentrated differential privacy, at the orders of a table where people are sampled). Or, with
    the extra account and a delta of at least 1e-9, the laws of the privacy losses of pure and
    sampled spendings are composed by dp-accounting. All numbers are rounded up. The spendings may
    follow from earlier answers, but which and how many there are must be fixed beforehand. RATE and
    MULTIPLIER are those of continuous noise in --sampled; --gaussian and --tree hold for discrete
    noise too.

    \b
    Examples:
      psd ledger account --delta 1e-6 --pure 0.1x52
      psd ledger account --delta 1e-5 --sampled 0.01,1,1000
      psd ledger account --delta 1e-6 --pure 0.1x52 --gaussian 5x10 \\
          --sampled 0.01,1,1000 --tree 365,10
    """  # noqa: D301
    from psd.accounting import Composition, SampledGaussian, gaussian_rho, tree_rho
    from psd.privacy.loss import delta_text, parse_decimal, parse_delta, parse_epsilon

    if not (pure or gaussian or sampled or tree):
        raise click.UsageError(
            "at least one of --pure, --gaussian, --sampled and --tree must be given"
        )
    parsed = parse_delta(delta)
    epsilons: list[tuple[int, int]] = []
    samples: list[SampledGaussian] = []
    rho = 0
    for text in pure:
        rule = "EPSILON or EPSILONxTIMES, such as 0.1x52"
        epsilon, times = _repeated("--pure", text, rule)
        with _named("--pure"):
            epsilons.append((parse_epsilon(epsilon), times))
    for text in gaussian:
        rule = "MULTIPLIER or MULTIPLIERxTIMES, such as 5x10"
        multiplier, times = _repeated("--gaussian", text, rule)
        rho += times * gaussian_rho(_multiplier("--gaussian", multiplier))
    for text in tree:
        steps, multiplier = _parts("--tree", text, 2, "STEPS,MULTIPLIER, such as 365,10")
        rho += tree_rho(_times("--tree", steps), _multiplier("--tree", multiplier))
    for text in sampled:
        rule = "RATE,MULTIPLIER,STEPS, such as 0.01,1,1000"
        rate, multiplier, steps = _parts("--sampled", text, 3, rule)
        with _named("--sampled"):
            samples.append(
                SampledGaussian(
                    rate=Fraction(parse_decimal("rate", rate)),
                    multiplier=_multiplier("--sampled", multiplier),
                    steps=_times("--sampled", steps),
                )
            )
    together = Composition.of(parsed, pure=epsilons, rho=rho, samples=samples)
    facts = _facts(together, delta_text(parsed), has_samples=bool(sampled))
    if form == "json":
        click.echo(json.dumps(facts, indent=2))
    else:
        print_facts(facts)


def _facts(together: Composition, delta: str, *, has_samples: bool) -> dict[str, str]:
    """What is printed, by its name."""
    from psd.privacy.loss import epsilon_text, rho_text

    bounds = {"epsilons added": together.added, "rhos added": together.converted}
    if together.composed is not None:
        bounds["losses composed"] = together.composed
    return {
        "epsilon": epsilon_text(together.epsilon),
        "delta": delta,
        "smallest_bound": min(bounds, key=lambda name: bounds[name]),
        **{name.replace(" ", "_"): epsilon_text(value) for name, value in bounds.items()},
        "rho": rho_text(together.rho),
        "rho_is_of": "all but the sampled spendings" if has_samples else "all spendings",
        "meaning": f"with a probability of at most {delta}, these spendings together may reveal "
        "more of a person than epsilon says",
    }


@contextmanager
def _named(option: str) -> Iterator[None]:
    """Name the option in front of a refusal of one of its numbers."""
    from psd.errors import ParameterError

    try:
        yield
    except ParameterError as error:
        raise click.UsageError(f"{option}: {error}") from error


def _repeated(option: str, text: str, rule: str) -> tuple[str, int]:
    """Number and times of a text; once if no times are named."""
    number, sign, times = text.lower().partition("x")
    if not number.strip() or (sign and not times.strip()):
        raise click.UsageError(f"{option} must be {rule}, got {text!r}")
    return number.strip(), _times(option, times.strip()) if sign else 1


def _parts(option: str, text: str, number: int, rule: str) -> Sequence[str]:
    """Parts of a text with commas."""
    parts = split_commas(text)
    if len(parts) != number:
        raise click.UsageError(f"{option} must be {rule}, got {text!r}")
    return parts


def _times(option: str, text: str) -> int:
    """A number of spendings or steps."""
    if not re.fullmatch(r"\d{1,10}", text, re.ASCII) or not 1 <= int(text) <= MOST_TIMES:
        raise click.UsageError(
            f"{option} must have a whole number of times or steps from 1 to {MOST_TIMES:,}, got "
            f"{text!r}"
        )
    return int(text)


def _multiplier(option: str, text: str) -> Fraction:
    """A standard deviation over a sensitivity."""
    from psd.privacy.loss import parse_decimal

    with _named(option):
        multiplier = Fraction(parse_decimal("multiplier", text))
    if not LEAST_MULTIPLIER <= multiplier <= LARGEST_MULTIPLIER:
        raise click.UsageError(
            f"{option} must have a multiplier from {float(LEAST_MULTIPLIER)} to "
            f"{int(LARGEST_MULTIPLIER):,}, got {text}"
        )
    return multiplier
