"""Values of the footer: what is packed is unpacked, and nothing else."""

import base64
import zlib

import pytest

from psd.errors import ReleaseFormatError
from psd.release.footer_value import FooterValue, digest_of, is_digest, pack

RASTER = FooterValue(exists="there is a raster", subject="its raster", plural=False)
CONTENT = b"abc" * 99


def test_bytes_come_back():
    assert RASTER.unpack(pack(CONTENT), len(CONTENT), digest_of(CONTENT)) == CONTENT
    assert pack(CONTENT) == pack(bytes(CONTENT))


@pytest.mark.parametrize(
    ("value", "size", "digest", "message"),
    [
        (b"%%%", 297, digest_of(CONTENT), "its raster is damaged"),
        (base64.b64encode(b"no zlib"), 297, digest_of(CONTENT), "its raster is damaged"),
        (pack(CONTENT), 296, digest_of(CONTENT), "does not have the size that the header states"),
        (pack(CONTENT), 298, digest_of(CONTENT), "does not have the size that the header states"),
        (base64.b64encode(zlib.compress(CONTENT) + b"x"), 297, digest_of(CONTENT), "the size"),
        (pack(CONTENT), 297, "0" * 64, "does not match the digest in the header"),
    ],
)
def test_other_bytes_are_refused(value, size, digest, message):
    with pytest.raises(ReleaseFormatError, match=message):
        RASTER.unpack(value, size, digest)


def test_header_and_footer_have_it_together():
    assert RASTER.pair(None, None) is None
    assert RASTER.pair({}, b"") == ({}, b"")
    for described, value in (({}, None), (None, b"")):
        with pytest.raises(ReleaseFormatError, match="disagree on whether there is a raster"):
            RASTER.pair(described, value)


def test_messages_of_several_have_the_plural():
    regions = FooterValue(exists="there are regions", subject="its regions", plural=True)
    with pytest.raises(ReleaseFormatError, match="its regions do not have the size"):
        regions.unpack(pack(b"ab"), 1, digest_of(b"ab"))
    assert regions.damaged == "its regions are damaged"


@pytest.mark.parametrize("value", [None, 5, "", "0" * 63, "g" * 64, "A" * 64])
def test_other_values_are_no_digests(value):
    assert not is_digest(value)
