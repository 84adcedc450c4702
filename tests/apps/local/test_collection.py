"""From lines to support counts: what is taken, what is refused, and what counts once."""

import hashlib
import io
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from psd.apps.local import aggregation, collection
from psd.apps.local.aggregation import count_support
from psd.apps.local.collection import collect
from psd.apps.local.device import Words, draw_report, report_line
from psd.apps.local.randomization import ManyWords, format_reports, randomise_group
from psd.errors import InputDataError, ParameterError, WriteError
from support.local import GRID, HASHING, KARY, campaign, campaign_bytes, support_of

SUBSET = {"name": "subset", "size": 4}
GROUPS = (
    (250_000, GRID, HASHING),
    (250_000, ["0", "1", "2", "3"], KARY),
    (250_000, GRID, SUBSET),
    (250_000, None, None),
)
NONCE = "0123456789abcdef" * 2


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "c.json").write_bytes(campaign_bytes(GROUPS))
    return tmp_path


def gather(folder, content, **options):
    raw = content if isinstance(content, bytes) else "".join(f"{t}\n" for t in content).encode()
    (folder / "lines").write_bytes(raw)
    return collected(folder, "lines", **options)


def collected(folder, lines="lines", into="in", campaign="c.json", **options):
    into, campaign = str(folder / into), str(folder / campaign)
    return collect(campaign, [str(folder / lines)], into, **options)


def reports_of(groups=GROUPS, count=40):
    one, words = campaign(groups), Words()
    return [
        draw_report(one, group, i % (len(cells) + 1), words)
        for i in range(count)
        for group, (_, cells, _) in enumerate(groups)
        if cells
    ]


def plain_support(one, texts):
    total = {}
    for text in texts:
        report = json.loads(text)
        protocol = collection.report_protocol_of(one.groups[report["group"]])
        support = support_of(protocol, json.dumps(report["answer"]))
        total[report["group"]] = total.get(report["group"], 0) + support
    return {group: support.tolist() for group, support in total.items()}


def counted(folder, groups=GROUPS):
    counts = count_support(campaign(groups), folder / "in")
    return {g.group: g.support.tolist() for g in counts.groups}, counts


def by_kind(done):
    return {kind: number for kind, number in done.refused.items() if number}


def test_reports_become_support_counts(folder):
    texts = reports_of()
    done = gather(folder, texts)
    assert (done.reports, by_kind(done)) == (120, {})
    support, counts = counted(folder)
    assert support == plain_support(campaign(GROUPS), texts)
    assert [g.reports for g in counts.groups] == [40, 40, 40]


def line(answer="[1,0]", group=0, digest=None, nonce=NONCE):
    return report_line(digest or campaign(GROUPS).digest, group, nonce, answer)


MALFORMED = [
    "", "{}", line()[:-1], line() + " ", line().replace(":", ": "), line(nonce=NONCE.upper()),
    line(nonce=NONCE[1:]), line().replace('"psd-report":1', '"psd-report":2'),
    line()[:-1] + ',"time":1}', line().replace('"group":0,', ""),
    line().replace('"group":0,', '"group":0,"group":0,'), line('"' + "00" * 2500 + '"'),
    b"\xff\xfe" + line().encode(), line().encode() + b"\r",
    line().encode().replace(b"group", b"gr\0up"),
    *(line(f"[{numbers}]") for numbers in ("-1,0", "true,0", "1.0,0", "01,0", "1,0,0", "")),
    *map(line, (f"[{2**70},0]", '""', '"AB"')),
]  # fmt: skip
REFUSED = {
    "malformed": MALFORMED,
    "campaign": [line(digest="A" * 22)],
    "group": [line(group=3), line(group=17)],
    "answer": [
        *map(line, ("[0,0]", "[27,0]", "[1,3]", "[999999999,0]", "[1]", '"0f00"')),
        *(line(answer, 1) for answer in ("[5]", "[1,0]")),
        *(line(answer, 2) for answer in ('"1f00"', '"070002"', "[1]")),
    ],
}


