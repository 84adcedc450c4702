"""Reports of clients of google/rappor: their bits, what is refused, and what counts once."""

import hashlib

import numpy as np
import pyarrow.parquet as pq
import pytest

from psd.apps.local.aggregation import count_support
from psd.apps.local.answer_design import design_options, design_words
from psd.apps.local.answer_tables import tabulate_words
from psd.apps.local.campaigns import encode_campaign
from psd.apps.local.collection import SCHEMA, collect
from psd.errors import InputDataError, ParameterError

# Word, cohort, hashes and bits, and the bits that google/rappor's client sets.
GOLDEN = [
    ("abc", 0, 2, 16, [6, 13]),
    ("abc", 1, 2, 16, [3, 12]),
    ("v1", 0, 2, 32, [24, 26]),
    ("seoul", 0, 2, 32, [15, 1]),
    ("seoul", 3, 2, 128, [97, 57]),
]
HEAD = "client,cohort,bloom,prr,irr"
LAW = {"flips": 64, "p": "0.5", "q": "0.75", "hashes": 2}


def bit_string(ones, bits):
    """Text of a set of bits, the highest first, as their client writes it."""
    return "".join("1" if i in ones else "0" for i in reversed(range(bits)))


@pytest.fixture
def gather(tmp_path):
    def run(text, *, into="in", files=("r.csv",), campaign=None, **settings):
        one = campaign or design_words(None, 9, settings={**LAW, "bits": 16, **settings})
        (tmp_path / "c.json").write_bytes(encode_campaign(one))
        for name in files:
            (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        paths, folder = [str(tmp_path / name) for name in files], tmp_path / into
        done = collect(str(tmp_path / "c.json"), paths, str(folder), rappor_csv=True)
        return done, folder, one

    return run


def table_of(one, folder):
    return count_support(one, folder).groups[0].support


def test_bits_and_cohorts_are_those_of_their_client(gather, subtests):
    for number, (word, cohort, hashes, bits, ones) in enumerate(GOLDEN):
        with subtests.test(word, cohort=cohort):
            irr, other = bit_string(ones, bits), "1" * bits
            text = f"{HEAD}\r\nc1,{cohort},{other},{other},{irr}\r\n"
            done, folder, one = gather(text, into=f"in{number}", bits=bits)
            assert (done.reports, sum(done.refused.values())) == (1, 0)
            table = table_of(one, folder)
            assert np.flatnonzero(table[cohort, :-1]).tolist() == sorted(ones)
            assert table[:, -1].sum() == table[cohort, -1] == 1
            draw = one.groups[0].draw
            assert (draw.bits(word, cohort), draw.hashes) == (set(ones), hashes)


def test_columns_have_any_order_and_quotes(gather):
    texts = [f"\ufeffcohort,bits\n3,{5:016b}\n", f'irr,user,cohort\n"{5:016b}",x,"3"']
    for number, text in enumerate(texts):
        _, folder, one = gather(text, into=f"in{number}")
        assert np.argwhere(table_of(one, folder)).tolist() == [[3, 0], [3, 2], [3, 16]]


def test_rows_that_the_campaign_does_not_have_are_counted_and_not_kept(gather):
    good, rows = "0" * 15 + "1", ["0", "15", "16", "-1", "01", " 1", "", "1.0", "x", "²"]
    bad = ["0" * 15, "0" * 17, "", "0" * 15 + "2", "0" * 7 + "_" + "0" * 8, "0x" + "0" * 14]
    lines = [f"c,{cohort},,,{good}" for cohort in rows]
    lines += [f"c,0,,,{bits}" for bits in bad] + ["c,0", "c,1,,,", ""]
    done, folder, one = gather("\n".join([HEAD, *lines]))
    assert done.reports == 2
    assert done.refused["answer"] == len(lines) - 3  # of which one is empty
    assert table_of(one, folder)[[0, 15], 0].tolist() == [1, 1]


def test_a_file_counts_once_and_another_with_the_same_rows_again(gather, tmp_path):
    rows = "".join(f"{i % 4},{i % 2:016b}\n" for i in range(500))
    done, folder, one = gather("cohort,bits\n" + rows, files=("a.csv", "b.csv"))
    assert (done.reports, done.refused["repeated"]) == (500, 500)
    gather("cohort,bits\n" + rows)
    assert table_of(one, folder)[:, -1].sum() == 500
    gather("bits,cohort\n" + "".join(f"{i % 2:016b},{i % 4}\n" for i in range(500)))
    assert table_of(one, folder)[:, -1].sum() == 1000
    parts = [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    for part in parts:
        assert part.schema.remove_metadata() == SCHEMA
        high = part.column("nonce_high").to_numpy()
        assert (np.diff(high.astype(object)) > 0).all()
        share = high.astype(np.float64) / 2**64
        assert abs(share.mean() - 0.5) < 0.1
        masks = part.column("mask").to_pylist()
        assert masks != [bytes([i % 2, 0, i % 4, 0]) for i in range(500)]


def test_files_and_campaigns_that_are_refused(gather, tmp_path, subtests):
    for text, told in [
        ("", "must have the columns cohort, and irr or bits"),
        ("cohort,prr\n", "must have the columns cohort, and irr or bits"),
        ("client,irr\n", "must have the columns cohort, and irr or bits"),
        (b"cohort,bits\n\xff,1\n", "lines must be CSV in UTF-8"),
        ('cohort,bits\n"1"x,1\n', "lines must be CSV in UTF-8"),
    ]:
        with subtests.test(told, text=text), pytest.raises(InputDataError, match=told):
            gather(text)
    assert list((tmp_path / "in").glob("*.parquet")) == []
    with pytest.raises(ParameterError, match="tickets must be without rappor_csv"):
        collect(str(tmp_path / "c.json"), [], "x", tickets="t", rappor_csv=True)
    with pytest.raises(InputDataError, match="lines cannot be read"):
        collect(str(tmp_path / "c.json"), ["none.csv"], str(tmp_path / "x"), rappor_csv=True)
    with pytest.raises(ParameterError, match="must ask for words, got options"):
        gather("cohort,bits\n", campaign=design_options(["a"], 1, 9, protocol="rappor"))


def their_reports(words, bits, cohorts, generator):
    """CSV of their client, written again: h = 2, f = .5, p = .5, q = .75."""
    lines = [HEAD]
    for number, word in enumerate(words):
        cohort = number % cohorts
        digest = hashlib.md5(cohort.to_bytes(4, "big") + word.encode()).digest()
        bloom = [int(i in {byte % bits for byte in digest[:2]}) for i in range(bits)]
        keys = generator.integers(0, 256, bits)  # of HMAC-SHA256: one bit, and seven against f
        prr = [key & 1 if key >> 1 < 64 else bit for key, bit in zip(keys, bloom, strict=True)]
        draws = generator.random(bits)
        irr = [int(draw < (0.75 if bit else 0.5)) for draw, bit in zip(draws, prr, strict=True)]
        texts = ("".join(map(str, reversed(each))) for each in (bloom, prr, irr))
        lines.append(f"c{number},{cohort},{','.join(texts)}")
    return "\n".join(lines)


@pytest.mark.deep
def test_words_of_their_reports_are_decoded(gather, tmp_path):
    true = {"v1": 12_000, "v2": 6_000, "v3": 3_000}
    generator = np.random.default_rng(1)
    words = generator.permutation(np.repeat(list(true), list(true.values())))
    text = their_reports(words, 32, 16, generator)
    done, folder, _ = gather(text, bits=32, cohorts=16)
    assert done.reports == 21_000
    rows = tabulate_words(str(tmp_path / "c.json"), str(folder), [f"v{i}" for i in range(1, 21)])
    scores = [(row.unbiased - true.get(row.word, 0)) / row.error for row in rows]
    assert max(map(abs, scores)) < 5
    assert 0.5 < np.std(scores) < 1.6
    assert {row.word for row in rows if row.present} >= {"v1", "v2"}
