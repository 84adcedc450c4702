"""The same content twice: refused without a ledger, told in the private report with one."""

import gzip
import shutil

import pytest

import psd
from psd.ledger.ledger import Ledger
from support.cli_runner import BOUNDS, CERTAIN, cli, fails, files, passes, write_points

QUADTREE = ("--method", "quadtree", "--set", "height=1")
NOISY = ("-o", "r", "--epsilon", "0.1", *QUADTREE, *BOUNDS)
PAID = ("--ledger", "city.ledger", "--dataset", "rows")
REPORTED = (*CERTAIN, "--set", "height=0", "--report-private")


@pytest.fixture(autouse=True)
def points(here):
    write_points(here / "v.csv", [(1, 1), (2, 2)])
    shutil.copy("v.csv", "v2.csv")
    (here / "v3.csv.gz").write_bytes(gzip.compress((here / "v.csv").read_bytes()))


@pytest.fixture
def ledger(here):
    passes("ledger create city.ledger")
    passes("ledger register city.ledger rows --budget 1000")


def state():
    return Ledger("city.ledger").state()


def test_copies_are_refused_without_a_ledger(here):
    for inputs in ("v.csv v2.csv", "v3.csv.gz v.csv", "v*"):
        assert "same content" in fails(8, f"build {inputs}", *NOISY)
        assert "same content" in fails(8, f"tally {inputs} -o t", *BOUNDS)
    assert files(here) == ["v.csv", "v2.csv", "v3.csv.gz"]


def test_a_file_beside_its_compressed_form_is_refused_unread(ledger, here):
    (here / "v.csv.gz").write_text("not gzip")
    before = state()
    for paid in ((), PAID):
        assert "compressed form" in fails(8, "build v.csv v.csv.gz", *NOISY, *paid)
    assert state() == before
    passes("tally v.csv -o v.tally", *BOUNDS)
    (here / "link").symlink_to("v.tally")
    for other in ("v.tally", "link"):
        for paid in ((), PAID):
            told = fails(8, f"build v.tally {other} -o r --epsilon 1", *paid)
            assert f"input {other} is repeated; its records would count twice" in told
    for name in ("v.csv", "v2.csv", "v3.csv.gz"):
        passes(f"tally {name} -o {name}.tally", *BOUNDS)
    for other in ("v2.csv", "v3.csv.gz"):
        assert "of the same file" in fails(8, f"tally v.csv.tally {other}.tally -o m")


def outcome(folder, content):
    """All that a build with a ledger shows and leaves, but for what is random."""
    (folder / "v2.csv").write_text(content)
    done = cli("build v.csv v2.csv", *NOISY, *PAID)
    left = files(folder)
    (folder / "r").unlink(missing_ok=True)
    return (done.code, done.out.partition("ledger head")[0], done.err, left), state().spent("rows")


def test_with_a_ledger_a_build_shows_nothing_of_it(ledger, here):
    equal = (here / "v.csv").read_text()
    contents = (equal, equal.replace("2,2", "2,3"), equal + "3,3\n")
    shown, charged = zip(*(outcome(here, content) for content in contents), strict=True)
    assert (shown[0][0], shown[0][2]) == (0, "")
    assert shown[0] == shown[1] == shown[2]
    assert charged[1:] == (2 * charged[0], 3 * charged[0])


def test_with_a_ledger_copies_are_counted_and_told_in_the_private_report(ledger):
    done = cli("build v.csv v2.csv v3.csv.gz -o r", *REPORTED, *BOUNDS, *PAID)
    told = [line for line in done.err.splitlines() if "same content" in line]
    assert done.code == 0
    assert len(told) == 2
    assert all(line.startswith("PRIVATE, do not publish: inputs ") for line in told)
    assert psd.load("r").tree.count.tolist() == [6]


def test_private_bounds_questions_and_registered_inputs_with_a_ledger(ledger):
    ask = ("ask v.csv v2.csv --box 0 0 3 3 --epsilon 0.1", *PAID)
    assert cli(*ask).err == ""
    first = cli(*ask, "--report-private").err.splitlines()[0]
    assert first.startswith("PRIVATE, do not publish: inputs ")
    assert "v.csv and " in first
    assert "v2.csv have the same content" in first
    build = ("build v.csv v2.csv", *NOISY, *PAID)
    passes("ledger inputs city.ledger rows v.csv")
    assert "is not one of them" in fails(9, *build)
    passes("ledger inputs city.ledger rows v2.csv")
    passes(*build)
    build = (
        "build v.csv v2.csv -o p --epsilon 10 --bounds private --bounds-share 0.5 --bounds-beyond 3"
    )
    done = cli(build, *PAID, "--report-private")
    assert done.code == 0, done.err
    assert done.err.count("same content") == 1


def test_with_a_ledger_tallies_of_copies_are_counted_and_told_in_the_private_report(ledger, here):
    """As for the files themselves: whether they are equal is shown by the private report alone."""
    (here / "v4.csv").write_text((here / "v.csv").read_text().replace("2,2", "2,3"))
    for name in ("v", "v2", "v4"):
        passes(f"tally {name}.csv -o {name}.tally", *BOUNDS)
    build = ("-o", "r", "--epsilon", "0.1", *QUADTREE)
    assert "of the same file" in fails(8, "build v.tally v2.tally", *build)
    copied, other = (
        cli(f"build v.tally {name}.tally --overwrite", *build, *PAID) for name in ("v2", "v4")
    )
    assert copied.code == other.code == 0
    assert copied.err == other.err == ""
    assert copied.out.partition("ledger head")[0] == other.out.partition("ledger head")[0]
    passes("ledger register city.ledger more --budget 1000")
    line = "build v.tally v2.tally -o r --ledger city.ledger --dataset more --overwrite"
    told = cli(line, *REPORTED).err
    assert told.count("PRIVATE, do not publish: two tallies are of the same file") == 1
    assert psd.load("r").tree.count.tolist() == [4]
    parts = [psd.tally(name, domain=(-4, -4, 4, 4)) for name in ("v.csv", "v2.csv")]
    psd.build(parts, epsilon=1, account=psd.ledger.Account("city.ledger", "rows"))
    with pytest.raises(psd.errors.InputDataError, match="of the same file"):
        psd.build(parts, epsilon=1)
