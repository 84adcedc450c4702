"""Public facts of a release: what its file states, and the model that answers queries. Public."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Self

from psd.estimation.fit_cache import fit_cache
from psd.estimation.model import CountModel
from psd.privacy.epsilon import epsilon_text
from psd.privacy.unit import PrivacyUnit
from psd.query.index import QueryIndex
from psd.release.file import digest_of
from psd.release.post_processing import PostProcessing
from psd.release.record import ReleaseRecord, guarantee_note
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate
from psd.space.domain import Domain

if TYPE_CHECKING:
    from pyproj import CRS

    from psd.estimation.least_squares import Estimates

__all__ = ["ReleaseFacts"]


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseFacts:
    """A record, and what follows from it without an argument.

    Parameters
    ----------
    record : ReleaseRecord
        The published fields.
    note_saved : callable, optional
        Called with the path of a saved file: the ledger that paid notes it.
    """

    record: ReleaseRecord
    note_saved: Callable[[str | os.PathLike[str]], None] | None = None

    def __repr__(self) -> str:
        return (
            f"<Release: {self.method}, {len(self.tree):,} cells, "
            f"{self.record.loss_text} per {self.unit.kind}"
            f"{guarantee_note(self.record.source)}>"
        )

    @property
    def tree(self) -> Tree:
        """Cells and noisy counts."""
        return self.record.tree

    @property
    def domain(self) -> Domain:
        """Bounds, CRS and lattice."""
        return self.record.domain

    @property
    def epsilon(self) -> Decimal:
        """Privacy budget: enforced by the curator, or stated by the caller of given counts."""
        return Decimal(epsilon_text(self.record.epsilon))

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.record.method

    @property
    def parameters(self) -> Mapping[str, int | str | None]:
        """Public parameters of the method, and those that the build adds."""
        return self.record.parameters

    @property
    def unit(self) -> PrivacyUnit:
        """Unit of privacy, and what the counts count."""
        return self.record.unit

    @property
    def post_processing(self) -> PostProcessing:
        """Post-processing of the counts; `with_post_processing` gives another one."""
        return self.record.post_processing

    @property
    def covariate(self) -> Covariate | None:
        """Public density that the release was built with."""
        return self.record.covariate

    @property
    def boundary(self) -> bool:
        """Whether the covariate is the raster of a public boundary."""
        return self.record.boundary

    @property
    def library(self) -> str:
        """Version of the library that made the release."""
        return self.record.library

    @property
    def inference(self) -> int:
        """Version of the estimates."""
        return self.record.inference

    @property
    def source(self) -> str:
        """Where the counts come from; see `psd.release.record.ReleaseRecord`."""
        return self.record.source

    @property
    def about(self) -> dict[str, str]:
        """What the publisher states, such as title and licence; `with_about` gives another one."""
        return {} if self.record.about is None else self.record.about.texts

    @property
    def guarantee_text(self) -> str:
        """Epsilon, unit of privacy and, unless the curator drew the counts, their source."""
        return self.record.guarantee_text

    @cached_property
    def model(self) -> CountModel:
        """Estimates, variances and densities of the cells."""
        return CountModel(record=self.record)

    def with_cache(self) -> Self:
        """Return the release with a fit that is kept in the user's cache folder, if it is large.

        Another process then does not compute it again. Answers are the same, to the bit, and the
        folder has public numbers only; see `psd.estimation.fit_cache`. The command line does so.
        """
        release = type(self)(self.record)
        vars(release)["digest"] = self.digest
        vars(release)["model"] = CountModel(
            record=self.record, cache=fit_cache(self.record, self.digest)
        )
        return release

    def with_near_fit(self) -> Self:
        """Return the release for a process that answers one request.

        A few boxes are answered from a fit of the cells near them. Answers are the same, to
        rounding; more requests take more time than without it. With a cache (`with_cache`), later
        processes need the counts near their boxes alone.
        """
        release = type(self)(self.record)
        vars(release)["digest"] = self.digest
        vars(release)["model"] = self.model
        vars(release)["index"] = QueryIndex(model=self.model, once=True)
        return release

    @cached_property
    def index(self) -> QueryIndex:
        """Arrays that make queries fast."""
        return QueryIndex(model=self.model)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: of the file it was read from, or will be saved to."""
        return digest_of(self.record)

    @property
    def estimates(self) -> Estimates:
        """Consistent estimates of every cell, with variances."""
        return self.model.estimates

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east, north of the domain, in its CRS."""
        return self.domain.bounds

    @property
    def crs(self) -> CRS:
        """CRS of the domain, of its cells and of its bounds."""
        from pyproj import CRS

        return CRS.from_user_input(self.domain.crs)

    @property
    def metadata(self) -> dict[str, str]:
        """What exports state: `about`, epsilon, unit of privacy, source, counts, method, digest."""
        from psd.export._metadata import release_metadata

        return release_metadata(self.record, self.digest if self._has_file else "")

    @property
    def _has_file(self) -> bool:
        """Whether the release may be saved, and so has a digest."""
        return self.source in ("curator", "given")

    @property
    def total(self) -> float:
        """Estimated number of (kept) records, or of users, in the whole domain."""
        return self.model.total
