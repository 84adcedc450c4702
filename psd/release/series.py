"""The record of a series: one record per time slice, under a single guarantee. Public."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction

from psd.errors import ParameterError
from psd.privacy.loss import epsilon_text
from psd.privacy.unit import ContributionScope
from psd.privacy.values import Value
from psd.release.codecs import regions_of
from psd.release.post_processing import PostProcessing
from psd.release.record import SOURCE_NOTES, CountSource, ReleaseRecord
from psd.space.time_slices import TimeSlices

__all__ = ["SeriesRecord"]

_OF_EACH_SLICE = ("tree", "parameters", "covariate")
_SHARED = [field.name for field in fields(ReleaseRecord) if field.name not in _OF_EACH_SLICE]


class SharedRecord:
    """What the records of a series, or the layers of a cube, share, by the first of them."""

    __slots__ = ()

    @property
    def first(self) -> ReleaseRecord:
        """Record of the first slice, or of the plane."""
        raise NotImplementedError

    @property
    def source(self) -> CountSource:
        """Where the counts come from."""
        return self.first.source

    @property
    def about_texts(self) -> dict[str, str]:
        """What the publisher states, such as title and licence, by name."""
        return self.first.about_texts

    @property
    def post_processing(self) -> PostProcessing:
        """Post-processing of the counts."""
        return self.first.post_processing

    @property
    def values(self) -> tuple[Value, ...]:
        """Values of the records; none of a cube."""
        return self.first.values

    @property
    def boundary(self) -> bool:
        """Whether the covariate is the raster of a public boundary."""
        return self.first.boundary

    @property
    def library(self) -> str:
        """Version of the library that made the release."""
        return self.first.library

    @property
    def inference(self) -> int:
        """Version of the estimates."""
        return self.first.inference

    @property
    def unit_text(self) -> str:
        """What the loss protects."""
        return self.first.unit_text

    @property
    def delta(self) -> Fraction | None:
        """Delta of a release with a rho."""
        return self.first.delta


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeriesRecord(SharedRecord):
    """The public fields of a series.

    P1. Every slice of the list has a release, even if it has no record.

    P2. The releases agree in domain, unit, method, post-processing and epsilon, and state the same
    charge of a ledger, or none.
    """

    slices: TimeSlices  # names of the slices, in the order of time
    releases: tuple[ReleaseRecord, ...]  # one for each slice
    # Whether epsilon and the contribution bound hold for all slices together, or for each slice.
    scope: ContributionScope = "series"

    def __post_init__(self) -> None:
        """Check that the releases agree in all shared fields."""
        if len(self.releases) != len(self.slices):
            raise ParameterError(
                f"releases must be one per slice ({len(self.slices)}), got {len(self.releases)}"
            )
        first = self.releases[0]
        for name in _SHARED:
            if any(getattr(record, name) != getattr(first, name) for record in self.releases[1:]):
                raise ParameterError(f"the releases of a series differ in {name}")
        covariates = [record.covariate for record in self.releases]
        if len({None if each is None else each.raster.tobytes() for each in covariates}) > 1:
            raise ParameterError("the releases of a series differ in covariate")
        if len({None if r is None else r.digest for r in map(regions_of, self.releases)}) > 1:
            raise ParameterError("the releases of a series differ in regions")
        # Of running totals, whose variance grows, the noise of one count is compared.
        noises = {
            replace(each.tree.noise, factor=Fraction(1)) if each.is_running_total
            else each.tree.noise
            for each in self.releases
        }  # fmt: skip
        if len(noises) > 1:
            raise ParameterError("the releases of a series differ in the noise of their counts")
        if len(set(map(receipt_of, self.releases))) > 1:
            raise ParameterError(
                "the releases of a series state different charges of a ledger; a series is paid "
                "for by one charge"
            )

    @property
    def first(self) -> ReleaseRecord:
        """Record of the first slice."""
        return self.releases[0]

    @property
    def epsilon(self) -> int:
        """Nano-epsilon of all slices together, of all that a stream may have."""
        first = self.releases[0]
        if self.scope != "slice" or first.rho is not None:
            return first.epsilon
        stated = first.parameters.get("stream_slices")
        return first.epsilon * max(stated if isinstance(stated, int) else 0, len(self.slices))

    @property
    def guarantee_text(self) -> str:
        """Epsilon of all slices, unit of privacy and, unless the curator drew them, the source."""
        first = self.releases[0]
        note = f"{first.loss.failure_note}{SOURCE_NOTES[first.source]}"
        return f"{self.loss_text} {first.unit_text}{self.bound_text}{note}"

    @property
    def loss_text(self) -> str:
        """Loss of all slices together."""
        first = self.releases[0]
        return f"epsilon {epsilon_text(self.epsilon)}" if first.rho is None else first.loss_text

    @property
    def are_running_totals(self) -> bool:
        """Whether each slice counts the records of all slices before it too."""
        return self.releases[0].is_running_total

    @property
    def counted_text(self) -> str:
        """What an answer counts, in a few words."""
        note = ", summed over each time slice and all before it" * self.are_running_totals
        return f"{self.releases[0].unit.counted_text}{self.bound_text}{note}"

    @property
    def bound_text(self) -> str:
        """Words after a contribution bound that holds in each slice."""
        unit = self.releases[0].unit
        return " in each slice" * (self.scope == "slice" and unit.has_user and not unit.weight)


def receipt_of(record: ReleaseRecord) -> tuple[object, object] | None:
    """Ledger and charge that a release states, or None."""
    parameters = record.parameters
    receipt = parameters.get("ledger"), parameters.get("charge")
    return None if receipt == (None, None) else receipt
