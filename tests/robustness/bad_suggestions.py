"""Wrong releases, weights, own places and parameters of suggestions, and what comes of each."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import psd
from psd.suggest.grid import RegionGrid
from psd.suggest.shared import FEATURES
from psd.suggest.weights import SharedWeights, write_weights

RELEASE, WEIGHTS, OWN, VISITS = "city.psd.parquet", "city.weights.json", "own.csv", "visits.csv"
PLACES = f"places {OWN} --release {RELEASE} --weights {WEIGHTS}"
TRAIN = f"train {VISITS} --release {RELEASE} --user id --max-contributions 4 -o out.json --cells 8"
PRICE = "--epsilon 0.3 --delta 1e-6"
BOUNDS = (0, 0, 8, 8)


@dataclass(frozen=True, kw_only=True)
class SuggestCase:
    """A command of `psd suggest`, what is there before it, and its outcome."""

    name: str
    given: str
    args: str = PLACES
    setup: Callable[[], object] | None = None
    code: int = 0
    told: str = ""


def release(counts=range(64), bounds=BOUNDS):
    """A release with a density."""
    domain = psd.Domain(bounds=bounds, lattice=(8, 8))
    return psd.Release.from_counts(psd.grid_tree(domain, 8), list(counts), 1, domain=domain)


def prepare(case):
    """A release, its weights, own places and visits, and then what the case changes."""
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
    if case.setup is not None:
        case.setup()


def other(counts=range(64), bounds=BOUNDS):
    """Another release at the same name."""
    return lambda: release(counts, bounds).save(RELEASE, overwrite=True)


def series():
    """A series of two days."""
    Path("days.csv").write_text("lon,lat,t\n1,1,2024-01-01T01:00:00\n2,2,2024-01-02T01:00:00\n")
    slices = psd.TimeSlices.parse("day", "2024-01-01..2024-01-02")
    built = psd.build("days.csv", domain=BOUNDS, epsilon=1, time="t", slices=slices, method="grid")
    built.save(RELEASE, overwrite=True)


def places(content):
    """Other own places."""
    return lambda: Path(OWN).write_bytes(content)


def edited(**fields):
    """Weights with other fields."""

    def edit():
        value = json.loads(Path(WEIGHTS).read_text()) | fields
        Path(WEIGHTS).write_text(json.dumps(value))

    return edit


# fmt: off
CASES = (
    SuggestCase(name="S01-good", given="own places inside"),
    SuggestCase(name="S01-part", given="one of two own places outside: it is left out",
        setup=places(b"lon,lat\n1.5,2.5\n99,7\n")),
    SuggestCase(name="S01-outside", given="all own places outside", code=2,
        setup=places(b"lon,lat\n99,7\n"), told="own places must lie in the area of the release"),
    SuggestCase(name="S01-empty", given="no own places", code=2,
        setup=places(b"lon,lat\n"), told="own places must lie in the area of the release"),
    SuggestCase(name="S01-nan", given="own places that are `nan`", code=2,
        setup=places(b"lon,lat\nnan,nan\n"), told="own places must lie in the area"),
    SuggestCase(name="S02-columns", given="own places without the columns", code=8,
        setup=places(b"x,y\n1,2\n"), told="own places must have the columns lon and lat"),
    SuggestCase(name="S02-text", given="an own place that is text", code=8,
        setup=places(b"lon,lat\nhome,2\n"), told="own places must have a number"),
    SuggestCase(name="S02-bytes", given="own places that are not text", code=8,
        setup=places(b"\xff\xfe\x00"), told="own places must be a CSV file in UTF-8"),
    SuggestCase(name="S02-none", given="own places that do not exist", code=8,
        args=PLACES.replace(OWN, "none.csv"), told="own places must be a CSV file"),
    SuggestCase(name="S03-zero", given="`-k 0`", args=PLACES + " -k 0", code=2,
        told="-k must be between 1 and 64, got 0"),
    SuggestCase(name="S03-above", given="`-k 65` of 64 regions", args=PLACES + " -k 65", code=2,
        told="-k must be between 1 and 64, got 65"),
    SuggestCase(name="S03-text", given="`-k many`", args=PLACES + " -k many", code=2,
        told="is not a whole number"),
    SuggestCase(name="S04-area", given="weights of a release of another area", code=2,
        setup=other(bounds=(100, 0, 108, 8)), told="--release must be the one that the weights"),
    SuggestCase(name="S04-date", given="weights of another release of the area", code=2,
        setup=other(range(1, 65)), told="--release must be the one that the weights"),
    SuggestCase(name="S04-density", given="a release without records", code=2,
        setup=other([0] * 64), told="--release must have a density"),
    SuggestCase(name="S04-series", given="a series of time slices", code=5,
        setup=series, told="must be a single release, got a series"),
    SuggestCase(name="S04-none", given="a release that does not exist", code=5,
        args=PLACES.replace(RELEASE, "none.psd.parquet"), told="none.psd.parquet"),
    SuggestCase(name="S04-weights", given="weights as a release", code=5,
        args=PLACES.replace(RELEASE, WEIGHTS), told="cannot be read as a release file"),
    SuggestCase(name="S05-none", given="weights that do not exist", code=5,
        args=PLACES.replace(WEIGHTS, "none.json"), told="none.json does not exist"),
    SuggestCase(name="S05-release", given="a release as weights", code=5,
        args=PLACES.replace(WEIGHTS, RELEASE), told="is not a file of weights"),
    SuggestCase(name="S05-json", given="weights that are not JSON", code=5,
        setup=lambda: Path(WEIGHTS).write_text("{"), told="is not a file of weights"),
    SuggestCase(name="S05-twice", given="weights with a key twice", code=5,
        setup=lambda: Path(WEIGHTS).write_text('{"cells": 8, "cells": 8}'),
        told="is not a file of weights"),
    SuggestCase(name="S05-more", given="weights with the id of a person", code=5,
        setup=edited(person="u1"), told="it must have exactly the fields of format 1"),
    SuggestCase(name="S05-version", given="weights of a later format", code=5,
        setup=edited(psd_weights=2), told="psd_weights must be 1"),
    SuggestCase(name="S05-infinite", given="a weight of `1e999`", code=5,
        setup=lambda: Path(WEIGHTS).write_text(Path(WEIGHTS).read_text().replace("0.5", "1e999")),
        told="weights must be finite"),
    SuggestCase(name="S06-good", given="records, release, epsilon and delta",
        args=f"{TRAIN} {PRICE}"),
    SuggestCase(name="S06-outside", given="a release of an area without records: weights of noise",
        args=f"{TRAIN} {PRICE}", setup=other(bounds=(100, 0, 108, 8))),
    SuggestCase(name="S06-density", given="training with a release without records",
        args=f"{TRAIN} {PRICE}", setup=other([0] * 64), code=2, told="--release must have a dens"),
    SuggestCase(name="S07-large", given="`--delta 0.1`", args=f"{TRAIN} --epsilon 1 --delta 0.1",
        code=2, told="--delta must be above 0 and below 0.001, got 0.1"),
    SuggestCase(name="S07-zero", given="`--delta 0`", args=f"{TRAIN} --epsilon 1 --delta 0",
        code=2, told="--delta must be above 0"),
    SuggestCase(name="S07-none", given="no delta", args=f"{TRAIN} --epsilon 1", code=2,
        told="Missing option '--delta'"),
    SuggestCase(name="S07-text", given="`--delta few`", args=f"{TRAIN} --epsilon 1 --delta few",
        code=2, told="--delta must be"),
    SuggestCase(name="S08-user", given="no user ids", code=2,
        args=f"{TRAIN} {PRICE}".replace("--user id --max-contributions 4", ""),
        told="--user must be given"),
    SuggestCase(name="S08-bound", given="no contribution bound: 4",
        args=f"{TRAIN} {PRICE}".replace("--max-contributions 4", "")),
    SuggestCase(name="S08-cells", given="more regions than the lattice has", code=2,
        args=f"{TRAIN} {PRICE}".replace("--cells 8", "--cells 9"), told="--cells must be at most"),
    SuggestCase(name="S08-few", given="`--cells 4`", code=2,
        args=f"{TRAIN} {PRICE}".replace("--cells 8", "--cells 4"),
        told="--cells must be between 5 and 100, got 4"),
    SuggestCase(name="S08-output", given="`-o` that names the file of records", code=6,
        args=f"{TRAIN} {PRICE} --overwrite".replace("out.json", VISITS),
        told="is read as an input too"),
    SuggestCase(name="S08-ids", given="a record without an id", args=f"{TRAIN} {PRICE}", code=8,
        setup=lambda: Path(VISITS).write_text("id,lon,lat\n,1,1\n"), told="no user id"),
)
# fmt: on


def page_rows(row):
    """Lines of the page."""
    return "".join(
        row(case.name, case.given, f"`psd suggest {case.args.split()[0]}`", case.code, case.told)
        for case in CASES
    )
