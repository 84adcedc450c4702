"""Design a campaign that asks for an option, a number or a word, in one round and one group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from psd._util.declared_parameters import integer_between
from psd.apps.local.campaigns import campaign_of
from psd.apps.local.device import (
    NANO,
    NUMBER_EPSILON,
    QUESTIONS,
    SHARES,
    STEPS,
    Campaign,
    RapporDraw,
)
from psd.apps.local.protocols import best_protocol, protocol_class, protocol_content
from psd.apps.local.protocols.rappor import Rappor
from psd.errors import ParameterError
from psd.privacy.loss import parse_decimal, parse_epsilon

_MAX_DEVICES = 10**12


def design_options(
    options: Sequence[str],
    epsilon: str | float | None,
    devices: int,
    *,
    title: str = "",
    protocol: str | None = None,
    settings: Mapping[str, int | str] | None = None,
) -> Campaign:
    """Design a campaign that asks for one of a list of options, or *none of these*.

    Parameters
    ----------
    options : sequence of str
        Answers; *none of these* is one more. Public, never derived from the answers.
    epsilon : str or float, optional
        Epsilon of a report. None if settings state its law in place of it.
    devices : int
        Expected number of devices.
    title : str
        What people read about the campaign.
    protocol : str, optional
        Protocol; the one with the least variance by default.
    settings : mapping, optional
        Settings of the protocol in place of the best ones. Epsilon follows from probabilities, in
        decimals: from ``truth`` of ``k-ary``, that of the true answer; or from ``p`` and ``q`` of
        ``rappor``, those of a 1 for a settled 0 and for a settled 1, with ``flips``.

    Raises
    ------
    ParameterError
        If an argument is not valid.

    Examples
    --------
    >>> campaign = design_options(["yes"], None, 1000, protocol="k-ary", settings={"truth": "0.75"})
    >>> campaign.nano_epsilon  # ln 3
    1098612289
    """
    if not options:
        raise ParameterError("options must be at least one, got none", name="options")
    answers = len(options) + 1
    nano, stated = resolve_law(epsilon, protocol, settings, answers=answers)
    content = protocol_content(best_protocol(nano, answers, protocol), stated)
    return _campaign("options", list(options), content, nano, devices, title)


def design_numbers(
    low: float,
    high: float,
    epsilon: str | float,
    devices: int,
    *,
    title: str = "",
    protocol: str | None = None,
    settings: Mapping[str, int | str] | None = None,
) -> Campaign:
    """Design a campaign that asks for a number in a range of 1,024 steps.

    Parameters
    ----------
    low, high : float
        Ends of the range. Public, never derived from the numbers; a number beyond an end counts
        as the end.
    epsilon : str or float
        Epsilon of a report, from 0.001 to 12.
    devices : int
        Expected number of devices.
    title : str
        What people read about the campaign.
    protocol : str, optional
        ``square-wave`` for a distribution, the default; ``duchi``, ``piecewise`` or ``hybrid`` for
        a mean; ``bounded-laplace``, ``staircase`` or ``bounded-staircase`` for single values.
    settings : mapping, optional
        Settings of the protocol in place of the best ones.

    Raises
    ------
    ParameterError
        If an argument is not valid.

    Examples
    --------
    >>> design_numbers(0, 100, 1, 10_000).groups[0].draw.window
    524
    """
    name = protocol or "square-wave"
    if name not in QUESTIONS["numbers"][1]:
        protocol_class(name)  # refuses a name that there is not
        raise ParameterError(f"protocol must be of numbers, got {name}, which is of answers")
    nano = parse_epsilon(epsilon)
    if not NUMBER_EPSILON[0] <= nano <= NUMBER_EPSILON[1]:
        raise ParameterError(
            f"epsilon must be from 0.001 to 12 for a number, got {epsilon}", name="epsilon"
        )
    content = protocol_content(protocol_class(name).best(nano, STEPS), settings or {})
    ends = [repr(float(low)), repr(float(high))]
    return _campaign("numbers", ends, content, nano, devices, title)


def design_words(
    epsilon: str | float | None,
    devices: int,
    *,
    title: str = "",
    protocol: str | None = None,
    settings: Mapping[str, int | str] | None = None,
) -> Campaign:
    """Design a campaign that asks for a word, of which no list exists before it is reported.

    Parameters
    ----------
    epsilon : str or float, optional
        Epsilon of a report. None if the settings ``p``, ``q`` and ``flips`` state its law.
    devices : int
        Expected number of devices.
    title : str
        What people read about the campaign.
    protocol : str, optional
        ``rappor``, which is the only one of words.
    settings : mapping, optional
        ``bits``, ``hashes`` and ``cohorts`` of the words, and ``flips`` of 128 settled bits. By
        default 128 bits, one hash and 16 cohorts, which tell up to 2,048 words apart, and as many
        flips as let all reports of a device cost at most four times epsilon. ``p`` and ``q``, in
        decimals, are the probabilities of a 1 for a settled 0 and for a settled 1; epsilon follows
        from them and from ``flips``.

    Raises
    ------
    ParameterError
        If an argument is not valid.

    Examples
    --------
    >>> design_words(1, 10_000, settings={"bits": 64}).groups[0].draw.answers
    64
    >>> law = {"hashes": 2, "flips": 64, "p": "0.5", "q": "0.75"}
    >>> design_words(None, 10_000, settings=law).nano_epsilon
    1074285865
    """
    name = protocol or "rappor"
    if name not in QUESTIONS["words"][1]:
        protocol_class(name)  # refuses a name that there is not
        raise ParameterError(f"protocol must be of words, got {name}; use rappor")
    nano, stated = resolve_law(epsilon, name, settings)
    hashes = stated.get("hashes", 1)
    is_valid = isinstance(hashes, int) and 1 <= hashes <= 16
    best = Rappor.of_words(nano, hashes=int(hashes) if is_valid else 1)
    return _campaign("words", [], protocol_content(best, stated), nano, devices, title)


def parse_settings(texts: Sequence[str]) -> dict[str, int | str]:
    """Settings of texts ``name=value``; integers are read as integers."""
    settings: dict[str, int | str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value) or name in settings:
            raise ParameterError("set must be NAME=VALUE, each name once", name="set")
        is_integer = value.isascii() and value.isdigit() and len(value) < 10
        settings[name] = int(value) if is_integer else value
    return settings


def _campaign(
    question: str,
    cells: list[str],
    protocol: dict[str, Any],
    nano: int,
    devices: int,
    title: str,
) -> Campaign:
    """Campaign of one group."""
    count = integer_between(1, _MAX_DEVICES)("devices", devices)
    group = {"share": SHARES, "cells": cells, "protocol": protocol, "counted": None}
    return campaign_of(
        {
            "psd-campaign": 1,
            "question": question,
            "title": title,
            "domain": None,
            "nano_epsilon": nano,
            "devices": count,
            "groups": [group],
            "earlier": [],
        }
    )


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
