"""Public series files of a stream: what the state holds of each, and whether it is written."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pyarrow import ArrowException

from psd._util.atomic_write import write_file
from psd._util.parquet_bytes import MAX_ROWS, read_bytes
from psd.api.release import Release
from psd.apps.streams.state import State, StoredAnswer
from psd.errors import InputDataError, ReleaseFormatError
from psd.privacy.unit import ContributionScope
from psd.release.file import decode_release, encode_release, slice_digest, stated_digest
from psd.release.record import ReleaseRecord
from psd.release.series import SeriesRecord
from psd.release.series_file import (
    append_slice,
    decode_series,
    digest_of,
    encode_series,
    join_releases,
)
from psd.space.time_slices import TimeSlices


class PublishedSeries(Release):
    """A series as it was published, decoded when first used; or what is made of it. Public."""

    def __init__(self, content: bytes | ReleaseRecord | SeriesRecord) -> None:
        # All bytes of its file; or the record of a slice, or of the series with other statements.
        vars(self)["_content" if isinstance(content, bytes) else "record"] = content

    @cached_property
    def record(self) -> SeriesRecord:
        """The published fields."""
        record, digest = decode_series(vars(self)["_content"], max_nodes=MAX_ROWS)
        vars(self)["digest"] = digest
        return record


@dataclass(slots=True, kw_only=True)
class Output:
    """A public series of a stream, which grows with each slice."""

    state: State  # private; open and locked
    number: int  # of the series in the state
    path: Path
    slices: TimeSlices  # all of the stream
    scope: ContributionScope  # of the stream
    digests: dict[int, str]  # after each slice that was added
    stated: str | None  # as the file states it now; None if it does not exist
    # The file as it is now, if it is as it was written with this digest.
    earlier: bytes | None = None
    content: bytes | None = None  # the file with all slices that were added, once it is known

    @classmethod
    def of(
        cls, state: State, number: int, path: str, slices: TimeSlices, scope: ContributionScope
    ) -> Output:
        """Read what the state and the file hold."""
        file, digests = Path(path), state.digests(number)
        stated = earlier = None
        if os.path.exists(file):
            # The footer of a file that is known by its bytes is not read here.
            latest = [*digests][-2:]  # a killed process leaves the last but one
            known = {state.file_digest(number, each): digests[each] for each in latest}
            try:
                content = read_bytes(file)
            except ReleaseFormatError:  # a file that cannot be read is none of ours
                content = b""
            stated = known.get(_sha256(content))
            earlier = None if stated is None else content
            stated = stated or stated_digest(file) or ""
        return cls(
            state=state,
            number=number,
            path=file,
            slices=slices,
            scope=scope,
            digests=digests,
            stated=stated,
            earlier=earlier,
        )

    def check(self) -> None:
        """Refuse to replace a file that this stream has not written."""
        ours = list(self.digests.values())[-2:]  # a killed process leaves the last but one
        if self.stated is not None and self.stated not in ours:
            raise InputDataError(
                f"{self.path} is not the series that this stream has written last, so it is not "
                "replaced; if the state is an older copy, restore the latest one, since a slice "
                "would be drawn twice; move a file of something else away"
            )

    @property
    def is_published(self) -> bool:
        """Whether the file holds all slices that were added."""
        return self.stated == self.digests.get(max(self.digests, default=-1))

    def last_release(self) -> ReleaseRecord | None:
        """Release of the last slice that was added, if there is one."""
        contents = self.state.latest_releases(self.number, 1)
        return _decoded(contents[0]) if contents else None

    def add(self, slice_number: int, record: ReleaseRecord) -> StoredAnswer:
        """Join a release to the series; return what the state keeps of it."""
        last, before = self.last_release(), [*self.digests]
        if last is None:
            series = self._series_of([slice_number], [record])
            self.content, digest = encode_series(series), digest_of(series)
        else:
            # A newer version of the library continues what an older one began.
            record = replace(record, library=last.library)
            pair = self._series_of([before[-1], slice_number], [last, record])
            drawn = self.state.slice_digests(self.number)
            self.content, digest = append_slice(self._written(before), pair, drawn)
        self.digests[slice_number] = digest
        return StoredAnswer(
            encode_release(record),
            digest,
            _sha256(self.content),
            slice_digest(self.slices.names[slice_number], record.tree),
        )

    def _written(self, numbers: list[int]) -> bytes:
        """File with the first slices that were added: the one of before, or made anew."""
        unchanged = self._unchanged(numbers[-1])
        if unchanged is not None:
            return unchanged
        slices = replace(self.slices, names=tuple(self.slices.names[n] for n in numbers))
        try:
            content, digest = join_releases(
                lambda: self.state.releases(self.number), slices, self.scope
            )
        except (ReleaseFormatError, ArrowException, OSError):
            digest = ""
        if digest != self.digests[numbers[-1]]:
            raise InputDataError(
                "the state does not have the releases of its series; it is damaged, restore a copy"
            )
        return content

    def _unchanged(self, number: int) -> bytes | None:
        """Bytes of the file, if they are those that were written after a slice."""
        return self.earlier if self.stated == self.digests[number] else None

    def _series_of(self, numbers: list[int], releases: list[ReleaseRecord]) -> SeriesRecord:
        """Join releases to a series."""
        names = tuple(self.slices.names[number] for number in numbers)
        slices = replace(self.slices, names=names)
        return SeriesRecord(slices=slices, releases=tuple(releases), scope=self.scope)

    def publish(self) -> PublishedSeries:
        """Write the file, by rename."""
        if self.content is None:  # a process was killed that did not write the last slice
            numbers = [*self.digests]
            earlier = self._unchanged(numbers[-2]) if len(numbers) > 1 else None
            if earlier is None:
                self.content = self._written(numbers)
            else:
                pair = list(map(_decoded, self.state.latest_releases(self.number, 2)))
                drawn = self.state.slice_digests(self.number)[:-1]
                self.content, _ = append_slice(earlier, self._series_of(numbers[-2:], pair), drawn)
        write_file(self.path, self.content, overwrite=True)
        return PublishedSeries(self.content)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _decoded(content: bytes) -> ReleaseRecord:
    """Release that the state holds."""
    return decode_release(content, "the state", max_nodes=MAX_ROWS)[0]
