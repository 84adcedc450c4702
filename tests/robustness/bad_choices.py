"""Wrong candidates, prices, zones, tariffs and bids of `psd choose`, and what comes of each."""

import warnings
from pathlib import Path

import geopandas as gpd

from psd.ledger.ledger import Ledger
from psd_cli.apps import choosing  # noqa: F401 (psd choose)
from robustness.commands import file, refused, taken

LEDGER, CANDIDATES, BIDS, TARIFFS, REGIONS = "l", "sites.csv", "bids.csv", "tariffs.csv", "z.csv"
BOUNDS = "--bounds 0 0 4 4"
PAID = f" --crs EPSG:3857 --epsilon 0.5 --ledger {LEDGER} --dataset bids"
OUTLINED = f"site {BIDS} --candidates {CANDIDATES}{PAID}"
SITE = f"{OUTLINED} --radius 2"
SQUARE = "POLYGON((0 0,2 0,2 2,0 2,0 0))"
PRICE = f"price {BIDS} --bid bid --prices 1,2,3 {BOUNDS}{PAID}"
ZONES = f"prices {BIDS} --bid bid --prices 1,2,3 --zones 2 --zone-depth 1 {BOUNDS}{PAID}"
TARIFF = f"tariff {BIDS} --bid bid --tariffs {TARIFFS} --regions {REGIONS}{PAID}"


def prepare():
    """Candidates, bids, regions and tariffs, and a ledger."""
    Path(CANDIDATES).write_text("id,lon,lat\na,1,1\nb,3,3\n")
    Path(BIDS).write_text("lon,lat,bid,user\n" + "".join(f"1,{i % 4},2,u{i}\n" for i in range(8)))
    west, east = ("POLYGON(({0} 0,{1} 0,{1} 4,{0} 4,{0} 0))".format(*x) for x in ((0, 2), (2, 4)))
    Path(REGIONS).write_text(f'id,wkt\nwest,"SRID=3857;{west}"\neast,"SRID=3857;{east}"\n')
    Path(TARIFFS).write_text("tariff,west,east\ntoday,1,2\nnext,2,1\n")
    Ledger.create(LEDGER).register("bids", 1)


def without_crs():
    """Candidates as a layer that states no CRS."""
    table = gpd.GeoDataFrame({"id": ["a", "b"]}, geometry=gpd.points_from_xy([1, 3], [1, 3]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table.to_file("sites.gpkg")


def outlines(*shapes):
    """Candidates with outlines as WKT."""
    rows = "".join(f'{number},"SRID=3857;{shape}"\n' for number, shape in enumerate(shapes))
    return file(CANDIDATES, "id,wkt\n" + rows)


# fmt: off
CASES = (
    refused("H01-radius", "points without `--radius`", SITE.replace(" --radius 2", ""),
        "--radius must be given"),
    refused("H01-crs", "candidates of a layer without a CRS",
        SITE.replace(CANDIDATES, "sites.gpkg"), "has no CRS", without_crs, code=3),
    refused("H01-line", "a line as a candidate", OUTLINED, "polygons with an area",
        outlines("LINESTRING(0 0,2 2)", SQUARE)),
    refused("H01-crossed", "a polygon that crosses itself", OUTLINED, "must be valid polygons",
        outlines("POLYGON((0 0,2 2,2 0,0 2,0 0))", SQUARE)),
    taken("H01-tiny", "`--radius 1e-300`: nothing tells of a record",
        SITE.replace("--radius 2", "--radius 1e-300"), charges=1),
    taken("H01-alike", "an epsilon at which all candidates are alike",
        SITE.replace("0.5", "0.000000001"), charges=1),
    refused("H01-share", "an epsilon below the least one of each draw",
        SITE.replace("0.5", "0.000000001") + " --best 2",
        "--epsilon must be at least 1e-9 for each draw"),
    refused("H02-order", "`--prices 2,1`", PRICE.replace("1,2,3", "2,1"), "in ascending order"),
    refused("H02-zero", "`--prices 0,1`", PRICE.replace("1,2,3", "0,1"), "decimal numbers above 0"),
    refused("H02-twice", "`--prices 1,1`", PRICE.replace("1,2,3", "1,1"), "given twice"),
    refused("H02-step", "`--prices 1..3`", PRICE.replace("1,2,3", "1..3"),
        "got '1..3'; a range needs a step"),
    refused("H02-bounds", "no bounds", PRICE.replace(f" {BOUNDS}", ""), "--bounds must be given"),
    refused("H03-cells", "a million prices in each of 65,536 cells",
        ZONES.replace("1,2,3", "1..1000000/1").replace("depth 1", "depth 8"),
        "--prices must be at most 8,192 for 65,536 cells", deep=True),
    refused("H04-gap", "a tariff without a price for a region", TARIFF,
        "tariffs.csv line 2: a price must be a number above 0",
        file(TARIFFS, "tariff,west,east\nnow,1,\nnext,2,1\n"), code=8),
    refused("H04-huge", "a price of `1e999999`", TARIFF,
        "tariffs.csv line 2: a price must be a number above 0",
        file(TARIFFS, "tariff,west,east\nnow,1,1e999999\nnext,2,1\n"), code=8),
)
# fmt: on
