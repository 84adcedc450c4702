"""psd plot: files of pictures, of releases, regions and series, and what is refused."""

import numpy as np
import pytest

import psd
from support.cli_runner import check_refusals, passes
from support.releases import as_drawn

pytestmark = pytest.mark.deep

DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
SIGNATURES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture(autouse=True)
def folder(here):
    """A release and a series of two."""
    tree = psd.decompositions.grid_tree(DOMAIN, 4)
    releases = [
        as_drawn(psd.Release.from_counts(tree, counts, 1, domain=DOMAIN))
        for counts in (np.arange(16) * 100, np.arange(16)[::-1] * 10)
    ]
    releases[0].save("r")
    psd.Release.from_slices(psd.TimeSlices.parse("month", "2024-01..2024-02"), releases).save("s")
    return here


@pytest.mark.parametrize("ending", SIGNATURES)
@pytest.mark.parametrize("file", ["r", "s"])
def test_pictures_of_each_format_are_the_same_each_time(folder, file, ending):
    line = f"plot {file} a{ending} --dpi 40 --overwrite"
    assert passes(line) == f"wrote a{ending}\n"
    content = (folder / f"a{ending}").read_bytes()
    assert content.startswith(SIGNATURES[ending])
    passes(line)
    assert (folder / f"a{ending}").read_bytes() == content


@pytest.mark.parametrize("kind", ["estimate", "relative_error", "reliable", "quality"])
@pytest.mark.parametrize("file", ["r", "s"])
def test_kinds_and_levels(file, kind):
    passes(f"plot {file} a.png --kind {kind} --level 1 --threshold 0.2 --dpi 40")


def test_one_slice_and_what_is_refused(folder, subtests):
    passes("plot s one.png --slice 2024-02 --dpi 40")
    assert (folder / "one.png").stat().st_size > 0
    check_refusals(subtests, REFUSED, "plot")


REFUSED = [
    (2, "r a.jpg", "OUTPUT must end in .png, .svg, .pdf, got 'a.jpg'; write psd plot RELEASE map"),
    (2, "r", "OUTPUT must end in .png, .svg, .pdf; write psd plot RELEASE map.png"),
    (2, "r -o a.png", "-o must be left out; OUTPUT stands last"),
    (2, "r b.png --kind people", "--kind must be one of density, estimate,"),
    (2, "r b.png --dpi 5", "--dpi must be 20 to 1200"),
    (2, "r b.png --level 9", "--level must be an integer from 0"),
    (2, "r b.png --level ward", "--level must be a whole number"),
    (2, "r b.png --slice 2024-01", "must be given with a series"),
    (8, "r b.png --outline none.gpkg", "none.gpkg"),
    (5, "none b.png", "does not exist"),
]
