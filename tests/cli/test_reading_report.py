"""psd build --dry-run --report-private: what would be read, for the holder of the data alone."""

import io
from contextlib import redirect_stderr, redirect_stdout

import psd_cli.main
from support.cli_runner import BOUNDS, cli, contents, fails, passes, write_points

ROWS = [("a", 1, 1)] * 3 + [("b", 9, 9), ("b", "", 2), ("c", 0, 0)]
BUILD = ("build v.csv -o r --epsilon 1 --method quadtree --set height=1 --user id", *BOUNDS)
DRY = ("--dry-run", "--report-private")
TOLD = (
    "PRIVATE, do not publish: records read 6, without coordinates 1, outside 1, over the limit 1, "
    "kept 3\n"
)


class NeverDrawn:
    """A source of noise that is not asked."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} was drawn")


def test_it_reads_and_reports_and_draws_charges_and_writes_nothing(here, monkeypatch):
    write_points(here / "v.csv", ROWS, "id,lon,lat")
    passes("ledger create l")
    passes("ledger register l rows --budget 1 --unit user --user id")
    before = contents(here)
    monkeypatch.setattr("psd.publish.pipeline.SecureSampler", NeverDrawn)
    monkeypatch.setattr("psd.publish.pipeline.SeededSampler", lambda seed: NeverDrawn())
    public = passes(*BUILD, "--max-contributions", 2, "--dry-run")
    assert "# place of the bounds: at sea, " in public
    for paid in ("", "--ledger l --dataset rows"):
        outcome = cli(*BUILD, "--max-contributions", 2, *DRY, *paid.split())
        assert (outcome.code, outcome.out, outcome.err) == (0, public, TOLD)
        assert contents(here) == before
    # A limit that would be chosen is the largest one, and bounds that would be found the widest.
    told = cli(*BUILD, "--max-contributions", "auto", "--choice-limit", 2, *DRY)
    assert (told.code, told.err) == (0, TOLD)
    private = "build v.csv -o r --epsilon 1 --method quadtree --bounds private"
    assert "read 6, without coordinates 1, outside 0" in cli(private, *DRY).err
    assert contents(here) == before


def test_a_recipe_that_states_it_is_read_for_each_release(here):
    write_points(here / "v.csv", ROWS, "id,lon,lat")
    release = '[[release]]\nepsilon = 1\nmethod = "grid"\nbounds = [-4, -4, 4, {}]\noutput = "{}"\n'
    private = '[private]\ninputs = ["v.csv"]\nreport_private = true\n'
    (here / "r.toml").write_text(release.format(4, "one") + release.format(0.5, "two") + private)
    outcome = cli("build r.toml --dry-run")
    assert outcome.code == 0
    names, told = outcome.err.splitlines()[0::2], outcome.err.splitlines()[1::2]
    assert names == ["one:", "two:"]
    assert [line.partition("outside ")[2][0] for line in told] == ["1", "4"]


def test_a_build_names_the_report_that_it_can_have(here):
    write_points(here / "v.csv", ROWS, "id,lon,lat")
    (here / "r.toml").write_text(
        '[private]\ninputs = ["v.csv"]\n[release]\noutput = "r"\nepsilon = 1\nmethod = "grid"\n'
        "bounds = [-4, -4, 4, 4]\n"
    )
    passes("tally v.csv -o t", *BOUNDS)
    told = {}
    for given in ("r.toml", "v.csv -o s --epsilon 1 --bounds -4 -4 4 4", "t -o u --epsilon 1"):
        err = io.StringIO()
        assert cli(f"build {given}", stderr=err).code == 0
        told[given.split()[0]] = err.getvalue()
    assert "--dry-run with report_private = true;" in told["r.toml"]
    assert "--dry-run --report-private;" in told["v.csv"]
    assert told["t"] == ""  # its records were read before


def test_what_it_shows_beside_the_report_is_the_same_for_all_data_of_a_ledger(here):
    passes("ledger create l")
    passes("ledger register l rows --budget 1 --unit user --user id")
    paid = (*BUILD, "--max-contributions", 2, *DRY, "--ledger", "l", "--dataset", "rows")
    shown = []
    for text in ("id,lon,lat\n", "id,lon,lat\na,1,1\n", "id,lon,lat\na,x,1\n", "\0", "id\n1\n"):
        (here / "v.csv").write_text(text)
        outcome = cli(*paid)
        shown.append((outcome.code, outcome.out))
        assert all(line.startswith("PRIVATE, ") for line in outcome.err.splitlines())
    assert set(shown) == {(0, shown[0][1])}
    assert "lon" in cli(*paid).err
    # Without a ledger whoever runs it holds the data, and a fault ends it as it ends a build.
    told = cli(*BUILD, "--max-contributions", 2, *DRY)
    assert (told.code, "psd: error: " in told.err) == (8, True)


def test_tallies_were_read_before(here):
    write_points(here / "v.csv", ROWS, "id,lon,lat")
    passes("tally v.csv -o t", *BOUNDS)
    told = fails(2, "build t -o r --epsilon 1", *DRY)
    assert "--report-private must be left out of a dry run of tallies" in told
    assert "v.csv" in fails(8, "build v.csv v.csv -o r --epsilon 1", *BOUNDS)


def test_the_line_after_a_build_is_the_same_whatever_the_data(here):
    lines = []
    for rows in ([], ROWS[:1], ROWS):
        write_points(here / "v.csv", rows, "id,lon,lat")
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            words = [*BUILD[0].split(), *map(str, BUILD[1:]), "--max-contributions", "2"]
            assert psd_cli.main.run([*words, "--overwrite"]) == 0
        lines.append(err.getvalue())
    assert len(set(lines)) == 1
    assert lines[0].count("\n") == 1
    assert (
        "--dry-run --report-private; those numbers are PRIVATE and must choose no parameter"
        in lines[0]
    )
