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
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from psd.errors import InputDataError, ParameterError, WriteError
from psd.local import counting, lines, parts
from psd.local.bulk import ManyWords, format_reports, randomise_group
from psd.local.collection import collect
from psd.local.counting import count_support
from psd.local.device import Words, draw_report, report_line
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
    """Collect lines of text or bytes."""
    raw = content if isinstance(content, bytes) else "".join(f"{t}\n" for t in content).encode()
    (folder / "lines").write_bytes(raw)
    return collect(str(folder / "c.json"), [str(folder / "lines")], str(folder / "in"), **options)


def reports_of(groups=GROUPS, count=40):
    one, words = campaign(groups), Words()
    return [
        draw_report(one, group, i % (len(cells) + 1), words)
        for i in range(count)
        for group, (_, cells, _) in enumerate(groups)
        if cells
    ]


def plain_support(one, texts):
    """Support counts, report by report."""
    total = {}
    for text in texts:
        report = json.loads(text)
        protocol = lines.report_protocol_of(one.groups[report["group"]])
        support = support_of(protocol, json.dumps(report["answer"]))
        total[report["group"]] = total.get(report["group"], 0) + support
    return {group: support.tolist() for group, support in total.items()}


def counted(folder, groups=GROUPS):
    counts = count_support(campaign(groups), folder / "in")
    return {g.group: g.support.tolist() for g in counts.groups}, counts


def test_reports_become_support_counts(folder):
    texts = reports_of()
    done = gather(folder, texts)
    assert (done.reports, set(done.refused.values())) == (120, {0})
    support, counts = counted(folder)
    assert support == plain_support(campaign(GROUPS), texts)
    assert [g.reports for g in counts.groups] == [40, 40, 40]


def line(group=0, answer="[1,0]", digest=None, nonce=NONCE):
    return report_line(digest or campaign(GROUPS).digest, group, nonce, answer)


REFUSED = [
    ("malformed", ""),
    ("malformed", "{}"),
    ("malformed", line()[:-1]),
    ("malformed", line() + " "),
    ("malformed", line().replace(":", ": ")),
    ("malformed", line(answer="[-1,0]")),
    ("malformed", line(answer="[true,0]")),
    ("malformed", line(answer="[1.0,0]")),
    ("malformed", line(answer=f"[{2**70},0]")),
    ("malformed", line(answer="[01,0]")),
    ("malformed", line(answer="[1,0,0]")),
    ("malformed", line(answer="[]")),
    ("malformed", line(answer='""')),
    ("malformed", line(answer='"AB"')),
    ("malformed", line(nonce=NONCE.upper())),
    ("malformed", line(nonce=NONCE[1:])),
    ("malformed", line().replace('"psd-report":1', '"psd-report":2')),
    ("malformed", line()[:-1] + ',"time":1}'),
    ("malformed", line().replace('"group":0,', "")),
    ("malformed", line().replace('"group":0,', '"group":0,"group":0,')),
    ("malformed", line(answer='"' + "00" * 2500 + '"')),
    ("malformed", b"\xff\xfe" + line().encode()),
    ("malformed", line().encode() + b"\r"),
    ("malformed", line().encode().replace(b"group", b"gr\0up")),
    ("campaign", line(digest="A" * 22)),
    ("group", line(group=3)),
    ("group", line(group=17)),
    ("answer", line(answer="[0,0]")),
    ("answer", line(answer="[27,0]")),
    ("answer", line(answer="[1,3]")),
    ("answer", line(answer="[999999999,0]")),
    ("answer", line(answer="[1]")),
    ("answer", line(answer='"0f00"')),
    ("answer", line(group=1, answer="[5]")),
    ("answer", line(group=1, answer="[1,0]")),
    ("answer", line(group=2, answer='"1f0000"').replace("1f0000", "1f00")),
    ("answer", line(group=2, answer='"070002"')),
    ("answer", line(group=2, answer="[1]")),
]


@pytest.mark.parametrize(("kind", "text"), REFUSED, ids=range(len(REFUSED)))
def test_refused_lines_are_counted_by_kind(folder, kind, text):
    good = reports_of(count=1)
    bad = text if isinstance(text, bytes) else text.encode()
    done = gather(folder, b"\n".join([good[0].encode(), bad, good[1].encode()]) + b"\n")
    assert {k: n for k, n in done.refused.items() if n} == {kind: 1}
    assert done.reports == 2


def test_blocks_do_not_cut_lines_and_long_ones_are_skipped(folder, monkeypatch):
    texts = reports_of(count=30)
    monkeypatch.setattr(lines, "_BLOCK", 500)
    long = "x" * 3000
    done = gather(folder, "\n".join([*texts[:45], long, *texts[45:], long]).encode())
    assert (done.reports, done.refused["malformed"]) == (90, 2)
    assert counted(folder)[0] == plain_support(campaign(GROUPS), texts)


def test_the_last_line_needs_no_end_and_a_cut_one_is_refused(folder):
    texts = reports_of(count=2)
    assert gather(folder, "\n".join(texts).encode()).reports == 6
    assert gather(folder, "\n".join(texts).encode()[:-3]).refused["malformed"] == 1


def test_a_nonce_counts_once_in_a_part_and_across_parts(folder):
    texts = reports_of(count=5)
    done = gather(folder, [*texts, *texts[:4]])
    assert (done.reports, done.refused["repeated"]) == (15, 4)
    gather(folder, texts[3:9])
    support, counts = counted(folder)
    assert counts.repeated == 6
    assert support == plain_support(campaign(GROUPS), texts)


