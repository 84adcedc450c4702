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
from psd.release.file import KEY
from psd.release.noise_codec import is_noise, noise_fields, noise_header
from psd.release.schema import LOSS_FORMAT, record_fields, record_header
from psd.release.series import SeriesRecord
from psd.space.time_slices import TimeSlices
from support.noise import LOSS, gaussian_record
from support.releases import decode, decode_series, encode

STATED = {
    "law": "discrete-gaussian",
    "squared_sensitivity": 12,
    "factor": "1",
    "rho": "0.024355970359",
    "delta": "1e-6",
}


def columns_of(content):
    return pq.read_schema(pa.BufferReader(content)).names


def test_the_header_names_law_rho_and_delta():
    record = gaussian_record()
    assert noise_header(record) == STATED
    assert is_noise(STATED)
    assert noise_fields(STATED) == {
        "noise": CountNoise.gaussian(12),
        "rho": LOSS.rho,
        "delta": Fraction(1, 10**6),
    }


def test_a_gaussian_release_is_read_as_it_was_written():
    release = psd.Release(gaussian_record())
    content = encode(release)
    again = decode(content)
    assert columns_of(content)[-1] == "loss"
    assert again.digest == release.digest
    assert again.record.loss == LOSS
    assert again.tree.noise == CountNoise.gaussian(12)
    assert again.guarantee_text.startswith("epsilon 1 and delta 1e-6 (rho 0.024355970359) per")
    assert again.estimates.variance[1:] == pytest.approx(12 / (2 * LOSS.rho / 10**12))
    box = (0, 0, 1, 1)
    assert again.query([box]).equals(release.query([box]))


def test_releases_in_epsilon_alone_keep_their_format_and_column():
    domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    unit = PrivacyUnit(kind="user", max_contributions=3)
    release = psd.Release.from_counts(psd.grid_tree(domain, 1), [5], 1, domain=domain, unit=unit)
    assert noise_header(release.record) is None
    assert record_header(release.record)["format"] < LOSS_FORMAT
    assert columns_of(encode(release))[-1] == "nano_epsilon"
    assert decode(encode(release)).tree.noise == CountNoise.laplace(3)


def test_a_factor_on_the_variance_is_stated_and_read():
    record = gaussian_record()
    noise = replace(record.tree.noise, factor=Fraction(7, 3))
    release = psd.Release(replace(record, tree=replace(record.tree, noise=noise)))
    again = decode(encode(release))
    assert again.tree.noise.factor == Fraction(7, 3)
    assert again.estimates.variance == pytest.approx(release.estimates.variance)


def test_a_series_has_one_noise():
    days = TimeSlices.parse("day", "2024-01-01..2024-01-02")
    record = gaussian_record()
    series = psd.SeriesRelease(SeriesRecord(slices=days, releases=(record, record), scope="slice"))
    content = encode(series)
    assert columns_of(content)[-1] == "loss"
    again = decode_series(content)
    assert again.record.epsilon == LOSS.epsilon  # and not twice as much: rho is of both slices
    assert again.guarantee_text == series.guarantee_text
    assert again.releases[1].tree.noise == CountNoise.gaussian(12)
    with pytest.raises(ParameterError, match="differ in the noise of their counts"):
        SeriesRecord(slices=days, releases=(record, gaussian_record(13)))


