"""Copies and edits of a stream's state, compared with the ledger that paid for it."""

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

import psd
from psd.apps.streams import plan as plans
from psd.apps.streams.outputs import Output
from psd.apps.streams.plan import StreamPlan
from psd.errors import InputDataError, LedgerError, ParameterError
from psd.ingest.sources import Columns
from psd.ledger.account import Account
from psd.ledger.ledger import Ledger
from support.releases import changed
from support.streams import DAYS, create, day_of, rewrite, totals

FILES = ("city.stream", "city.psd.parquet")
DRAWN = f"slice {DAYS[1]} was drawn, as the ledger says"


def paid_stream(folder, **arguments):
    """A stream that a ledger paid for, with its first slice."""
    ledger = Ledger.create(folder / "city.ledger")
    ledger.register("visits", 1000, columns=Columns(time="time"))
    stream = create(folder, account=Account(ledger, "visits"), **arguments)
    stream.add(day_of(folder, DAYS[0], 4), DAYS[0])
    return stream, ledger


def saved(folder, names=FILES):
    """Copies of files, and a function that puts them back."""
    copies = {name: (folder / name).read_bytes() for name in names}

    def restore():
        for name, content in copies.items():
            (folder / name).write_bytes(content)

    return restore


def drawn(ledger):
    """Slices that the ledger has as drawn."""
    return [*next(iter(ledger.state().charges.values())).drawn]


class Unread:
    """An input that must not be read."""

    def __getattr__(self, name):
        raise AssertionError(f"the input was asked for {name}")


def test_a_restored_state_draws_no_slice_again(tmp_path):
    stream, ledger = paid_stream(tmp_path)
    restore = saved(tmp_path)
    stream.add(day_of(tmp_path, DAYS[1], 5), DAYS[1])
    published = (tmp_path / "city.psd.parquet").read_bytes()
    restore()
    for day, skip in ((DAYS[1], False), (DAYS[2], True)):
        with pytest.raises(LedgerError, match=f"{DRAWN}.*restore the newer state"):
            stream.add(Unread(), day, skip=skip)
    assert drawn(ledger) == [*DAYS[:2]]
    assert psd.load(tmp_path / "city.psd.parquet").slices.names == DAYS[:1]
    (tmp_path / "city.psd.parquet").write_bytes(published)
    ledger.verify(releases=tmp_path)


@pytest.mark.parametrize(
    ("step", "recorded"), [((Ledger, "draw_slice"), 1), ((Output, "publish"), 2)]
)
def test_a_slice_in_the_state_is_finished_and_not_drawn_again(
    tmp_path, monkeypatch, step, recorded
):
    stream, ledger = paid_stream(tmp_path, epsilon=1)

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*step, killed)
        with pytest.raises(KeyboardInterrupt):
            stream.add(day_of(tmp_path, DAYS[1], 5), DAYS[1])
    assert len(drawn(ledger)) == recorded
    assert list(psd.load(tmp_path / "city.psd.parquet")) == [DAYS[0]]
    series = stream.add(Unread(), DAYS[1])
    assert list(series) == [*DAYS[:2]]
    assert drawn(ledger) == [*DAYS[:2]]
    ledger.verify(releases=tmp_path)


def test_of_two_copies_at_once_one_publishes_whatever_they_drew(tmp_path, monkeypatch):
    """The other one is refused by a random id: equal answers are refused as different ones are."""
    messages = []
    for name, records in (("equal", 5), ("different", 6)):
        folder = tmp_path / name
        folder.mkdir()
        stream, ledger = paid_stream(folder)
        second = folder / "second"
        shutil.copytree(folder, second)
        with closing(sqlite3.connect(second / "city.stream")) as state:
            moved = {"output": json.dumps(str(second / "city.psd.parquet"))}
            rewrite(state, moved)
        copy, count = (
            psd.apps.streams.Stream(second / "city.stream"),
            psd.apps.streams.addition.count_slice,
        )
        data = day_of(folder, DAYS[1], 5)

        def other_first(*rows, first=stream, data=data, count=count, **more):
            monkeypatch.setattr("psd.apps.streams.addition.count_slice", count)
            first.add(data, DAYS[1])
            return count(*rows, **more)

        monkeypatch.setattr("psd.apps.streams.addition.count_slice", other_first)
        for _ in range(2):
            with pytest.raises(LedgerError, match=DRAWN) as refused:
                copy.add(day_of(second, DAYS[1], records), DAYS[1])
            messages.append(str(refused.value))
        assert list(psd.load(second / "city.psd.parquet")) == [DAYS[0]]
        assert totals(psd.load(folder / "city.psd.parquet")) == [4, 5]
        ledger.verify(releases=folder)
    assert len(set(messages)) == 1


