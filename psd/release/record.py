"""The record of a release, or of a local one with its reports: public fields and their checks."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd._util.declared_parameters import NO_PARAMETERS, DeclaredParameters
from psd.errors import ParameterError
from psd.privacy.budget import AXES, TOTALS_FACTOR
from psd.privacy.loss import MAX_EPSILON, NANO, Loss, epsilon_text, parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.privacy.values import WEIGHT, Value, check_values, count_factor, part_factor
from psd.release.about import About
from psd.release.post_processing import INFERENCE_VERSION, PostProcessing
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate, check_covariate
from psd.space.domain import Domain
from psd.space.region_tree import RegionTree, check_cells
from psd.version import __version__

__all__ = ["LevelReports", "LocalReports", "ReleaseRecord"]


MAX_REPORTS: Final = 2**53

_PROTOCOL = re.compile(r"[a-z][a-z0-9-]{0,39}", re.ASCII)
_FRACTION = re.compile(r"(0|[1-9]\d{0,60})/([1-9]\d{0,60})", re.ASCII)
_DIGEST = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelReports:
    """Reports that measured a level of the tree."""

    level: int
    protocol: str
    reports: int
    p: Fraction  # probability that a report supports the cell of its device
    q: Fraction  # probability that it supports another cell; below p
    outside: int  # number of reports that support the answer *outside*

    def __post_init__(self) -> None:
        if not _PROTOCOL.fullmatch(self.protocol):
            raise ParameterError("protocol of a level must be small letters, digits and hyphens")
        if not (0 <= self.level < 256 and 0 <= self.outside <= self.reports < MAX_REPORTS):
            raise ParameterError("a level must have as many reports as support its answers")
        if not 0 <= self.q < self.p <= 1:
            raise ParameterError("p and q of a level must be probabilities, p above q")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalReports:
    """Reports of a campaign."""

    campaign: str  # digest of the last campaign file
    # Measured levels, from the root down; each device is in one of them.
    levels: tuple[LevelReports, ...]

    def __post_init__(self) -> None:
        if not _DIGEST.fullmatch(self.campaign):
            raise ParameterError("campaign of a local release must be a digest")
        numbers = [level.level for level in self.levels]
        if numbers != sorted(set(numbers)) or not self.reports:
            raise ParameterError("a local release must have reports, level by level")

    @property
    def reports(self) -> int:
        """Number of all reports."""
        return sum(level.reports for level in self.levels)


def local_header(local: LocalReports | None) -> dict[str, Any] | None:
    """JSON value of the reports of a local release."""
    if local is None:
        return None
    levels = [
        {**asdict(level), "p": _fraction_text(level.p), "q": _fraction_text(level.q)}
        for level in local.levels
    ]
    return {"campaign": local.campaign, "levels": levels}


def is_local_header(value: Any) -> bool:
    """Whether a JSON value is null or that of the reports of a local release."""
    try:
        parse_local(value)
    except (ParameterError, KeyError, TypeError, ValueError):
        return False
    return True


def parse_local(value: Any) -> LocalReports | None:
    """Reports of a JSON value."""
    if value is None:
        return None
    if not isinstance(value, dict) or value.keys() != {"campaign", "levels"}:
        raise ParameterError("local must have the keys campaign and levels")
    if not (isinstance(value["campaign"], str) and isinstance(value["levels"], list)):
        raise ParameterError("local must have a digest and a list of levels")
    levels = []
    for entry in value["levels"][:256]:
        if not isinstance(entry, dict) or entry.keys() != set(LevelReports.__dataclass_fields__):
            raise ParameterError("a level must have its fields and no others")
        if not all(type(entry[name]) is int for name in ("level", "reports", "outside")):
            raise ParameterError("level, reports and outside must be integers")
        p, q = (_parse_fraction(entry[name]) for name in ("p", "q"))
        levels.append(LevelReports(**{**entry, "protocol": str(entry["protocol"]), "p": p, "q": q}))
    return LocalReports(campaign=value["campaign"], levels=tuple(levels))


def _fraction_text(value: Fraction) -> str:
    """Text of a fraction."""
    return f"{value.numerator}/{value.denominator}"


def _parse_fraction(text: Any) -> Fraction:
    """Fraction of a text in lowest terms."""
    parts = _FRACTION.fullmatch(text) if isinstance(text, str) else None
    fraction = Fraction(int(parts[1]), int(parts[2])) if parts else Fraction(0)
    if _fraction_text(fraction) != text:
        raise ParameterError("p and q of a level must be fractions in lowest terms")
    return fraction


CountSource = Literal["curator", "given", "local", "replay", "insecure"]
"""Where the counts of a release come from."""

GIVEN_METHOD: Final = "given"
"""Name in place of a method where a tree and its counts were given; no method has it."""

METHOD_NAME: Final = re.compile("[a-z0-9-]{1,40}")
"""Names of methods, of this package or of another."""

SOURCE_NOTES: Final[dict[CountSource, str]] = {
    "curator": "",
    "local": "",
    "given": "; given: psd did not draw these counts and does not vouch for epsilon",
    "replay": "; replay: these counts have no noise",
    "insecure": "; insecure: a seed repeats the noise",
}
"""What follows a guarantee, by the source of the counts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleaseRecord:
    """The public fields of a release.

    P1. The fields fit together: tree, domain, covariate, unit of privacy and epsilon.

    P2. A path from the root to a leaf spends at most `epsilon`, or `rho` if the release has one; in
    a local release, each level spends at most `epsilon`.

    P3. Rho is at most what epsilon and delta allow.

    P4. No cell is smaller than the smallest cell of the domain, if that is stated.

    `source` is a statement, not a proof: any program can write a file that states ``curator``. It
    prevents confusion, not forgery. Signatures (`psd.signing.verify`) show who vouches for a file.
    """

    tree: Tree  # cells and noisy counts
    domain: Domain  # bounds, CRS and lattice
    epsilon: int  # nano-epsilon: enforced by the curator, or stated by the caller of given counts
    method: str
    # From `psd._util.declared_parameters.declared`, or from a release file.
    parameters: DeclaredParameters = NO_PARAMETERS
    # Unit of privacy, and what the counts count.
    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    post_processing: PostProcessing = field(default_factory=PostProcessing)
    covariate: Covariate | None = None  # density that the release was built with
    # Whether the covariate is the raster of a public boundary; cells where it is 0 are empty.
    boundary: bool = False
    library: str = __version__  # version that wrote the file
    inference: int = INFERENCE_VERSION  # version that computes its estimates
    # A caller gives ``given`` counts, devices that randomise their own answers give ``local`` ones.
    # What has replayed answers, or noise that a seed repeats, cannot be saved.
    source: CountSource = "given"
    local: LocalReports | None = None  # reports of a local release, whose counts are support counts
    about: About | None = None  # what the publisher states: title, licence, reference date
    # Rho in units of 1e-12 of a release whose losses are counted in rho; its epsilon is that of
    # (epsilon, delta).
    rho: int | None = None
    delta: Fraction | None = None  # delta of a release with a rho
    values: tuple[Value, ...] = ()  # numbers of records whose weights the tree has sums of
    # Of a record that was made of the sums of a value, see `value_part`: weight of one record in
    # its counts. Such a record is asked, and never saved.
    part_weight: int = 0

    @property
    def about_texts(self) -> dict[str, str]:
        """What the publisher states, such as title and licence, by name."""
        return {} if self.about is None else self.about.texts

    def __post_init__(self) -> None:
        """Check that the fields fit together."""
        if type(self.parameters) is not DeclaredParameters:
            raise ParameterError(
                f"parameters must be DeclaredParameters, got {type(self.parameters).__name__}; "
                "psd._util.declared_parameters.declared(method) makes them"
            )
        if self.source == "curator" and self.method == GIVEN_METHOD:
            raise ParameterError(
                f"source must not be curator for method {GIVEN_METHOD!r}, which means that the "
                "counts were given"
            )
        if self.boundary and self.covariate is None:
            raise ParameterError(
                "covariate must be the raster of the boundary, got None; the record says that "
                "the release has a boundary"
            )
        if self.post_processing.estimate == "integer" and not isinstance(self.tree, RegionTree):
            raise ParameterError("estimate must not be integer without regions")
        check_cells(self.tree, self.domain.lattice)
        # Give the noise of a tree the sensitivity that follows from the unit of privacy.
        noise = self.tree.noise
        if not self.part_weight:
            noise = noise.for_contributions(self.unit.contributions)
        if noise != self.tree.noise:
            object.__setattr__(self, "tree", replace(self.tree, noise=noise))
        if isinstance(self.tree, RegionTree) and self.post_processing.density == "smooth":
            raise ParameterError(
                "density must be uniform or covariate with regions, got smooth; cells on the two "
                "sides of an outline are not smoothed"
            )
        if self.values or self.tree.sums is not None:
            self._check_values()
        is_local = self.local is not None
        if (self.source == "local") != is_local or (self.unit.kind == "report") != is_local:
            raise ParameterError(
                "source local and unit report must be those of a release with reports of devices, "
                f"got source {self.source} and unit {self.unit.kind}"
            )
        if self.local is not None:
            self._check_reports(self.local)
        outside = self.outside
        if outside is not None and self.tree.loss[outside].any():
            raise ParameterError("a cell outside the boundary was counted")
        if not self.domain.blocks.keeps(self.tree.boxes):
            raise ParameterError(
                f"min_cell must be at most the sides of all cells, got {self.domain.min_cell}; a "
                "cell of the release is smaller"
            )
        check_covariate(self.covariate, self.domain, self.post_processing.density)
        if type(self.inference) is not int or not 1 <= self.inference <= INFERENCE_VERSION:
            raise ParameterError(
                f"inference version must be an integer from 1 to {INFERENCE_VERSION}, got "
                f"{self.inference!r}; a file with a larger one is of a newer version of psd"
            )
        if not 0 < self.epsilon <= MAX_EPSILON * NANO:
            raise ParameterError(
                f"epsilon must be above 0 and at most {MAX_EPSILON:,}, got "
                f"{epsilon_text(self.epsilon)}"
            )
        # Check rho and delta, and that no path spends more than the release.
        measure = self.tree.noise.measure
        is_pure = self.rho is None and self.delta is None
        if is_pure != measure.is_pure or (self.rho is None) != (self.delta is None):
            raise ParameterError(
                "rho and delta must be given if and only if the noise of the counts is charged in "
                "rho"
            )
        largest = self.epsilon if self.rho is None else self.loss.rho
        if self.local is None and self.tree.max_path_loss > largest:
            raise ParameterError(
                f"the counts on a path from the root must spend at most {measure.name} "
                f"{measure.text(largest)}, got {measure.text(self.tree.max_path_loss)}"
            )

    def _check_values(self) -> None:
        """Check that the tree has a pair of sums for each value, and the noise that they give."""
        check_values(self.values)
        sums, noise = self.tree.sums, self.tree.noise
        if (0 if sums is None else sums.shape[1]) != len(self.values):
            raise ParameterError("values must be those that the tree has sums of")
        if sums is None:
            return
        if sums.shape != (len(self.tree), len(self.values), 2):
            raise ParameterError("sums of values must be two for each node and value")
        if noise.factor != count_factor(len(self.values), is_pure=noise.measure.is_pure):
            raise ParameterError("the noise of counts must be that of the sums of their values")
        if self.local is not None:
            raise ParameterError("a local release has no values")

    @property
    def record_weight(self) -> int:
        """Weight of one record in the sums of values, or of one part of a user that is counted."""
        return 1 if self.unit.weight else WEIGHT

    def value_named(self, name: str) -> int:
        """Number of a value of a name."""
        names = [value.name for value in self.values]
        if name not in names:
            raise ParameterError(
                f"value must be one of {', '.join(names)}, got {name!r}"
                if names
                else f"value must be one of the release, which has none, got {name!r}; build with "
                "--value NAME LOWER UPPER, in Python values=, to have sums and means"
            )
        return names.index(name)

    def value_part(self, number: int, side: int) -> ReleaseRecord:
        """Record whose counts are weights of a value towards its upper bound (side 0) or lower."""
        sums, noise = self.tree.sums, self.tree.noise
        assert sums is not None  # a record with values has them
        times = self.record_weight**2 * part_factor(len(self.values), is_pure=noise.measure.is_pure)
        noise = replace(
            noise, squared_sensitivity=noise.squared_sensitivity * times, factor=Fraction(1)
        )
        part = replace(self.tree, count=sums[:, number, side], noise=noise, sums=None)
        return replace(self, tree=part, values=(), part_weight=self.record_weight)

    @property
    def scale(self) -> int:
        """What one record, or one user that is counted, adds to a count."""
        return self.unit.scale * max(self.part_weight, 1)

    def _check_reports(self, local: LocalReports) -> None:
        """Check the reports of a local release; epsilon is the largest of a level."""
        if self.post_processing.estimate == "posterior":
            raise ParameterError(
                "estimate must be least-squares or signed for a local release, got posterior; its "
                "prior is for noisy counts, not for reports"
            )
        if self.boundary or (self.tree.loss > self.epsilon).any():
            raise ParameterError(
                "a local release must have no boundary, and no level above its epsilon"
            )
        # (nodes,) reports of the level of each node, 0 where the level was not asked about.
        reports = np.zeros(len(self.tree), np.int64)
        for level in local.levels:
            if level.level >= len(self.tree.levels):
                raise ParameterError("a level of the reports must be one of the tree")
            reports[self.tree.levels[level.level]] = level.reports
        is_counted = self.tree.loss > 0
        if (
            (is_counted != (reports > 0)).any()
            or (self.tree.count > reports).any()
            or ((self.tree.count < 0).any())
        ):
            raise ParameterError("the counts of a level must be 0 to the number of its reports")

    @property
    def outside(self) -> NDArray[np.bool_] | None:
        """Mask of the cells that no record can lie in; None without boundary and regions."""
        empty: NDArray[np.bool_] | None = None
        if self.boundary and self.covariate is not None:
            empty = self.covariate.mass(self.tree.boxes) == 0
        if isinstance(self.tree, RegionTree):
            empty = self.tree.outside if empty is None else empty | self.tree.outside
        return empty

    @property
    def loss(self) -> Loss:
        """Loss of the release: pure epsilon, or rho with epsilon and delta."""
        if self.rho is None or self.delta is None:
            return Loss.pure(self.epsilon)
        return Loss.gaussian(self.epsilon, self.delta, self.rho)

    @property
    def guarantee_text(self) -> str:
        """Loss, unit of privacy and, unless the curator drew the counts, their source."""
        note = f"{self.loss.failure_note}{SOURCE_NOTES[self.source]}"
        return f"{self.loss_text} {self.unit_text}{note}"

    @property
    def loss_text(self) -> str:
        """Epsilon, or epsilon and delta with their rho."""
        if self.rho is None:
            return f"epsilon {epsilon_text(self.epsilon)}"
        return self.loss.text

    @property
    def unit_text(self) -> str:
        """What the loss protects."""
        axes = str(self.parameters.get(AXES, "")).split(",")
        shared = self.unit.categories_text if "category" in axes else ""
        if self.rho is None:
            return self.unit.guarantee_text + shared
        counts_apart = self.parameters.get("counter", "slices") == "slices"
        if counts_apart and AXES not in self.parameters:
            return self.unit.concentrated_text
        return self.unit.summed_text + shared

    @property
    def is_running_total(self) -> bool:
        """Whether the counts are those of a slice of a stream and of all slices before it."""
        return TOTALS_FACTOR in self.parameters

    @property
    def counted_text(self) -> str:
        """What an answer counts, in a few words."""
        note = ", summed over this time slice and all before it" * self.is_running_total
        return f"{self.unit.counted_text}{note}"


