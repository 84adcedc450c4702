"""One small family of errors; the command line turns each kind into an exit code.

A message is one sentence that names the argument, the value (never private data) and the
likely cause. Where a builtin fits it is the second base, so ``except ValueError`` works.
"""

from __future__ import annotations

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
    "RandomnessError",
    "ReleaseFormatError",
    "WriteError",
]


class PsdError(Exception):
    """Root of the family; never raised itself."""


class ParameterError(PsdError, ValueError):
    """A public parameter is missing, out of range or of the wrong kind."""


class DomainError(PsdError, ValueError):
    """Bounds or CRS are unusable, or the data do not lie where they say."""


class BudgetError(PsdError):
    """A question costs more epsilon than is left; nothing was drawn."""


class AuditError(PsdError):
    """An audit has shown that builds are less private than they claim to be."""


class LedgerError(PsdError):
    """A ledger is missing, foreign, damaged or in use, or does not know what it is asked about."""


class ReleaseFormatError(PsdError, ValueError):
    """A release file is malformed, truncated or of an unknown version."""


class WriteError(PsdError, OSError):
    """A file could not be written; nothing was left behind."""


class MissingExtraError(PsdError, ImportError):
    """A format or engine needs a package that is not installed."""


class RandomnessError(PsdError, OSError):
    """The operating system gives no random numbers; nothing else takes their place."""


class InputDataError(PsdError, ValueError):
    """The input with the points cannot be read as asked."""


class InternalError(PsdError, AssertionError):
    """The library contradicts itself: a defect, to be reported; holds no data."""