def test_of_two_copies_that_draw_two_slices_at_once_one_publishes(tmp_path, monkeypatch):
    """Both would publish; each keeps K records of a user, and only one of them counts the other."""
    stream, ledger = paid_stream(tmp_path)
    shutil.copy(stream.path, tmp_path / "copy.stream")
    copy, count = (
        psd.apps.streams.Stream(tmp_path / "copy.stream"),
        psd.apps.streams.addition.count_slice,
    )

    def other_first(*rows, **more):
        monkeypatch.setattr("psd.apps.streams.addition.count_slice", count)
        stream.add(day_of(tmp_path, DAYS[1], 5), DAYS[1])
        return count(*rows, **more)

    monkeypatch.setattr("psd.apps.streams.addition.count_slice", other_first)
    with pytest.raises(LedgerError, match=DRAWN):
        copy.add(day_of(tmp_path, DAYS[2], 6), DAYS[2], skip=True)
    assert drawn(ledger) == [*DAYS[:2]]
    assert psd.load(tmp_path / "city.psd.parquet").slices.names == DAYS[:2]


def test_two_contents_of_a_slice_are_found(tmp_path):
    """Copies of the ledger and the state together are told by what was published meanwhile."""
    stream, ledger = paid_stream(tmp_path, epsilon=1, totals=True, counter="tree")
    names = (*FILES, "city.totals.psd.parquet")
    restore = saved(tmp_path, (*names, "city.ledger"))
    published = tmp_path / "published"
    published.mkdir()
    stream.add(day_of(tmp_path, DAYS[1], 5), DAYS[1])
    for name in names[1:]:
        shutil.copy(tmp_path / name, published / name)
    ledger.verify(releases=published)
    restore()
    with pytest.raises(LedgerError, match=f"another slice {DAYS[1]} than ledger"):
        ledger.verify(releases=published)
    stream.add(day_of(tmp_path, DAYS[1], 5), DAYS[1])
    ledger.verify(releases=tmp_path)
    with pytest.raises(LedgerError, match=f"another slice {DAYS[1]} than ledger"):
        ledger.verify(releases=published)


def test_another_content_of_a_slice_alone_is_found(tmp_path):
    stream, ledger = paid_stream(tmp_path, epsilon=1)
    stream.add(day_of(tmp_path, DAYS[1], 5), DAYS[1])
    (tmp_path / "alone").mkdir()
    release = psd.load(tmp_path / "city.psd.parquet")[DAYS[1]]
    release.save(tmp_path / "alone" / "day.psd.parquet")
    ledger.verify(releases=tmp_path / "alone")
    other = replace(release.tree, count=release.tree.count + 5 * (release.tree.loss > 0))
    changed(release, tree=other).save(tmp_path / "alone" / "day.psd.parquet", overwrite=True)
    with pytest.raises(LedgerError, match="another content than ledger"):
        ledger.verify(releases=tmp_path / "alone")


FIRST = "epsilon = 1000"
EDITS = {
    "epsilon": ("request", (FIRST, "epsilon = 900"), "epsilon or delta"),
    "slices": ("request", ("2026-01-11", "2026-01-10"), "number of slices"),
    "noise": (
        "request",
        ("epsilon = 1000", "epsilon = 1000\ndelta = 1e-6\nnoise = 'gaussian'"),
        "epsilon or delta",
    ),
    "unit": ("request", ("[set]", "user = 'user'\nmax_contributions = 3\n[set]"), "unit"),
    "columns": ("request", ('time = "time"', 'time = "other"'), "columns"),
    "counter": ("counter", ("tree", "toeplitz"), "counter"),
    "delta": ("delta", ("null", '"0.001"'), "delta"),
    "number": ("statement", ('"stream_slices": 7', '"stream_slices": 1'), "number of slices"),
    "dataset": ("dataset", ("visits", "others"), "is not registered"),
    "analyst": ("analyst", ("null", '"ann"'), "dataset and the analyst"),
    "charge": ("statement", ('"charge": "', '"charge": "0'), "does not have the charge"),
}


def test_what_a_state_may_spend_is_that_of_the_charge(tmp_path, subtests):
    stream, _ = paid_stream(tmp_path, totals=True, counter="tree")
    restore = saved(tmp_path, (*FILES, "city.totals.psd.parquet"))
    for name, (fact, (before, after), words) in EDITS.items():
        restore()
        with subtests.test(name), closing(sqlite3.connect(stream.path)) as state:
            (text,) = state.execute("SELECT value FROM plan WHERE name = ?", [fact]).fetchone()
            value = json.loads(text) if fact == "request" else text
            assert before in value
            edited = value.replace(before, after)
            rewrite(state, {fact: json.dumps(edited) if fact == "request" else edited})
        with (
            subtests.test(f"{name} is refused"),
            pytest.raises((LedgerError, InputDataError)) as no,
        ):
            stream.add(Unread(), DAYS[1])
        assert words in str(no.value), name


