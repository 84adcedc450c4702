"""Names of inputs: what is recognised again, and what is not."""

import os

import pandas as pd

import psd
from psd.ingest.input_names import NAMELESS, input_names, tally_names
from psd.ingest.sources.postgis import PostGIS
from support.tallies import VARIANTS, counted

CITY = "postgresql://ann@db.example.org/city"


def name_of(path):
    state = os.stat(path)
    return f"{state.st_dev} {state.st_ino}"


def test_a_file_keeps_its_name_and_a_copy_has_another(tmp_path):
    (tmp_path / "in").mkdir()
    first, second = (tmp_path / "in" / f"{name}.csv" for name in "ab")
    for path in (second, first):
        path.write_text("lon,lat\n1,1\n")
    link, again = tmp_path / "c.csv", tmp_path / "d.csv"
    link.symlink_to(first)
    again.hardlink_to(first)
    assert input_names(first) == input_names(str(link)) == input_names([again]) == (name_of(first),)
    for both in ([first, second], tmp_path / "in", tmp_path / "in" / "[ab].csv"):
        assert input_names(both) == (name_of(first), name_of(second))
    first.rename(tmp_path / "e.csv")
    assert input_names(tmp_path / "e.csv") == input_names(again)


def test_tables_and_addresses_have_names_without_passwords(subtests, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    secret = "postgresql://ann:secret@db.example.org"
    for item, name in [
        ("-", NAMELESS),
        ("missing.csv", NAMELESS),
        (pd.DataFrame({"lon": []}), NAMELESS),
        (PostGIS("postgresql://ann:a@b@db.example.org/city", table="a.v"), NAMELESS),
        (PostGIS("postgresql://db.example.org/city?password=secret", table="a.v"), NAMELESS),
        (f"{secret}/city", NAMELESS),
        (PostGIS(CITY, table="public.visits"), "table db.example.org/city public.visits"),
        (PostGIS(CITY, query="SELECT 1"), "table db.example.org/city query SELECT 1"),
        (
            PostGIS(f"{secret}:5/city?sslmode=require", table="a.v"),
            "table db.example.org:5/city?sslmode=require a.v",
        ),
        ("hdfs:///city/visits.parquet", "address hdfs:///city/visits.parquet"),
    ]:
        with subtests.test(repr(item)):
            assert input_names(item) == input_names([item]) == (name,)


def test_a_tally_and_its_file_are_named_by_their_parts(tmp_path):
    tallies = [counted(VARIANTS["rows"], part=part) for part in "ab"]
    merged = psd.merge(tallies, output=tmp_path / "t")
    names = {f"tally {tally.origins[0].run}" for tally in tallies}
    assert set(tally_names(merged.origins)) == names
    for item in (merged, tmp_path / "t", tallies):
        assert set(input_names(item, has_tallies=True)) == names
    assert input_names(tmp_path / "t") == (name_of(tmp_path / "t"),)
