"""psd plot: files of pictures, of releases, regions and series, and what is refused."""

import numpy as np
import pytest

import psd
from support.cli_runner import fails, passes
from support.releases import as_drawn

DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
SIGNATURES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plots")
    tree = psd.grid_tree(DOMAIN, 4)
    releases = [
        as_drawn(psd.Release.from_counts(tree, np.arange(16) * 100, 1, domain=DOMAIN)),
        as_drawn(psd.Release.from_counts(tree, np.arange(16)[::-1] * 10, 1, domain=DOMAIN)),
    ]
    releases[0].save(folder / "r.psd.parquet")
    months = psd.TimeSlices.parse("month", "2024-01..2024-02")
    psd.SeriesRelease.of(months, releases).save(folder / "s.psd.parquet")
    return folder


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.mark.parametrize("ending", SIGNATURES)
@pytest.mark.parametrize("file", ["r.psd.parquet", "s.psd.parquet"])
def test_pictures_of_each_format_are_the_same_each_time(folder, file, ending):
    name = f"{file[0]}{ending}"
    assert passes("plot", file, name, "--dpi", 40, "--overwrite") == f"wrote {name}\n"
    content = (folder / name).read_bytes()
    assert content.startswith(SIGNATURES[ending])
    passes("plot", file, name, "--dpi", 40, "--overwrite")
    assert (folder / name).read_bytes() == content


@pytest.mark.parametrize("kind", ["estimate", "relative_error", "reliable", "quality"])
@pytest.mark.parametrize("file", ["r.psd.parquet", "s.psd.parquet"])
def test_kinds_and_levels(folder, file, kind):
    words = ("--kind", kind, "--level", 1, "--threshold", "0.2", "--dpi", 40, "--overwrite")
    passes("plot", file, "a.png", *words)


def test_one_slice(folder):
    passes("plot", "s.psd.parquet", "one.png", "--slice", "2024-02", "--dpi", 40)
    assert (folder / "one.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("code", "args", "words"),
    [
        (2, ("r.psd.parquet", "a.jpg"), "OUTPUT must end in .png, .svg, .pdf, got 'a.jpg'"),
        (2, ("r.psd.parquet", "b.png", "--kind", "people"), "'people' is not"),
        (2, ("r.psd.parquet", "b.png", "--dpi", 5), "--dpi must be 20 to 1200"),
        (2, ("r.psd.parquet", "b.png", "--level", 9), "--level must be an integer from 0"),
        (2, ("r.psd.parquet", "b.png", "--level", "ward"), "--level must be a whole number"),
        (2, ("r.psd.parquet", "b.png", "--slice", "2024-01"), "must be given with a series"),
        (8, ("r.psd.parquet", "b.png", "--outline", "none.gpkg"), "none.gpkg"),
        (5, ("none.psd.parquet", "b.png"), "does not exist"),
    ],
)
def test_what_is_refused(folder, code, args, words):
    assert words in fails(code, "plot", *args)
    assert not (folder / "b.png").exists()