WRONG = (
    "null",
    "-1",
    "1.5",
    '"x"',
    "[]",
    "{}",
    '"a\\u0000b"',
    '"\\ud800"',
    "true",
    '{"a": 1}',
    "1e999",
    "x",
    "",
)


def test_a_charge_without_its_ledger_is_refused(tmp_path):
    """Its slices would state a charge that nobody compares them with."""
    stream, _ = paid_stream(tmp_path)
    with closing(sqlite3.connect(stream.path)) as state:
        rewrite(state, {"ledger": "null", "dataset": "null"})
    with pytest.raises(InputDataError, match="restore a copy"):
        stream.add(Unread(), DAYS[1])


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE draw SET number = 99",
        "UPDATE answer SET number = -5",
        "UPDATE draw SET number = 99; UPDATE answer SET number = 99",
        "DELETE FROM draw",
    ],
)
def test_draws_and_answers_of_other_slices_are_one_sentence(tmp_path, edit):
    stream = create(tmp_path)
    stream.add(day_of(tmp_path, DAYS[0], 4), DAYS[0])
    with closing(sqlite3.connect(stream.path)) as state:
        state.executescript(edit)
    for act in (stream.status, lambda: stream.add(Unread(), DAYS[1])):
        with pytest.raises(InputDataError, match="do not belong to the same slices"):
            act()


def test_damaged_facts_are_one_sentence(tmp_path, subtests):
    create(tmp_path, totals=True, counter="tree")
    path = tmp_path / "city.stream"
    with closing(sqlite3.connect(path)) as state:
        rows = dict(state.execute("SELECT name, value FROM plan"))
    for name in rows:
        for value in WRONG:
            if value == rows[name]:
                continue
            with subtests.test(f"{name} {value}"), pytest.raises(InputDataError, match="restore"):
                StreamPlan.from_rows({**rows, name: value}).build_request()
    for change in ({}, {"more": "1"}):
        with pytest.raises(InputDataError, match="restore a copy"):
            StreamPlan.from_rows({**change, **({} if not change else rows)})
    assert StreamPlan.from_rows(rows).to_rows() == rows


def test_the_digest_is_of_values_and_not_of_their_text(tmp_path):
    create(tmp_path)
    with closing(sqlite3.connect(tmp_path / "city.stream")) as state:
        rows = dict(state.execute("SELECT name, value FROM plan"))
    spelled = json.dumps(f"# another spelling\n{json.loads(rows['request'])}")
    plan = StreamPlan.from_rows({**rows, "request": spelled})
    assert plan.build_request() == StreamPlan.from_rows(rows).build_request()


def test_a_request_with_a_valid_digest_that_no_stream_has_is_refused(tmp_path):
    create(tmp_path)
    with closing(sqlite3.connect(tmp_path / "city.stream")) as state:
        rows = dict(state.execute("SELECT name, value FROM plan"))
    plan = replace(StreamPlan.from_rows(rows), request="epsilon = 0")
    with pytest.raises(InputDataError, match="has a request that is none"):
        StreamPlan.from_rows(plan.to_rows()).build_request()
    assert plans.StreamPlan is StreamPlan


def test_a_file_that_another_dataset_paid_for_is_warned_of(tmp_path):
    stream, ledger = paid_stream(tmp_path)
    ledger.register("others", 1, columns=Columns(time="time"))
    path = day_of(tmp_path, DAYS[1], 5)
    psd.build(
        path, domain=(0, 0, 8, 8), epsilon="0.1", method="grid", time="time",
        account=Account(ledger, "others"),
    )  # fmt: skip
    told = []
    stream.add(path, DAYS[1], warn=told.append)
    assert [text for text in told if "also charged to dataset 'others'" in text]


def test_a_draw_of_no_charge_is_refused(tmp_path):
    _, ledger = paid_stream(tmp_path)
    (charge,) = ledger.state().charges.values()
    with pytest.raises(LedgerError, match="is not in"):
        ledger.draw_slice("0" * 32, DAYS[3], charge.drawn[DAYS[0]], {})
    kept = {DAYS[0]: charge.drawn[DAYS[0]].draw}
    ledger.draw_slice(charge.id, DAYS[0], charge.drawn[DAYS[0]], kept)  # the same one again
    assert len(drawn(ledger)) == 1
    with pytest.raises(ParameterError, match="was added before"):
        psd.apps.streams.Stream(tmp_path / "city.stream").add(Unread(), DAYS[0])
