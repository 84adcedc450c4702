"""Releases for tests: from fields of a record, changed, and to and from the bytes of a file."""

import dataclasses

import psd
from psd.api.release import Release
from psd.release import file, series_file
from psd.release.record import ReleaseRecord


def release_from(**fields):
    """Release of the fields of a record."""
    return psd.Release(ReleaseRecord(**fields))


def changed(release, **fields):
    """The same release, or series, with other fields of its record."""
    return type(release)(dataclasses.replace(release.record, **fields))


def as_drawn(release):
    """The same release as if the curator had drawn its counts."""
    return changed(release, method="grid", source="curator")


def encode(release):
    """Bytes of the file of a release, or of a series."""
    if release.slices is not None:
        return series_file.encode_series(release.record)
    return file.encode_release(release.record)


def decode(content, name="release"):
    """Release of the bytes of a file."""
    return _with_digest(psd.Release, *file.decode_release(content, name))


def decode_series(content, name="series"):
    """Series of the bytes of a file."""
    return _with_digest(Release, *series_file.decode_series(content, name))


def _with_digest(kind, record, digest):
    loaded = kind(record)
    vars(loaded)["digest"] = digest
    return loaded
