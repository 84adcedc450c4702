"""Wrong releases, weights, own places and parameters of suggestions, and what comes of each."""

from pathlib import Path

import numpy as np

import psd
from psd.apps.suggest.models import FEATURES, RegionGrid, SharedWeights, write_weights
from robustness.commands import file, refused, taken

RELEASE, WEIGHTS, OWN, VISITS = "city.psd.parquet", "city.weights.json", "own.csv", "visits.csv"
PLACES = f"places {OWN} --release {RELEASE} --weights {WEIGHTS}"
TRAIN = f"train {VISITS} --release {RELEASE} --user id --max-contributions 4 -o out.json --cells 8"
TRAINED = f"{TRAIN} --epsilon 0.3 --delta 1e-6"
MAKES = ("out.json",)
BOUNDS = (0, 0, 8, 8)


def release(counts=range(64), bounds=BOUNDS):
    """A release with a density."""
    domain = psd.Domain(bounds=bounds, lattice=(8, 8))
    return psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 8), list(counts), 1, domain=domain
    )


def prepare():
    """A release, its weights, own places and visits."""
    city = release()
    city.save(RELEASE)
    weights = SharedWeights(
        weights=dict.fromkeys(FEATURES, 0.5),
        release=RegionGrid.of_release(city, 8).digest,
        cells=8,
        epsilon="0.3",
        delta="1e-6",
        max_contributions=4,
    )
    write_weights(weights, WEIGHTS)
    Path(OWN).write_text("lon,lat\n1.5,2.5\n7,7\n")
    draw = np.random.default_rng(0)
    rows = "".join(f"{i % 9},{x},{y}\n" for i, (x, y) in enumerate(draw.uniform(0, 8, (40, 2))))
    Path(VISITS).write_text("id,lon,lat\n" + rows)


def other(counts=range(64), bounds=BOUNDS):
    """Another release at the same name."""
    return lambda: release(counts, bounds).save(RELEASE, overwrite=True)


def series():
    """A series of two days."""
    Path("days.csv").write_text("lon,lat,t\n1,1,2024-01-01T01:00:00\n2,2,2024-01-02T01:00:00\n")
    slices = psd.TimeSlices.parse("day", "2024-01-01..2024-01-02")
    built = psd.build("days.csv", domain=BOUNDS, epsilon=1, time="t", slices=slices, method="grid")
    built.save(RELEASE, overwrite=True)


# fmt: off
CASES = (
    refused("S01-outside", "all own places outside", PLACES,
        "own places must lie in the area of the release", file(OWN, "lon,lat\n99,7\n")),
    refused("S01-nan", "own places that are `nan`", PLACES, "own places must lie in the area",
        file(OWN, "lon,lat\nnan,nan\n")),
    refused("S02-none", "own places that do not exist", PLACES.replace(OWN, "none.csv"),
        "own places must be a CSV file", code=8),
    refused("S03-text", "`-k many`", PLACES + " -k many", "is not a whole number"),
    refused("S04-area", "weights of a release of another area", PLACES,
        "--release must be the one that the weights", other(bounds=(100, 0, 108, 8))),
    refused("S04-density", "a release without records", PLACES, "--release must have a density",
        other([0] * 64)),
    refused("S04-series", "a series of time slices", PLACES,
        "must be a single release, got a series", series, code=5),
    refused("S05-release", "a release as weights", PLACES.replace(WEIGHTS, RELEASE),
        "is not a file of weights", code=5),
    refused("S05-infinite", "a weight of `1e999`", PLACES, "weights must be finite",
        lambda: Path(WEIGHTS).write_text(Path(WEIGHTS).read_text().replace("0.5", "1e999")),
        code=5),
    taken("S06-outside", "a release of an area without records: weights of noise", TRAINED,
        setup=other(bounds=(100, 0, 108, 8)), makes=MAKES),
    refused("S07-large", "`--delta 0.1`", f"{TRAIN} --epsilon 1 --delta 0.1",
        "--delta must be above 0 and below 0.001, got 0.1"),
    refused("S08-user", "no user ids", TRAINED.replace("--user id --max-contributions 4", ""),
        "Missing option '--user'"),
    taken("S08-bound", "no contribution bound: 4", TRAINED.replace("--max-contributions 4", ""),
        makes=MAKES),
)
# fmt: on
