"""The same content twice: refused without a ledger, told in the private report with one."""

import gzip
import shutil

import pytest

import psd
from psd.ledger.ledger import Ledger
from support.cli_runner import CERTAIN, cli, fails, files, passes, write_points

BOUNDS = ("--bounds", -4, -4, 4, 4)
NOISY = ("--epsilon", "0.1", "--method", "quadtree", "--set", "height=1", *BOUNDS)
PAID = ("--ledger", "city.ledger", "--dataset", "rows")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_points(tmp_path / "v.csv", [(1, 1), (2, 2)])
    (tmp_path / "v2.csv").write_bytes((tmp_path / "v.csv").read_bytes())
    (tmp_path / "v3.csv.gz").write_bytes(gzip.compress((tmp_path / "v.csv").read_bytes()))
    return tmp_path


@pytest.fixture
def ledger():
    passes("ledger", "create", "city.ledger")
    passes("ledger", "register", "city.ledger", "rows", "--budget", "1000")


@pytest.mark.parametrize("inputs", [("v.csv", "v2.csv"), ("v3.csv.gz", "v.csv"), ("v*",)])
def test_copies_are_refused_without_a_ledger(inputs, here):
    assert "same content" in fails(8, "build", *inputs, "-o", "r", *NOISY)
    assert "same content" in fails(8, "tally", *inputs, "-o", "t", *BOUNDS)
    assert files(here) == ["v.csv", "v2.csv", "v3.csv.gz"]


@pytest.mark.parametrize("paid", [(), PAID])
def test_a_file_beside_its_compressed_form_is_refused_unread(paid, ledger, here):
    (here / "v.csv.gz").write_text("not gzip")
    before = Ledger("city.ledger").state()
    assert "compressed form" in fails(8, "build", "v.csv", "v.csv.gz", "-o", "r", *NOISY, *paid)
    assert Ledger("city.ledger").state() == before


def outcome(folder, content):
    """All that a build with a ledger shows and leaves, but for what is random."""
    (folder / "v2.csv").write_text(content)
    done = cli("build", "v.csv", "v2.csv", "-o", "r", *NOISY, *PAID)
    shown = done.out.partition("ledger head")[0]
    charged = Ledger("city.ledger").state().spent("rows")
    left = files(folder)
    (folder / "r").unlink(missing_ok=True)
    return done.code, shown, done.err, charged, left


def test_with_a_ledger_a_build_shows_nothing_of_it(ledger, here):
    equal = (here / "v.csv").read_text()
    first = outcome(here, equal)
    second = outcome(here, equal.replace("2,2", "2,3"))
    third = outcome(here, equal + "3,3\n")
    assert first[0] == 0
    assert first[2] == ""
    assert first[:3] == second[:3] == third[:3]
    assert first[4] == second[4] == third[4]
    assert (second[3], third[3]) == (2 * first[3], 3 * first[3])


def test_with_a_ledger_copies_are_counted_and_told_in_the_private_report(ledger):
    paid = (*CERTAIN, "--set", "height=0", *BOUNDS, *PAID, "--report-private")
    done = cli("build", "v.csv", "v2.csv", "v3.csv.gz", "-o", "r", *paid)
    told = [line for line in done.err.splitlines() if "same content" in line]
    assert done.code == 0
    assert len(told) == 2
    assert all(line.startswith("PRIVATE, do not publish: inputs ") for line in told)
    assert psd.load("r").tree.count.tolist() == [6]


def test_private_bounds_tell_of_copies_once(ledger):
    options = ("--epsilon", "10", "--bounds", "private:share=0.5,beyond=3", *PAID)
    done = cli("build", "v.csv", "v2.csv", "-o", "r", *options, "--report-private")
    assert done.code == 0, done.err
    assert done.err.count("same content") == 1


def test_questions_with_a_ledger(ledger):
    ask = ("ask", "v.csv", "v2.csv", "--box", 0, 0, 3, 3, "--epsilon", "0.1")
    assert cli(*ask, *PAID).err == ""
    told = cli(*ask, *PAID, "--report-private").err
    first = told.splitlines()[0]
    assert first.startswith("PRIVATE, do not publish: inputs ")
    assert "v.csv and " in first
    assert "v2.csv have the same content" in first


def test_registered_inputs_and_their_copies(ledger):
    """A copy is another file, so it is refused unread unless it is registered, too."""
    passes("ledger", "inputs", "city.ledger", "rows", "v.csv")
    assert "is not one of them" in fails(9, "build", "v.csv", "v2.csv", "-o", "r", *NOISY, *PAID)
    passes("ledger", "inputs", "city.ledger", "rows", "v2.csv")
    passes("build", "v.csv", "v2.csv", "-o", "r", *NOISY, *PAID)


def test_with_a_ledger_tallies_of_copies_are_counted_and_told_in_the_private_report(ledger, here):
    """As for the files themselves: whether they are equal is shown by the private report alone."""
    (here / "v4.csv").write_text((here / "v.csv").read_text().replace("2,2", "2,3"))
    for name in ("v", "v2", "v4"):
        passes("tally", f"{name}.csv", "-o", f"{name}.tally", *BOUNDS)
    build = ("-o", "r", *NOISY[:6], *PAID, "--overwrite")
    assert "of the same file" in fails(8, "build", "v.tally", "v2.tally", *build[:8])
    copied, other = (cli("build", "v.tally", f"{name}.tally", *build) for name in ("v2", "v4"))
    assert copied.code == other.code == 0
    assert copied.err == other.err == ""
    assert copied.out.partition("ledger head")[0] == other.out.partition("ledger head")[0]
    passes("ledger", "register", "city.ledger", "more", "--budget", "1000")
    certain = ("-o", "r", *CERTAIN, "--set", "height=0", "--ledger", "city.ledger", "--overwrite")
    certain = (*certain, "--dataset", "more", "--report-private")
    told = cli("build", "v.tally", "v2.tally", *certain).err
    assert told.count("PRIVATE, do not publish: two tallies are of the same file") == 1
    assert psd.load("r").tree.count.tolist() == [4]
    parts = [psd.tally(here / name, domain=(-4, -4, 4, 4)) for name in ("v.csv", "v2.csv")]
    psd.build(parts, epsilon=1, account=psd.Account("city.ledger", "rows"))
    with pytest.raises(psd.errors.InputDataError, match="of the same file"):
        psd.build(parts, epsilon=1)


@pytest.mark.parametrize("paid", [(), PAID])
def test_a_tally_that_is_given_twice_is_named(paid, ledger, here):
    passes("tally", "v.csv", "-o", "v.tally", *BOUNDS)
    (here / "link").symlink_to("v.tally")
    for other in ("v.tally", "link"):
        told = fails(8, "build", "v.tally", other, "-o", "r", "--epsilon", 1, *paid)
        assert f"input {other} is repeated; its records would count twice" in told


def test_a_tally_of_a_compressed_file_is_one_of_the_file(here):
    shutil.copy("v3.csv.gz", "other.csv.gz")
    for name in ("v.csv", "v2.csv", "v3.csv.gz"):
        passes("tally", name, "-o", f"{name}.tally", *BOUNDS)
    for other in ("v2.csv", "v3.csv.gz"):
        assert "of the same file" in fails(8, "merge", "v.csv.tally", f"{other}.tally", "-o", "m")