def test_gaussian_releases_are_not_joined_to_a_series():
    days = TimeSlices.parse("day", "2024-01-01..2024-01-02")
    release = psd.Release(gaussian_record())
    with pytest.raises(ParameterError, match="must have losses in epsilon to be joined"):
        psd.SeriesRelease.of(days, [release, release])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"law": "uniform"}, id="another law"),
        pytest.param({"law": "__init__"}, id="no law"),
        pytest.param({"law": None}, id="null law"),
        pytest.param({"squared_sensitivity": 0}, id="no sensitivity"),
        pytest.param({"squared_sensitivity": 2**63}, id="huge sensitivity"),
        pytest.param({"squared_sensitivity": True}, id="true"),
        pytest.param({"squared_sensitivity": 12.0}, id="a float"),
        pytest.param({"factor": "0"}, id="factor 0"),
        pytest.param({"factor": "2/4"}, id="factor not in lowest terms"),
        pytest.param({"factor": "1/0"}, id="division by 0"),
        pytest.param({"factor": "-1"}, id="negative factor"),
        pytest.param({"factor": 1}, id="factor a number"),
        pytest.param({"factor": "1e999999999"}, id="factor that takes minutes to compute"),
        pytest.param({"rho": None}, id="no rho"),
        pytest.param({"rho": "0"}, id="rho 0"),
        pytest.param({"rho": "0.0243559703590"}, id="rho with a further 0"),
        pytest.param({"rho": "0.0000000000001"}, id="rho of half a part"),
        pytest.param({"rho": "0.0241e4000359"}, id="rho that takes long to compute"),
        pytest.param({"rho": "NaN"}, id="rho not a number"),
        pytest.param({"rho": "Infinity"}, id="rho infinite"),
        pytest.param({"rho": "-1"}, id="negative rho"),
        pytest.param({"rho": "1" * 41}, id="long rho"),
        pytest.param({"delta": None}, id="no delta"),
        pytest.param({"delta": "0.000001"}, id="delta in another form"),
        pytest.param({"delta": "1e-2"}, id="large delta"),
        pytest.param({"delta": "0"}, id="delta 0"),
        pytest.param({"law": "discrete-laplace"}, id="rho of a law in epsilon"),
        pytest.param({"more": 1}, id="a further key"),
    ],
)
def test_headers_that_are_not_valid(change):
    value = {**STATED, **change}
    assert not is_noise(value)
    header = {**record_header(gaussian_record()), "noise": value}
    with pytest.raises(ReleaseFormatError, match="header field noise is not valid"):
        record_fields(json.loads(json.dumps(header)))


@pytest.mark.parametrize("value", [[], "gaussian", 1, {"law": "discrete-gaussian"}])
def test_values_of_other_types_are_not_valid(value):
    assert not is_noise(value)


def rewritten(content, change):
    """The same nodes under another header."""
    table = pq.read_table(pa.BufferReader(content))
    header = {**json.loads(table.schema.metadata[KEY]), **change}
    footer = {**table.schema.metadata, KEY: json.dumps(header).encode()}
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(footer), sink, write_page_checksum=True)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": {**STATED, "rho": "0.025"}}, "rho must be above 0 and at most that of epsilon"),
        ({"noise": {**STATED, "rho": "0.001"}}, "a path from the root must spend at most rho"),
        ({"epsilon": "0.5"}, "rho must be above 0 and at most that of epsilon"),
        ({"noise": None}, "must spend at most epsilon"),
        ({"format": 9}, "other fields than its format"),
    ],
)
def test_rho_that_does_not_fit_is_refused(change, message):
    content = encode(psd.Release(gaussian_record()))
    with pytest.raises(ReleaseFormatError, match=message):
        decode(rewritten(content, change))


def test_a_column_of_another_format_is_refused():
    """Losses of a format before the column ``loss`` are nano-epsilons, whatever the header says."""
    domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    release = psd.Release.from_counts(psd.grid_tree(domain, 1), [5], 1, domain=domain)
    header = record_header(gaussian_record())
    with pytest.raises(ReleaseFormatError, match="columns are not those of a release"):
        decode(rewritten(encode(release), {**header, "method": "given", "source": "given"}))


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"rho": None}, id="delta alone"),
        pytest.param({"delta": None}, id="rho alone"),
        pytest.param({"rho": None, "delta": None}, id="noise alone"),
    ],
)
def test_a_record_has_all_of_noise_rho_and_delta_or_none(fields):
    with pytest.raises(ParameterError, match="rho and delta must be given if and only if"):
        gaussian_record(**fields)


def test_rho_without_gaussian_noise_is_refused():
    tree = replace(gaussian_record().tree, noise=CountNoise())
    with pytest.raises(ParameterError, match="rho and delta must be given if and only if"):
        gaussian_record(tree=tree)


def test_losses_above_the_largest_are_refused():
    tree = gaussian_record().tree
    huge = replace(tree, epsilon=np.where(tree.epsilon > 0, 1_000 * 10**12 + 1, 0))
    with pytest.raises(ReleaseFormatError, match="a rho is negative or above 1,000"):
        gaussian_record(tree=huge)
