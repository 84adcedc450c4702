"""Planted bugs of files that are read twice: not noticed, or told to people who may not know."""

from privacy.planted_bugs.bug import around, instead, like, planted, replaced

SOURCES = "tests/unit/ingest/sources/"
COPIES = SOURCES + "test_copies.py::"
LEDGER = "tests/cli/test_copies.py::"


@planted(test=LEDGER + "test_with_a_ledger_a_build_shows_nothing_of_it")
@like("refusals that test the equality of private data, at no cost")
def copies_are_refused_with_a_ledger():
    """A build with a ledger is refused if two of its files are equal."""
    return replaced("psd.publish.pipeline.replace", lambda observer, **_: observer)


@planted(test=COPIES + "test_copies_are_refused_however_they_are_compressed[plain-plain]")
@like("copies in a folder of backups, which count each record twice")
@instead("psd.ingest.sources._copies.CopyCheck._are_copies")
def copies_are_not_compared(self, first, second):
    """Two files of equal content are counted as if they were two."""
    return False


@planted(test=COPIES + "test_copies_are_refused_however_they_are_compressed[plain-gzip]")
@like("the size of a file where the length of its content is meant")
@around("psd.ingest.sources._copies.CopyCheck.add")
def copies_are_compared_as_stored(original, self, path, length, name=None):
    """A file and its compressed copy have different lengths and are not compared."""
    original(self, path, path.stat().st_size, name)


@planted(test=SOURCES + "test_paths.py::test_a_file_beside_its_compressed_form_is_refused")
@like("folders in which files are compressed and not removed")
def compressed_twins_are_read():
    """A file and its compressed form in one folder are both read."""
    return replaced("psd.ingest.input_paths.uncompressed_name", lambda name: name)
