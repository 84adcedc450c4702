"""A series: one release per time slice, on one domain, with one promise for all of them.

Everything here is public.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from psd.errors import ParameterError, ReleaseFormatError
from psd.privacy.epsilon import epsilon_text
from psd.release.record import Release
from psd.space.time_slices import TimeSlices

if TYPE_CHECKING:
    import geopandas
    import pandas

    from psd.privacy.unit import ContributionScope, Kind, PrivacyUnit
    from psd.space.domain import Domain

__all__ = ["Series"]

_OWN = ("tree", "parameters", "covariate")
_SHARED = [part.name for part in fields(Release) if part.name not in _OWN]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Series:
    """Releases of time slices that are promised together.

    Guarantees
    ----------
    - Every slice that was named is there, also one without a row.
    - `epsilon` holds for all slices together.

    Parameters
    ----------
    slices : TimeSlices
        Their names, in the order of time.
    releases : tuple of Release
        One for each slice: same domain, unit, method, view and epsilon.
    bound : {"series", "slice"}
        Whether the most rows of a user hold for all slices together, or for each.

    Raises
    ------
    ReleaseFormatError
        If the releases do not belong together.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.grid_tree(domain, 2)
    >>> months = psd.TimeSlices.parse("month", "2024-01..2024-02")
    >>> counts = [[5, 1, 0, 2], [7, 1, 0, 2]]
    >>> made = [psd.Release.from_counts(tree, c, 1.0, domain=domain) for c in counts]
    >>> series = psd.Series(slices=months, releases=tuple(made))
    >>> series.query([(0, 0, 2, 1)])[["slice", "estimate"]].round(1).values.tolist()
    [['2024-01', 6.0], ['2024-02', 8.0]]
    """

    slices: TimeSlices
    releases: tuple[Release, ...]
    bound: ContributionScope = "series"

    def __post_init__(self) -> None:
        """Check that the releases are alike in all that is promised."""
        if len(self.releases) != len(self.slices):
            raise ReleaseFormatError(
                f"a series of {len(self.slices)} slices has {len(self.releases)} releases"
            )
        first = self.releases[0]
        for name in _SHARED:
            if any(getattr(one, name) != getattr(first, name) for one in self.releases[1:]):
                raise ReleaseFormatError(f"the releases of a series differ in {name}")
        if len({_raster(one) for one in self.releases}) > 1:
            raise ReleaseFormatError("the releases of a series differ in covariate")
        if self.bound == "slice" and first.unit != "user":
            raise ReleaseFormatError("a bound per slice goes with unit user")

    def __repr__(self) -> str:
        return (
            f"<Series: {len(self)} slices by {self.slices.by}, {self.releases[0].method}, "
            f"epsilon {epsilon_text(self.epsilon)} per {self.unit}>"
        )

    @property
    def epsilon(self) -> int:
        """Nano-epsilon of all slices together: their sum where the bound is per slice."""
        each = self.releases[0].epsilon
        return each * len(self) if self.bound == "slice" else each

    @property
    def method(self) -> str:
        """Name of the decomposition of every release."""
        return self.releases[0].method

    @property
    def domain(self) -> Domain:
        """Domain of every release."""
        return self.releases[0].domain

    @property
    def max_contributions(self) -> int:
        """Most rows of one user: in all slices together, or in each where that is the bound."""
        return self.releases[0].max_contributions

    @property
    def unit_of_privacy(self) -> PrivacyUnit:
        """Whose presence is hidden, and what is counted."""
        return self.releases[0].unit_of_privacy

    @property
    def unit(self) -> Kind:
        """What one unit of privacy is."""
        return self.releases[0].unit

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: that of the file it was read from, or will have when saved."""
        from psd.release.public import PublicSeries
        from psd.release.series_file import digest_of

        return digest_of(PublicSeries.of(self))

    def __len__(self) -> int:
        """Number of slices."""
        return len(self.slices)

    def __iter__(self) -> Iterator[str]:
        """Names of the slices in the order of time."""
        return iter(self.slices)

    def __getitem__(self, name: str) -> Release:
        """Release of one slice.

        Raises
        ------
        ParameterError
            If the series has no such slice.
        """
        if name not in self.slices.names:
            names = self.slices.names
            raise ParameterError(
                f"slice {name!r} is none of this series; it has {len(names)}, from {names[0]} to "
                f"{names[-1]}"
            )
        return self.releases[self.slices.names.index(name)]

    def query(
        self,
        regions: Any,
        *,
        crs: Any = None,
        confidence: float = 0.95,
        threshold: float = 0.3,
    ) -> pandas.DataFrame | geopandas.GeoDataFrame:
        """Answers of every slice, one slice after another, with a first column ``slice``.

        Parameters
        ----------
        regions, crs, confidence, threshold
            As in `Release.query`.

        Returns
        -------
        DataFrame or GeoDataFrame
            As from `Release.query`, for each slice.
        """
        how = {"crs": crs, "confidence": confidence, "threshold": threshold}
        named = zip(self, self.releases, strict=True)
        return stacked({name: release.query(regions, **how) for name, release in named})

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the series to one file; it appears whole or not at all.

        Raises
        ------
        ParameterError
            If the counts were replayed and not drawn, or something in it is not known to be
            public, see `psd.release.public`.
        WriteError
            If the file exists or cannot be written.
        """
        from psd.release.public import PublicSeries
        from psd.release.series_file import write

        write(PublicSeries.of(self), path, overwrite=overwrite)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Series:
        """Read a file of a series.

        Raises
        ------
        ReleaseFormatError
            If the file is missing, malformed, damaged, of an unknown version or a single release.
        """
        from psd.release.series_file import read

        return read(path)


def _raster(release: Release) -> bytes | None:
    """Numbers of a covariate."""
    return None if release.covariate is None else release.covariate.raster.tobytes()


def stacked(
    answers: dict[str, pandas.DataFrame | geopandas.GeoDataFrame],
) -> pandas.DataFrame | geopandas.GeoDataFrame:
    """Tables of the slices, one after another, with the name of the slice in front.

    Raises
    ------
    ParameterError
        If the caller's regions have a column ``slice`` already.
    """
    import pandas

    for name, table in answers.items():
        if "slice" in table.columns:
            raise ParameterError("the regions have a column 'slice'; give it another name")
        table.insert(0, "slice", name)
    return pandas.concat(list(answers.values()))
