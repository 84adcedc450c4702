"""Laws that settings state by probabilities, from which the epsilon of a report follows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from psd._util.declared_parameters import integer_between
from psd.apps.local.device import NANO, RapporDraw
from psd.errors import ParameterError
from psd.privacy.loss import parse_decimal, parse_epsilon


def resolve_law(
    epsilon: str | float | None,
    protocol: str | None,
    settings: Mapping[str, Any] | None,
    *,
    answers: int | None = None,
) -> tuple[int, dict[str, Any]]:
    """Nano-epsilon of a report, by epsilon or settings in its place, and the settings as stated."""
    stated = dict(settings or {})
    if "truth" in stated:
        return _epsilon_of_truth(epsilon, protocol, stated.pop("truth"), answers), stated
    if "p" in stated or "q" in stated:
        return _law_of_bits(epsilon, protocol, stated)
    if epsilon is None:
        raise ParameterError(
            "epsilon must be given, or settings in its place: p, q and flips of protocol rappor, "
            "or for options truth of protocol k-ary",
            name="epsilon",
        )
    return parse_epsilon(epsilon), stated


def _epsilon_of_truth(
    epsilon: str | float | None, protocol: str | None, truth: Any, answers: int | None
) -> int:
    """Nano-epsilon of a true answer with a probability, and of the others with equal ones."""
    if epsilon is not None or protocol != "k-ary":
        raise ParameterError("truth must be in place of epsilon, with protocol k-ary", name="truth")
    if answers is None:
        raise ParameterError("truth must be of a campaign that asks for options", name="truth")
    try:
        chance = Decimal(str(truth))
    except InvalidOperation:
        chance = Decimal("NaN")
    if not (chance.is_finite() and Decimal(1) / answers < chance < 1):
        raise ParameterError(
            f"truth must be above 1/{answers} and below 1, got {truth}; at 1/{answers} a report "
            "says nothing, and at 1 it is not private",
            name="truth",
        )
    odds = chance * (answers - 1) / (1 - chance)
    return math.ceil(odds.ln() * NANO)


def _law_of_bits(
    epsilon: str | float | None, protocol: str | None, stated: dict[str, Any]
) -> tuple[int, dict[str, Any]]:
    """Least nano-epsilon of a report by p and q, and the settings with both out of 10^9."""
    if epsilon is not None or protocol != "rappor":
        raise ParameterError("p and q must be in place of epsilon, with protocol rappor", name="p")
    missing = [name for name in ("p", "q", "flips") if name not in stated]
    if missing:
        raise ParameterError(
            f"p, q and flips must be given together, got no {missing[0]}; flips is 128 times the f "
            "of RAPPOR",
            name=missing[0],
        )
    # Nine decimals, as epsilon has: they hold each multiple of 1/256, which clients have.
    rates = {name: Fraction(parse_decimal(name, stated[name])) * NANO for name in ("p", "q")}
    for name, rate in rates.items():
        if not 0 < rate < NANO or rate.denominator != 1:
            raise ParameterError(
                f"{name} must be above 0 and below 1, with at most nine decimals, got "
                f"{stated[name]}",
                name=name,
            )
    p, q = rates["p"].numerator, rates["q"].numerator
    if p >= q:
        raise ParameterError(
            f"p must be below q, got {stated['p']} and {stated['q']}; p is the probability of a 1 "
            "for a settled 0, and q for a settled 1",
            name="p",
        )
    flips = integer_between(1, 127)("flips", stated["flips"])
    hashes = integer_between(1, 16)("hashes", stated.get("hashes", 1))
    draw = RapporDraw(0, 2 * hashes, "bloom", flips, hashes, p=p, q=q)
    return draw.once, {**stated, "p": p, "q": q}
