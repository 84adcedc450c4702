"""Objectives: what makes a candidate better than another, one file each. Private side.

A file ``psd/apps/choosing/objectives/<name>.py`` ends in ``objective = <its class>``. Another
package has one by an entry point of the group ``psd.objectives``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from psd._util import plugins
from psd._util.instances import refuse_class, type_text
from psd.curator.candidate_scores import CandidateScores
from psd.errors import ParameterError

if TYPE_CHECKING:
    from psd._util.arrays import Integers
    from psd.apps.choosing.counts import BidLevels
    from psd.mechanisms.base import UnscoredMechanism
    from psd.space.domain import Domain

__all__ = ["Objective", "Pick", "as_objective", "objective_class", "objectives"]

_KIND = "objective"

_MEMBERS = (
    "name", "domain", "shape", "mechanism", "candidates", "draws", "is_monotone", "step", "bids",
    "sensitivity", "scores", "pick",
)  # fmt: skip

Pick = dict[str, Any]
"""A row about a chosen candidate, by the names of the columns of a table; public. A geometry is
under ``geometry``, in the CRS of the domain."""


class Objective(CandidateScores, Protocol):
    """Public candidates, how records score them, and how one is drawn and described."""

    name: ClassVar[str]
    """Name of the objective, as on the command line."""

    @property
    def domain(self) -> Domain:
        """Domain in which records count, and at whose points epsilon is charged."""

    @property
    def mechanism(self) -> UnscoredMechanism:
        """Mechanism of the next draw without its scores, which the curator fills in."""

    @property
    def candidates(self) -> int:
        """Number of candidates of the next draw; of maps, what the bounds take for it."""

    @property
    def draws(self) -> int:
        """Number of draws that share epsilon."""

    @property
    def step(self) -> float:
        """What a score of 1 is worth, in the unit of what is printed."""

    @property
    def bids(self) -> tuple[str, BidLevels] | None:
        """Column of bids, and the levels by which they are counted; None if none are read."""

    def pick(self, answer: Integers) -> tuple[tuple[Pick, ...], Self]:
        """Describe the answer of a draw, in rows, and give the objective of the draw after it."""


def objectives() -> tuple[str, ...]:
    """Names of all objectives: those of this package, then those of others.

    Examples
    --------
    >>> "sites" in objectives()
    True
    """
    return plugins.names(__name__)


def objective_class(name: str) -> type[Any]:
    """Class of an objective by its name.

    Examples
    --------
    >>> objective_class("sites").__name__
    'Sites'
    """
    kind: type[Any] = plugins.load_member(__name__, _KIND, name, "objective")
    return kind


def as_objective(value: Any) -> Objective:
    """Return an objective as it is."""
    refuse_class("objective", value)
    missing = [member for member in _MEMBERS if not hasattr(value, member)]
    if missing:
        raise ParameterError(
            f"objective must have {', '.join(missing)}, got {type_text(value)}; "
            "psd.apps.choosing.Sites(...) is one"
        )
    objective: Objective = value
    return objective
