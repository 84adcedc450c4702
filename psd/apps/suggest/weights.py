"""The file of shared weights: strict JSON, public, checked on reading."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass

from psd._util.atomic_write import write_file
from psd._util.strict_json import strict_json
from psd.apps.suggest.models import CELLS, FEATURES, RegionGrid
from psd.errors import ParameterError, ReleaseFormatError
from psd.privacy.loss import parse_delta, parse_epsilon

__all__ = ["SharedWeights", "read_weights", "write_weights"]

_FORMAT = 1
_LONGEST = 2**16
_DIGEST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWeights:
    """Shared weights, with the promise under which they were learnt. Public.

    Guarantees
    ----------
    - The fields are noisy answers and public parameters, and there are no others.

    Parameters
    ----------
    weights : dict of float
        Weight of each of `psd.apps.suggest.FEATURES`.
    release : str
        Digest of the release whose density and area they belong to.
    cells : int
        Regions in a row and in a column of its area.
    epsilon, delta : str
        What they cost, for adding or removing one user.
    max_contributions : int
        Largest number of records of a user that were read.
    ledger, charge : str, optional
        Random ids of the ledger and of the charge that paid.

    Raises
    ------
    ParameterError
        If a field is malformed.
    """

    weights: dict[str, float]
    release: str
    cells: int
    epsilon: str
    delta: str
    max_contributions: int
    ledger: str | None = None
    charge: str | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        if not isinstance(self.weights, dict) or tuple(self.weights) != FEATURES:
            raise ParameterError(f"weights must be those of {', '.join(FEATURES)}, in this order")
        if not all(isinstance(weight, float) for weight in self.weights.values()):
            raise ParameterError("weights must be numbers with a decimal point")
        if not all(math.isfinite(weight) for weight in self.weights.values()):
            raise ParameterError("weights must be finite")
        if not _is_text(self.release, _DIGEST) or len(self.release) != _DIGEST:
            raise ParameterError("release must be a digest of 64 hexadecimal digits")
        for name in ("ledger", "charge"):
            if getattr(self, name) is not None and not _is_text(getattr(self, name), _DIGEST):
                raise ParameterError(f"{name} must be the random id of a ledger")
        CELLS("cells", self.cells)
        if not isinstance(self.epsilon, str) or not isinstance(self.delta, str):
            raise ParameterError("epsilon and delta must be texts")
        parse_epsilon(self.epsilon)
        parse_delta(self.delta)
        if type(self.max_contributions) is not int or self.max_contributions < 1:
            raise ParameterError("max_contributions must be an integer of at least 1")

    def check_grid(self, grid: RegionGrid) -> None:
        """Refuse a release that the weights were not learnt with.

        Raises
        ------
        ParameterError
            If its digest is another one.
        """
        if grid.digest != self.release:
            raise ParameterError(
                f"release must be the one that the weights were learnt with, of digest "
                f"{self.release[:16]}..., got {grid.digest[:16]}...; is it of another area or date?"
            )


def write_weights(
    weights: SharedWeights, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a file of weights, whole or not at all."""
    stated = {name: value for name, value in asdict(weights).items() if value is not None}
    text = json.dumps({"psd_weights": _FORMAT, **stated}, indent=1, allow_nan=False) + "\n"
    write_file(path, text.encode(), overwrite=overwrite)


def read_weights(path: str | os.PathLike[str]) -> SharedWeights:
    """Read a file of weights, and check every field.

    Raises
    ------
    ReleaseFormatError
        If the file is missing, is not strict JSON, or has other fields or values than it may.
    """
    try:
        with open(path, "rb") as file:
            fields = strict_json(file.read(_LONGEST + 1), _LONGEST)
        if not isinstance(fields, dict) or fields.pop("psd_weights", None) != _FORMAT:
            raise ReleaseFormatError("psd_weights must be 1")
        optional = {"ledger", "charge"}
        required = set(SharedWeights.__dataclass_fields__) - optional
        if not required <= fields.keys() <= required | optional:
            raise ReleaseFormatError("it must have exactly the fields of format 1")
        return SharedWeights(**fields)
    except FileNotFoundError:
        raise ReleaseFormatError(
            f"{path} does not exist; `psd suggest train` writes a file of weights", path=path
        ) from None
    except OSError as error:
        reason = error.strerror or "cannot be read"
    except (ParameterError, ReleaseFormatError) as error:
        reason = str(error)
    raise ReleaseFormatError(f"{path} is not a file of weights: {reason}", path=path)


def _is_text(value: object, longest: int) -> bool:
    """Whether a value is a short text of hexadecimal digits."""
    return (
        isinstance(value, str) and 0 < len(value) <= longest and not value.strip("0123456789abcdef")
    )
