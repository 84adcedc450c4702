"""``--delta`` and ``--noise``: the law of the noise, and the probability that one of them needs."""

from __future__ import annotations

import click

from ..options.command import chain_options, options_of

__all__ = ["noise_options"]

_option = options_of("Release")

noise_options = chain_options(
    _option(
        "--delta",
        metavar="D",
        help="Probability with which the release may reveal more than epsilon allows, such as "
        "1e-6: far below one over the number of users, and below 1e-3. Only Gaussian noise spends "
        "it.",
    ),
    _option(
        "--noise",
        type=click.Choice(["auto", "laplace", "gaussian"]),
        help="Law of the noise. auto, the default: with --delta, a series of many slices has "
        "Gaussian noise if that is less; a single release has Laplace noise, which spends no "
        "delta. gaussian needs --delta.",
    ),
)
