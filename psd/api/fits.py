"""Releases whose fit is kept between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd.estimation.fit_cache import fit_cache
from psd.query.index import QueryIndex
from psd.release.series import SeriesRecord

if TYPE_CHECKING:
    from psd.api.release import Release

__all__ = ["with_cache"]


def with_cache(release: Release) -> Release:
    """Return the release with a fit that is kept in the user's cache folder, if it is large.

    Another process then does not compute it again. Answers are the same, to the bit, and the folder
    has public numbers only; see `psd.estimation.fit_cache`. With time slices nothing is kept.
    """
    if isinstance(release.record, SeriesRecord):
        return release
    made = type(release)(release.record)
    cache = fit_cache(release.record, release.digest)
    vars(made).update(digest=release.digest, index=QueryIndex(record=release.record, cache=cache))
    return made
