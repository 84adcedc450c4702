"""The covariate in a release file: what is written is read back, and nothing else is read."""

import base64
import hashlib
import json
import zlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from psd.errors import ParameterError, ReleaseFormatError
from psd.release.codecs import COVARIATE_KEY, pack_covariate
from psd.release.post_processing import PostProcessing
from psd.space.covariate import Covariate
from support.forged_releases import stamped
from support.releases import changed, decode, encode
from support.trees import random_tree, release_of

KEY = COVARIATE_KEY.decode()
RASTER = (np.arange(6, dtype=np.uint16) * 9_999).reshape(2, 3)
NUMBERS = RASTER.astype("<u2").tobytes()


def made(raster=RASTER, density="covariate"):
    release = release_of(random_tree(np.random.default_rng(4)))
    known = Covariate(domain=release.domain, raster=raster)
    return changed(release, covariate=known, post_processing=PostProcessing(density=density))


def packed(numbers):
    return base64.b64encode(zlib.compress(numbers, 9)).decode()


def rewritten(value=..., **changes):
    """A file with another footer value, or another description in the header."""
    content = encode(made())
    file = pq.ParquetFile(pa.BufferReader(content))
    footer = {key.decode(): text.decode() for key, text in file.metadata.metadata.items()}
    header = json.loads(footer["psd"])
    header["covariate"].update(changes)
    if changes.get("covariate", ...) is None:
        header["covariate"] = None
    value = footer[KEY] if value is ... else value
    sink = pa.BufferOutputStream()
    noted = stamped(file.read(), {"psd": json.dumps(header)})
    schema = file.schema_arrow.remove_metadata().with_metadata(noted)
    with pq.ParquetWriter(sink, schema) as writer:
        writer.write_table(file.read().replace_schema_metadata(noted))
        if value is not None:
            writer.add_key_value_metadata({KEY: value})
    return sink.getvalue().to_pybytes()


def test_a_covariate_comes_back():
    content = encode(made())
    loaded = decode(content)
    assert np.array_equal(loaded.record.covariate.raster, RASTER)
    assert (loaded.record.covariate.domain, loaded.record.post_processing.density) == (
        loaded.domain,
        "covariate",
    )
    assert encode(loaded) == encode(made()) == content
    rows = np.array([[1, 2, 30, 40], [0, 0, 64, 64]])
    assert loaded.query(rows).table.equals(made().query(rows).table)
    # Also one that only steered, and one of a file that was rewritten.
    for other in (encode(made(density="uniform")), rewritten()):
        assert np.array_equal(decode(other).record.covariate.raster, RASTER)
    raster = np.random.default_rng(1).integers(0, 2**16, (1024, 1024), np.uint16)
    release = made(raster)
    content = encode(release)
    assert np.array_equal(decode(content).record.covariate.raster, raster)
    assert len(content) - len(encode(made())) < 1.02 * len(pack_covariate(release.record.covariate))


def test_the_footer_is_as_documented():
    metadata = pq.ParquetFile(pa.BufferReader(encode(made()))).metadata.metadata
    assert zlib.decompress(base64.b64decode(metadata[COVARIATE_KEY])) == NUMBERS
    assert json.loads(metadata[b"psd"])["covariate"] == {
        "columns": 3,
        "rows": 2,
        "sha256": hashlib.sha256(NUMBERS).hexdigest(),
    }
    plain = encode(changed(made(), covariate=None, post_processing=PostProcessing()))
    metadata = pq.ParquetFile(pa.BufferReader(plain)).metadata.metadata
    assert COVARIATE_KEY not in metadata
    assert json.loads(metadata[b"psd"])["covariate"] is None


def test_other_covariates_are_refused(subtests):
    damaged, size = "its covariate is damaged", "its covariate does not have the size"
    differs, described = "header and footer disagree on whether there is", "field covariate"
    trailing = base64.b64encode(zlib.compress(NUMBERS) + b"x").decode()
    zeros = bytes(len(NUMBERS))
    zero_digest = {"sha256": hashlib.sha256(zeros).hexdigest()}
    for name, words, value, changes in (
        ("no value", differs, None, {}),
        ("no description", differs, ..., {"covariate": None}),
        ("no base64", damaged, "!" + packed(NUMBERS), {}),
        ("no zlib", damaged, base64.b64encode(b"x" * 40).decode(), {}),
        ("cut short", size, packed(NUMBERS)[:12], {}),
        ("too few numbers", size, packed(NUMBERS[:-2]), {}),
        ("too many numbers", size, packed(NUMBERS + b"\0\0"), {}),
        ("other numbers", "does not match the digest", packed(NUMBERS[::-1]), {}),
        ("something after it", size, trailing, {}),
        ("other digest", "does not match", ..., {"columns": 2, "rows": 3, "sha256": "0" * 64}),
        ("too wide", described, ..., {"columns": 1025}),
        ("no row", described, ..., {"rows": 0}),
        ("a truth value", described, ..., {"rows": True}),
        ("a float", described, ..., {"rows": 2.0}),
        ("short digest", described, ..., {"sha256": "0" * 63}),
        ("no digest", described, ..., {"sha256": "G" * 64}),
        ("capital letters", described, ..., {"sha256": "A" * 64}),
        ("a number", described, ..., {"sha256": 5}),
        ("another field", described, ..., {"file": "land.gpkg"}),
        ("zeros", "0 everywhere", packed(zeros), zero_digest),
    ):
        with subtests.test(name), pytest.raises(ReleaseFormatError, match=words):
            decode(rewritten(value, **changes))
    with pytest.raises(ParameterError, match="without a covariate"):
        changed(made(), covariate=None)
    other = Covariate(domain=replace(made().domain, lattice=(2, 2)), raster=RASTER)
    with pytest.raises(ParameterError, match="the domain of the release"):
        changed(made(), covariate=other)


def test_a_bomb_is_not_unpacked(monkeypatch):
    bomb = packed(bytes(2**26))
    unpacked, original = [], zlib.decompressobj

    class Watched:
        def __init__(self):
            self.inflate = original()

        def decompress(self, value, most):
            content = self.inflate.decompress(value, most)
            unpacked.append(len(content))
            return content

        def __getattr__(self, name):
            return getattr(self.inflate, name)

    monkeypatch.setattr("psd.release.codecs.zlib.decompressobj", Watched)
    with pytest.raises(ReleaseFormatError, match="covariate does not have the size"):
        decode(rewritten(bomb))
    assert unpacked == [len(NUMBERS) + 1]