def record_from_counts(
    tree: Tree,
    counts: ArrayLike,
    epsilons: ArrayLike | str | float,
    *,
    domain: Domain,
    unit: PrivacyUnit,
) -> ReleaseRecord:
    """Make a record of noisy counts; see `psd.Release.from_counts`.

    P1. Its source is ``given``: nothing here knows how the counts were drawn.
    """
    values = _in_leaf_order(tree, np.asarray(counts))
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ParameterError(
            f"counts must be a list of integers, got an array of {values.dtype} with "
            f"{values.ndim} dimensions"
        )
    is_per_node = len(values) == len(tree)
    nodes = np.arange(len(tree)) if is_per_node else np.flatnonzero(tree.is_leaf)
    if values.shape != nodes.shape:
        raise ParameterError(
            f"counts must have one value per leaf ({int(tree.is_leaf.sum())}) or per node "
            f"({len(tree)}), got shape {values.shape}"
        )
    count, epsilon = np.zeros(len(tree), np.int64), np.zeros(len(tree), np.int64)
    count[nodes], epsilon[nodes] = values, _nano_epsilons(epsilons, nodes.shape)
    counted = Tree(
        boxes=tree.boxes, parent=tree.parent, level=tree.level, count=count, loss=epsilon
    )
    return ReleaseRecord(
        tree=counted,
        domain=replace(domain, min_cell=None),  # a rule of methods; given counts have none
        epsilon=max(counted.max_path_loss, 1),
        method=GIVEN_METHOD,
        unit=unit,
        source="given",
    )


