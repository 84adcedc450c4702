"""Releases whose fit is kept between processes, or made for one request alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd.estimation.fit_cache import fit_cache
from psd.estimation.model import CountModel
from psd.query.index import QueryIndex
from psd.release.series import SeriesRecord

if TYPE_CHECKING:
    from psd.api.release import Release

__all__ = ["with_cache", "with_near_fit"]


def with_cache(release: Release) -> Release:
    """Return the release with a fit that is kept in the user's cache folder, if it is large.

    Another process then does not compute it again. Answers are the same, to the bit, and the folder
    has public numbers only; see `psd.estimation.fit_cache`. With time slices nothing is kept.
    """
    if isinstance(release.record, SeriesRecord):
        return release
    made = type(release)(release.record)
    cache = fit_cache(release.record, release.digest)
    vars(made).update(digest=release.digest, model=CountModel(record=release.record, cache=cache))
    return made


def with_near_fit(release: Release) -> Release:
    """Return the release for a process that answers one request.

    A few boxes are answered from a fit of the cells near them. Answers are the same, to rounding;
    more requests take more time than without it. With a cache (`with_cache`), later processes need
    the counts near their boxes alone. With time slices nothing changes.
    """
    if isinstance(release.record, SeriesRecord):
        return release
    made, model = type(release)(release.record), release.model
    index = QueryIndex(model=model, once=True)
    vars(made).update(digest=release.digest, model=model, _index=index)
    return made