def test_refused_lines_are_counted_by_kind(folder, subtests):
    good = [text.encode() for text in reports_of(count=1)]
    for kind, texts in REFUSED.items():
        for number, text in enumerate(texts):
            with subtests.test(kind, row=number):
                bad = text if isinstance(text, bytes) else text.encode()
                done = gather(folder, b"\n".join([good[0], bad, good[1]]) + b"\n")
                assert (by_kind(done), done.reports) == ({kind: 1}, 2)


def test_blocks_do_not_cut_lines_and_long_ones_are_skipped(folder, monkeypatch):
    texts = reports_of(count=30)
    monkeypatch.setattr(collection, "_BLOCK", 500)
    long = "x" * 3000
    done = gather(folder, "\n".join([*texts[:45], long, *texts[45:], long]).encode())
    assert (done.reports, done.refused["malformed"]) == (90, 2)
    assert counted(folder)[0] == plain_support(campaign(GROUPS), texts)
    few = "\n".join(texts[:6]).encode()  # the last line needs no end
    assert gather(folder, few).reports == 6
    assert gather(folder, few[:-3]).refused["malformed"] == 1


def test_a_nonce_counts_once_in_a_part_and_across_parts(folder):
    texts = reports_of(count=5)
    done = gather(folder, [*texts, *texts[:4]])
    assert (done.reports, done.refused["repeated"]) == (15, 4)
    gather(folder, texts[3:9])
    support, counts = counted(folder)
    assert counts.repeated == 6
    assert support == plain_support(campaign(GROUPS), texts)
    two = [line('"0f0000"', 2), line('"f00000"', 2)]
    for number, (together, order) in enumerate(product((True, False), (1, -1))):
        for content in [two[::order]] if together else [[text] for text in two[::order]]:
            (folder / "l").write_text("".join(f"{text}\n" for text in content))
            collected(folder, "l", f"in{number}")
        counts = count_support(campaign(GROUPS), folder / f"in{number}")
        assert counts.groups[2].support.tolist() == [1] * 4 + [0] * 13


def test_parts_are_sorted_by_nonce_and_hold_nothing_else(folder):
    gather(folder, reports_of())
    (part,) = (folder / "in").iterdir()
    table = pq.read_table(part)
    assert table.schema.names == ["nonce_high", "nonce_low", "group", "code", "mask"]
    nonces = list(zip(*(table.column(i).to_pylist() for i in (0, 1)), strict=True))
    assert nonces == sorted(set(nonces))
    footer = pq.ParquetFile(part).metadata.metadata
    assert footer.keys() == {b"psd-local"}
    assert json.loads(footer[b"psd-local"]).keys() == {"campaign", "version"}


def test_counts_do_not_depend_on_parts_or_ranges(folder, monkeypatch):
    texts = reports_of(count=400)
    gather(folder, texts)
    whole = counted(folder)[0]
    for number in range(4):
        (folder / "l").write_text("\n".join(texts[number * 300 : (number + 1) * 300 + 50]) + "\n")
        collected(folder, "l", "many")
    monkeypatch.setattr(aggregation, "_RANGE_BYTES", 5000)
    monkeypatch.setattr(collection, "_ROW_GROUP", 64)
    counts = count_support(campaign(GROUPS), folder / "many")
    assert {g.group: g.support.tolist() for g in counts.groups} == whole
    assert counts.repeated == 150


def test_standard_input_is_read_and_what_cannot_be_is_refused(folder, monkeypatch):
    texts = reports_of(count=3)
    (folder / "l").write_text("\n".join(texts) + "\n")
    with (folder / "l").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        done = collect(str(folder / "c.json"), ["-"], str(folder / "in"))
    assert done.reports == 9
    with pytest.raises(InputDataError, match="lines cannot be read"):
        collected(folder, "missing")
    with pytest.raises(WriteError, match="cannot write"):
        collect(str(folder / "c.json"), [], str(folder / "c.json" / "in"))
    with pytest.raises(ParameterError, match="campaign cannot be read"):
        collect(str(folder / "none.json"), [], str(folder / "in"))