def _in_leaf_order(tree: Tree, values: NDArray[Any]) -> NDArray[Any]:
    """Put values of a grid, with a row per line of cells from the south, in order of the leaves."""
    if values.ndim != 2:
        return values
    # Of each axis, the different lower edges of the leaves, and which of them each leaf has.
    leaves = tree.boxes[tree.is_leaf]
    columns, rows = (np.unique(leaves[:, side], return_inverse=True) for side in (0, 1))
    if values.shape != (len(rows[0]), len(columns[0])) or values.size != len(leaves):
        raise ParameterError(
            f"counts must have {len(rows[0])} rows and {len(columns[0])} columns, as the grid of "
            f"the {len(leaves)} leaves, got shape {values.shape}"
        )
    of_leaves: NDArray[Any] = values[rows[1], columns[1]]
    return of_leaves


def _nano_epsilons(epsilons: ArrayLike | str | float, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Parse decimals to nano-epsilon; 0 is allowed."""
    decimals = np.asarray(epsilons, dtype=object)
    if decimals.shape not in ((), shape):
        raise ParameterError(
            f"epsilons must be one value or have the shape {shape} of the counts, got shape "
            f"{decimals.shape}"
        )
    flat = np.broadcast_to(decimals, shape)
    return np.array([0 if value == 0 else parse_epsilon(value) for value in flat], np.int64)
