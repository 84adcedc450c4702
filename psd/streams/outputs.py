"""Public series files of a stream: what the state holds of each, and whether it is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from psd._util.atomic_write import write_file
from psd._util.untrusted_parquet import MAX_ROWS
from psd.errors import InputDataError, ReleaseFormatError
from psd.privacy.unit import ContributionScope
from psd.release.file import decode_release, encode_release, stated_digest
from psd.release.record import ReleaseRecord
from psd.release.series import SeriesRecord
from psd.release.series_file import digest_of, encode_series, read_series
from psd.space.time_slices import TimeSlices
from psd.streams.state import State

__all__ = ["Output"]


@dataclass(slots=True, kw_only=True)
class Output:
    """A public series of a stream, which grows with each slice.

    Parameters
    ----------
    state : State
        Of the stream, open and locked. Private.
    number : int
        Number of the series in the state.
    path : Path
        Its file.
    slices : TimeSlices
        All slices of the stream.
    scope : {"series", "slice"}
        Of the stream.
    digests : dict
        Digest of the series after each slice that was added.
    stated : str or None
        Digest that the file states now; None if it does not exist.
    """

    state: State
    number: int
    path: Path
    slices: TimeSlices
    scope: ContributionScope
    digests: dict[int, str]
    stated: str | None
    series: SeriesRecord | None = None

    @classmethod
    def of(
        cls, state: State, number: int, path: str, slices: TimeSlices, scope: ContributionScope
    ) -> Output:
        """Read what the state and the file hold."""
        file = Path(path)
        return cls(
            state=state,
            number=number,
            path=file,
            slices=slices,
            scope=scope,
            digests=state.digests(number),
            stated=(stated_digest(file) or "") if file.exists() else None,
        )

    def check(self) -> None:
        """Refuse to replace a file that this stream has not written.

        Raises
        ------
        InputDataError
            If it has not.
        """
        ours = list(self.digests.values())[-2:]  # a killed process leaves the last but one
        if self.stated is not None and self.stated not in ours:
            raise InputDataError(
                f"{self.path} is not the series that this stream has written last, so it is not "
                "replaced; move it away, and the stream writes its own"
            )

    @property
    def is_published(self) -> bool:
        """Whether the file holds all slices that were added."""
        return self.stated == self.digests.get(max(self.digests, default=-1))

    def releases(self) -> list[ReleaseRecord]:
        """Return the releases that were added; the file is read faster than the state."""
        if self.digests and self.is_published:
            try:
                series, digest = read_series(self.path, max_nodes=MAX_ROWS)
            except ReleaseFormatError:
                digest = ""  # changed meanwhile, and written anew
            if digest == self.stated:
                return list(series.releases)
        contents = self.state.releases(self.number)
        return [decode_release(item, "the state", max_nodes=MAX_ROWS)[0] for item in contents]

    def add(self, slice_number: int, record: ReleaseRecord) -> tuple[bytes, str]:
        """Join a release to the series; return it as a file has it, and the new digest."""
        releases = self.releases()
        # A newer version of the library continues what an older one began.
        first = (releases or [record])[0]
        record = replace(record, library=first.library, inference=first.inference)
        self.series = self._series_of([*self.digests, slice_number], [*releases, record])
        self.digests[slice_number] = digest_of(self.series)
        return encode_release(record), self.digests[slice_number]

    def _series_of(self, numbers: list[int], releases: list[ReleaseRecord]) -> SeriesRecord:
        """Join releases to a series."""
        names = tuple(self.slices.names[number] for number in numbers)
        slices = replace(self.slices, names=names)
        return SeriesRecord(slices=slices, releases=tuple(releases), scope=self.scope)

    def publish(self) -> SeriesRecord:
        """Write the file, by rename."""
        if self.series is None:
            self.series = self._series_of([*self.digests], self.releases())
        write_file(self.path, encode_series(self.series), overwrite=True)
        return self.series