def test_folders_without_parts_are_refused_and_tickets_count_once_each(folder):
    (folder / "in").mkdir()
    with pytest.raises(InputDataError, match="got none"):
        counted(folder)
    gather(folder, reports_of())
    with pytest.raises(InputDataError, match="another campaign"):
        count_support(campaign(GROUPS, title="b"), folder / "in")
    one, words, path = campaign(GROUPS), Words(), folder / "tickets"
    tickets = [f"{i:032x}" for i in range(6)]
    path.write_text("".join(hashlib.sha256(t.encode()).hexdigest() + "\n" for t in tickets[:4]))
    texts = [draw_report(one, 0, 1, words, ticket) for ticket in [*tickets, tickets[0]]]
    done = gather(folder, texts, tickets=str(path))
    assert (done.reports, by_kind(done)) == (4, {"ticket": 2, "repeated": 1})
    for content in (b"abc", b"zz" * 32, b"\xff" * 64):
        path.write_bytes(content)
        with pytest.raises(ParameterError, match="tickets"):
            gather(folder, [], tickets=str(path))
    with pytest.raises(ParameterError, match="tickets"):
        gather(folder, [], tickets=str(folder / "none"))


def edited(part, raw, name, values):
    """Write a part again with other values in a column."""
    file = pq.ParquetFile(io.BytesIO(raw))
    table = file.read()
    at = table.schema.get_field_index(name)
    column = pa.array(values * len(table), table.schema.field(at).type)
    table = table.set_column(at, table.schema.field(at), column)
    with pq.ParquetWriter(part, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(file.metadata.metadata)


@pytest.mark.parametrize(
    ("group", "name", "values"),
    [
        (0, "group", [3, -1, 99, 2]),
        (0, "code", [0, -5, 27 * 3]),
        (2, "mask", [None, b"", b"\x0f\0", b"\x1f\0\0", b"\x07\0\x02"]),
    ],
)
def test_parts_with_other_answers_are_refused(folder, group, name, values):
    gather(folder, [text for text in reports_of() if f'"group":{group}' in text])
    (part,) = (folder / "in").iterdir()
    raw = part.read_bytes()
    for value in values:
        edited(part, raw, name, [value])
        with pytest.raises(InputDataError, match="a part holds"):
            counted(folder)
    for damaged in (raw[:-9], b"", b"x" * 99):
        part.write_bytes(damaged)
        with pytest.raises(InputDataError, match="damaged or of another kind"):
            counted(folder)


@pytest.mark.deep
@pytest.mark.parametrize(
    "kills", [15, pytest.param(500, marks=[pytest.mark.nightly, pytest.mark.slow])], ids=str
)
def test_kills_of_the_collector_lose_and_double_no_report(folder, kills):
    groups = ((1_000_000, GRID, HASHING),)
    one = campaign(groups)
    (folder / "c.json").write_bytes(campaign_bytes(groups))
    reports = randomise_group(one, 0, np.arange(3000) % 17, ManyWords(3000))
    (folder / "lines").write_text("\n".join(format_reports(one, reports)) + "\n")
    generator, ends = random.Random(7), Counter()
    for number in range(kills):
        child = os.fork()
        if not child:
            try:
                collection._ROWS = 500
                collection._BLOCK = 50_000
                collected(folder)
            finally:
                os._exit(0)
        if number:  # the first one is killed at once, however fast the machine is
            time.sleep(generator.random() * 0.12)
        os.kill(child, signal.SIGKILL)
        ends[os.waitpid(child, 0)[1]] += 1
    assert ends[signal.SIGKILL]
    collected(folder)
    (counts,) = count_support(one, folder / "in").groups
    assert counts.reports == 3000
    law = counts.protocol
    assert counts.support.tolist() == law.support(law.tabulate(reports.codes)).tolist()