def test_which_of_two_reports_with_a_nonce_counts_depends_on_no_order(folder):
    two = [line(group=2, answer='"0f0000"'), line(group=2, answer='"f00000"')]
    for number, (together, order) in enumerate(((True, 1), (True, -1), (False, 1), (False, -1))):
        into = str(folder / f"in{number}")
        for name, content in enumerate([two[::order]] if together else [[t] for t in two[::order]]):
            (folder / f"l{name}").write_text("".join(f"{t}\n" for t in content))
            collect(str(folder / "c.json"), [str(folder / f"l{name}")], into)
        counts = count_support(campaign(GROUPS), Path(into))
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
        collect(str(folder / "c.json"), [str(folder / "l")], str(folder / "many"))
    monkeypatch.setattr(counting, "_RANGE_BYTES", 5000)
    monkeypatch.setattr(parts, "_ROW_GROUP", 64)
    counts = count_support(campaign(GROUPS), folder / "many")
    assert {g.group: g.support.tolist() for g in counts.groups} == whole
    assert counts.repeated == 150


def test_standard_input_is_read(folder, monkeypatch):
    texts = reports_of(count=3)
    (folder / "l").write_text("\n".join(texts) + "\n")
    with (folder / "l").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        done = collect(str(folder / "c.json"), ["-"], str(folder / "in"))
    assert done.reports == 9


def test_tickets_count_once_each(folder):
    one, words = campaign(GROUPS), Words()
    tickets = [f"{i:032x}" for i in range(6)]
    hashes = "".join(hashlib.sha256(t.encode()).hexdigest() + "\n" for t in tickets[:4])
    (folder / "tickets").write_text(hashes)
    texts = [draw_report(one, 0, 1, words, ticket) for ticket in [*tickets, tickets[0]]]
    done = gather(folder, texts, tickets=str(folder / "tickets"))
    assert done.reports == 4
    assert {k: n for k, n in done.refused.items() if n} == {"ticket": 2, "repeated": 1}


@pytest.mark.parametrize("content", [b"abc", b"zz" * 32, b"\xff" * 64, None])
def test_bad_tickets_are_refused(folder, content):
    if content is not None:
        (folder / "tickets").write_bytes(content)
    with pytest.raises(ParameterError, match="tickets"):
        gather(folder, [], tickets=str(folder / "tickets"))


def test_parts_of_two_campaigns_are_refused(folder):
    gather(folder, reports_of())
    with pytest.raises(InputDataError, match="another campaign"):
        count_support(campaign(GROUPS, title="b"), folder / "in")


def test_a_folder_without_parts_is_refused(folder):
    (folder / "in").mkdir()
    with pytest.raises(InputDataError, match="got none"):
        counted(folder)


def edited(folder, change):
    """The part with a changed column."""
    (part,) = (folder / "in").iterdir()
    file = pq.ParquetFile(part)
    table = change(file.read())
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(file.metadata.metadata)
    part.write_bytes(sink.getvalue())


def with_column(name, values):
    def change(table):
        i = table.schema.get_field_index(name)
        column = pa.array(values * len(table), table.schema.field(i).type)
        return table.set_column(i, table.schema.field(i), column)

    return change


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("group", [3]),
        ("group", [-1]),
        ("group", [99]),
        ("group", [2]),
        ("code", [0]),
        ("code", [-5]),
        ("code", [27 * 3]),
    ],
)
def test_parts_with_other_answers_are_refused(folder, name, values):
    gather(folder, [t for t in reports_of() if '"group":0' in t])
    edited(folder, with_column(name, values))
    with pytest.raises(InputDataError, match="a part holds"):
        counted(folder)


def test_parts_with_wrong_sets_are_refused(folder):
    gather(folder, [t for t in reports_of() if '"group":2' in t])
    for mask in (None, b"", b"\x0f\0", b"\x1f\0\0", b"\x07\0\x02"):
        edited(folder, with_column("mask", [mask]))
        with pytest.raises(InputDataError, match="a part holds"):
            counted(folder)


@pytest.mark.parametrize("damage", [lambda raw: raw[:-9], lambda raw: b"", lambda raw: b"x" * 99])
def test_damaged_parts_are_refused(folder, damage):
    gather(folder, reports_of())
    (part,) = (folder / "in").iterdir()
    part.write_bytes(damage(part.read_bytes()))
    with pytest.raises(InputDataError, match="damaged or of another kind"):
        counted(folder)


def test_files_that_cannot_be_read_or_written(folder):
    with pytest.raises(InputDataError, match="lines cannot be read"):
        collect(str(folder / "c.json"), [str(folder / "missing")], str(folder / "in"))
    with pytest.raises(WriteError, match="cannot write"):
        collect(str(folder / "c.json"), [], str(folder / "c.json" / "in"))
    with pytest.raises(ParameterError, match="campaign cannot be read"):
        collect(str(folder / "none.json"), [], str(folder / "in"))


@pytest.mark.parametrize("kills", [15, pytest.param(500, marks=pytest.mark.nightly)], ids=str)
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
                parts._ROWS = 500
                lines._BLOCK = 50_000
                collect(str(folder / "c.json"), [str(folder / "lines")], str(folder / "in"))
            finally:
                os._exit(0)
        if number:  # the first one is killed at once, however fast the machine is
            time.sleep(generator.random() * 0.12)
        os.kill(child, signal.SIGKILL)
        ends[os.waitpid(child, 0)[1]] += 1
    assert ends[signal.SIGKILL]
    collect(str(folder / "c.json"), [str(folder / "lines")], str(folder / "in"))
    (counts,) = count_support(one, folder / "in").groups
    assert counts.reports == 3000
    codes = reports.codes
    assert (
        counts.support.tolist() == counts.protocol.support(counts.protocol.tabulate(codes)).tolist()
    )
