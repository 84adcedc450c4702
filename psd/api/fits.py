"""Releases whose fit is kept between processes, and slices that are fitted together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from psd.estimation.fit_cache import fit_cache
from psd.query.index import QueryIndex, fitted
from psd.release.record import ReleaseRecord
from psd.release.series import SeriesRecord

if TYPE_CHECKING:
    from psd.api.release import Release

__all__ = ["fitted_slices"]


def fitted_slices(release: Release) -> Iterator[Release]:
    """Yield the release of each slice, or itself; small ones are fitted together, none is kept."""
    if not isinstance(release.record, SeriesRecord):
        yield from [release] if release.slices is None else map(release.__getitem__, release)
        return
    for index in fitted([QueryIndex(record=r, is_kept=False) for r in release.record.releases]):
        made = type(release)(index.record)
        vars(made)["index"] = index
        yield made


def with_cache(release: Release) -> Release:
    """Return the release; a large one, without slices, with its fit in the user's cache folder."""
    if not isinstance(release.record, ReleaseRecord):
        return release
    made = type(release)(release.record)
    # Other processes answer the same, to the bit; the folder has public numbers only.
    cache = fit_cache(release.record, release.digest)
    vars(made).update(digest=release.digest, index=QueryIndex(record=release.record, cache=cache))
    return made
