"""The noise of counts in the header of a file: what is written, and what is refused."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psd
from psd.errors import ParameterError, ReleaseFormatError
from psd.privacy.count_noise import CountNoise
from psd.privacy.unit import PrivacyUnit
from psd.release.codecs import is_noise, noise_fields, noise_header
from psd.release.file import KEY
from psd.release.schema import record_fields, record_header
from psd.release.series import SeriesRecord
from psd.space.time_slices import TimeSlices
from support.forged_releases import file_of, table_of
from support.noise import LOSS, gaussian_record
from support.releases import decode, decode_series, encode
from support.tables import refused

STATED = {
    "law": "discrete-gaussian",
    "squared_sensitivity": 12,
    "factor": "1",
    "rho": "0.024355970359",
    "delta": "1e-6",
}


def columns_of(content):
    return pq.read_schema(pa.BufferReader(content)).names


def test_a_gaussian_release_is_read_as_it_was_written():
    release = psd.Release(gaussian_record())
    content = encode(release)
    again = decode(content)
    assert columns_of(content)[-1] == "loss"
    assert again.digest == release.digest
    assert (again.record.loss, again.tree.noise) == (LOSS, CountNoise.gaussian(12))
    assert again.record.guarantee_text.startswith(
        "epsilon 1 and delta 1e-6 (rho 0.024355970359) per"
    )
    assert again.index.fit.estimates.variance[1:] == pytest.approx(12 / (2 * LOSS.rho / 10**12))
    box = (0, 0, 1, 1)
    assert again.query([box]).table.equals(release.query([box]).table)
    record = gaussian_record()
    noise = replace(record.tree.noise, factor=Fraction(7, 3))
    release = psd.Release(replace(record, tree=replace(record.tree, noise=noise)))
    again = decode(encode(release))
    assert again.tree.noise.factor == Fraction(7, 3)
    assert again.index.fit.estimates.variance == pytest.approx(release.index.fit.estimates.variance)
    record = gaussian_record()
    assert noise_header(record) == STATED
    assert is_noise(STATED)
    assert noise_fields(STATED) == {
        "noise": CountNoise.gaussian(12),
        "rho": LOSS.rho,
        "delta": Fraction(1, 10**6),
    }


def in_epsilon(**options):
    domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    return psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 1), [5], 1, domain=domain, **options
    )


def test_the_noise_of_releases_in_epsilon_alone_follows_from_their_unit():
    release = in_epsilon(unit=PrivacyUnit(kind="user", max_contributions=3))
    assert noise_header(release.record) is None
    assert decode(encode(release)).tree.noise == CountNoise.laplace(3)


def test_a_series_has_one_noise_and_is_not_joined_of_releases():
    days = TimeSlices.parse("day", "2024-01-01..2024-01-02")
    record = gaussian_record()
    series = psd.Release(SeriesRecord(slices=days, releases=(record, record), scope="slice"))
    content = encode(series)
    assert columns_of(content)[-1] == "loss"
    again = decode_series(content)
    assert again.record.epsilon == LOSS.epsilon  # and not twice as much: rho is of both slices
    assert again.record.guarantee_text == series.record.guarantee_text
    assert again.record.releases[1].tree.noise == CountNoise.gaussian(12)
    with pytest.raises(ParameterError, match="differ in the noise of their counts"):
        SeriesRecord(slices=days, releases=(record, gaussian_record(13)))
    with pytest.raises(ParameterError, match="must have losses in epsilon to be joined"):
        psd.Release.from_slices(days, [psd.Release(record)] * 2)


def test_headers_that_are_not_valid(subtests):
    header = record_header(gaussian_record())
    slow = "1e999999999", "0.0241e4000359"  # that take minutes to compute
    zeros = "0.0243559703590", "0.0000000000001"  # one too many, and half a part
    for name, *values in (
        ("law", "uniform", "__init__", None, "discrete-laplace"),
        ("squared_sensitivity", 0, 2**63, True, 12.0),
        ("factor", "0", "2/4", "1/0", "-1", 1, slow[0]),
        ("rho", None, "0", *zeros, slow[1], "NaN", "Infinity", "-1", "1" * 41),
        ("delta", None, "0.000001", "1e-2", "0"),
        ("more", 1),
    ):
        for value in values:
            forged = {**STATED, name: value}
            told = pytest.raises(ReleaseFormatError, match="header field noise is not valid")
            with subtests.test(name, value=value), told:
                record_fields(json.loads(json.dumps({**header, "noise": forged})))
            assert not is_noise(forged)
    assert not any(map(is_noise, ([], "gaussian", 1, {"law": "discrete-gaussian"})))
    tree = gaussian_record().tree
    parts = {"rho": None}, {"delta": None}, {"rho": None, "delta": None}
    other = {"tree": replace(tree, noise=CountNoise())}
    table = [("rho and delta must be given if and only if", *parts, other)]
    refused(subtests, ParameterError, table, lambda fields: gaussian_record(**fields))
    huge = replace(tree, loss=np.where(tree.loss > 0, 1_000 * 10**12 + 1, 0))
    with pytest.raises(ReleaseFormatError, match="a rho is negative or above 1,000"):
        gaussian_record(tree=huge)


def rewritten(content, change):
    """The same nodes under another header."""
    table = table_of(content)
    header = {**json.loads(table.schema.metadata[KEY]), **change}
    footer = {**table.schema.metadata, KEY: json.dumps(header).encode()}
    return file_of(table, footer, write_page_checksum=True)


def test_rho_that_does_not_fit_is_refused(subtests):
    large = "rho must be above 0 and at most that of epsilon"
    table = [
        (large, {"noise": {**STATED, "rho": "0.025"}}, {"epsilon": "0.5"}),
        ("a path from the root must spend at most rho", {"noise": {**STATED, "rho": "0.001"}}),
        ("must spend at most epsilon", {"noise": None}),
        ("other fields than its format", {"format": 9}),
    ]
    content = encode(psd.Release(gaussian_record()))
    refused(subtests, ReleaseFormatError, table, lambda change: decode(rewritten(content, change)))
