"""A lack of memory or disk is told from a fault of the form."""

import errno

import duckdb
import pyarrow as pa

from psd.errors import InputDataError, ResourceError
from psd.ingest.sources._arrow import fault_class
from support import tables

LACKS = [
    MemoryError(),
    pa.ArrowMemoryError("malloc of size 64 failed"),
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EMFILE, "Too many open files"),
    duckdb.OutOfMemoryException("Out of Memory Error: could not allocate block"),
    pa.ArrowInvalid("Out of Memory Error: failed to pin block"),
    duckdb.Error("Failed to allocate 8 bytes"),
    *(RuntimeError(words) for words in ("cannot allocate memory", "std::bad_alloc")),
]
FAULTS = [
    OSError("Couldn't deserialize thrift: TProtocolException: Invalid data"),
    pa.ArrowInvalid("CSV parse error"),
    duckdb.InvalidInputException("expected 3 values per row"),
    RuntimeError("GDAL: not a GeoPackage"),
]


def test_a_lack_of_memory_or_disk_and_a_fault_of_the_form(subtests):
    tables.returned(subtests, [(ResourceError, *LACKS), (InputDataError, *FAULTS)], fault_class)
