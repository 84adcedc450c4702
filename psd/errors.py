"""The errors of the library, and its warning; the command line turns each kind into an exit code.

A message is a sentence that names the argument, the value (never private data) and the likely
cause; so do attributes. A builtin error that fits is a second base, for ``except ValueError``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from decimal import Decimal

__all__ = [
    "AuditError",
    "BudgetError",
    "DomainError",
    "InputDataError",
    "InternalError",
    "LedgerError",
    "MissingExtraError",
    "ParameterError",
    "PsdError",
    "PsdWarning",
    "RandomnessError",
    "ReleaseFormatError",
    "ResourceError",
    "WriteError",
]


class PsdError(Exception):
    """Base class of all errors of the library; never raised itself.

    Guarantees
    ----------
    - Neither the message nor an attribute holds private data.

    Parameters
    ----------
    *message
        One sentence.
    **about
        Attributes that the class of the error has; the others are None.

    Examples
    --------
    >>> import psd
    >>> try:
    ...     psd.decompositions.method("quadtree", {"height": "99"})
    ... except psd.errors.ParameterError as error:
    ...     error.name, error.value
    ('height', 99)
    """

    def __init__(self, *message: object, **about: object) -> None:
        super().__init__(*message)
        for name, value in about.items():
            if not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} has no attribute {name!r}")
            setattr(self, name, value)


class ParameterError(PsdError, ValueError):
    """A public parameter is missing, out of range or of the wrong kind.

    Attributes
    ----------
    name : str or None
        The parameter.
    value : object
        Its value, if it is a text or number that is public; else None.
    """

    name: str | None = None
    value: object = None


class DomainError(PsdError, ValueError):
    """Bounds or CRS are unusable, or geometries have no CRS.

    Attributes
    ----------
    name : {"bounds", "crs", "lattice", "coordinate_resolution", "min_cell"} or None
        The parameter.
    value : object
        Its value, if it is the parameter that is wrong; else None.
    """

    name: str | None = None
    value: object = None


class BudgetError(PsdError):
    """A question costs more epsilon than is left; nothing was drawn.

    Attributes
    ----------
    requested : Decimal or None
        Epsilon that the question costs.
    left : Decimal or None
        Epsilon that is left.
    """

    requested: Decimal | None = None
    left: Decimal | None = None


class AuditError(PsdError):
    """An audit has shown that builds are less private than they claim to be."""


class LedgerError(PsdError):
    """A ledger is missing, damaged, in use or foreign, or lacks a dataset or a charge."""


class ReleaseFormatError(PsdError, ValueError):
    """A release file is malformed, truncated or of an unknown version.

    Attributes
    ----------
    path : path-like or None
        The file.
    """

    path: str | os.PathLike[str] | None = None


class WriteError(PsdError, OSError):
    """A file could not be written; nothing was left behind.

    Attributes
    ----------
    path : path-like or None
        The file that could not be written.
    """

    path: str | os.PathLike[str] | None = None


class MissingExtraError(PsdError, ImportError):
    """A format or engine needs a package that is not installed.

    Attributes
    ----------
    extra : str or None
        Extra of the package ``psd-publisher`` to install, such as ``"raster"``.
    """

    extra: str | None = None


class RandomnessError(PsdError, OSError):
    """The operating system provides no random numbers; they have no substitute."""


class InputDataError(PsdError, ValueError):
    """The input with the points cannot be read."""


class ResourceError(InputDataError):
    """Memory, or an engine, gave out while the input was read; it may depend on its size."""


class InternalError(PsdError, AssertionError):
    """The library contradicts itself: a defect, to be reported; holds no data."""


class PsdWarning(UserWarning):
    """What a caller may not have meant, or does not get, by public input alone.

    Guarantees
    ----------
    - Neither the message nor whether there is one depends on a record.

    Examples
    --------
    >>> issubclass(PsdWarning, UserWarning)
    True
    """
