"""Design a campaign that asks for an option, a number or a word, in one round and one group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psd._util.declared_parameters import integer_between
from psd.apps.local.campaigns import campaign_of
from psd.apps.local.device import NUMBER_EPSILON, QUESTIONS, SHARES, STEPS, Campaign
from psd.apps.local.protocols import best_protocol, protocol_class, protocol_content
from psd.apps.local.protocols.rappor import Rappor
from psd.apps.local.stated_laws import resolve_law
from psd.errors import ParameterError
from psd.privacy.loss import parse_epsilon

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
