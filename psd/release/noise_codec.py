"""The noise of the counts in the header of a release file."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from psd._util import plugins
from psd.errors import ParameterError
from psd.privacy.count_noise import CountNoise
from psd.privacy.delta import delta_text, parse_delta
from psd.privacy.loss_measure import RHO
from psd.privacy.noise_laws import noise_law

if TYPE_CHECKING:
    from psd.release.record import ReleaseRecord

__all__ = ["is_factor", "is_noise", "noise_fields", "noise_header"]

_NAMES: Final = {"law", "squared_sensitivity", "factor", "rho", "delta"}
_LAWS: Final = "psd.privacy.noise_laws"
_LARGEST: Final = 2**62

# Neither has an exponent: a few characters would state a number that takes minutes to compute.
_FRACTION: Final = re.compile(r"[0-9]+(/[0-9]+)?")
_DECIMAL: Final = re.compile(r"[0-9]+(\.[0-9]+)?")


def noise_header(record: ReleaseRecord) -> dict[str, Any] | None:
    """JSON value of the noise of a record; None for noise that follows from its unit and epsilon.

    Parameters
    ----------
    record : ReleaseRecord
        A release.
    """
    noise = record.tree.noise
    if noise == CountNoise.laplace(record.unit.contributions):
        return None
    return {
        "law": noise.law,
        "squared_sensitivity": noise.squared_sensitivity,
        "factor": str(noise.factor),
        "rho": None if record.rho is None else RHO.text(record.rho),
        "delta": None if record.delta is None else delta_text(record.delta),
    }


def is_noise(value: object) -> bool:
    """Whether a JSON value is null, or noise of a law of this library in canonical texts.

    Rho and delta stand where the law counts losses in rho, and nowhere else. Whether rho is at most
    what epsilon and delta allow is checked by `psd.release.record.ReleaseRecord`.
    """
    if value is None:
        return True
    if not isinstance(value, dict) or value.keys() != _NAMES:
        return False
    if not isinstance(value["law"], str) or value["law"] not in plugins.own_names(_LAWS):
        return False
    squared, is_pure = value["squared_sensitivity"], noise_law(value["law"]).measure.is_pure
    return (
        type(squared) is int
        and 0 < squared <= _LARGEST
        and is_factor(value["factor"])
        and (value["rho"] is None if is_pure else _is_rho(value["rho"]))
        and (value["delta"] is None if is_pure else _is_delta(value["delta"]))
    )


def noise_fields(value: dict[str, Any] | None) -> dict[str, Any]:
    """Noise, rho and delta of a header that `is_noise` accepted.

    The noise is discrete Laplace noise of sensitivity 1 where none is stated; a record gives it the
    sensitivity of its unit.
    """
    if value is None:
        return {"noise": CountNoise(), "rho": None, "delta": None}
    noise = CountNoise(
        law=value["law"],
        squared_sensitivity=value["squared_sensitivity"],
        factor=Fraction(value["factor"]),
    )
    if noise.measure.is_pure:
        return {"noise": noise, "rho": None, "delta": None}
    return {"noise": noise, "rho": _rho_of(value["rho"]), "delta": parse_delta(value["delta"])}


def _rho_of(text: str) -> int:
    """Rho in units of 1e-12."""
    return int(Decimal(text) * RHO.parts)


def is_factor(value: Any) -> bool:
    """Whether a value is the text of a fraction in lowest terms, above 0."""
    if not (_is_short(value) and _FRACTION.fullmatch(value)):
        return False
    try:
        return str(Fraction(value)) == value and Fraction(value) > 0
    except ZeroDivisionError:
        return False


def _is_rho(value: Any) -> bool:
    """Whether a value is the text of a rho of whole parts, above 0."""
    if not (_is_short(value) and _DECIMAL.fullmatch(value)):
        return False
    return RHO.text(_rho_of(value)) == value and Decimal(value) > 0


def _is_delta(value: Any) -> bool:
    """Whether a value is the text of a delta."""
    try:
        return _is_short(value) and delta_text(parse_delta(value)) == value
    except ParameterError:
        return False


def _is_short(value: Any) -> bool:
    """Whether a value is a text of at most 40 characters of a number."""
    return isinstance(value, str) and 0 < len(value) <= 40 and value.isascii()
