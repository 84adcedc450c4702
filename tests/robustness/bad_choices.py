"""Wrong candidates, prices, zones, tariffs and bids of `psd choose`, and what comes of each."""

import warnings
from pathlib import Path

import geopandas as gpd

from psd.ledger.ledger import Ledger
from robustness.commands import file, later, refused, taken

LEDGER, CANDIDATES, BIDS, TARIFFS, REGIONS = "l", "sites.csv", "bids.csv", "tariffs.csv", "z.csv"
BOUNDS = "--bounds 0 0 4 4"
LEDGERED = f" --ledger {LEDGER} --dataset bids"
PAID = f" --crs EPSG:3857 --epsilon 0.5{LEDGERED}"
OUTLINED = f"site {BIDS} --candidates {CANDIDATES}{PAID}"
SITE = f"{OUTLINED} --radius 2"
SQUARE = "POLYGON((0 0,2 0,2 2,0 2,0 0))"
PRICE = f"price {BIDS} --bid bid --prices 1,2,3 {BOUNDS}{PAID}"
ZONES = f"prices {BIDS} --bid bid --prices 1,2,3 --zones 2 --zone-depth 1 {BOUNDS}{PAID}"
ORDERED = f"prices {BIDS} --bid bid --prices 1,2,3 --zones 2 --regions {REGIONS} --order far{PAID}"
TARIFF = f"tariff {BIDS} --bid bid --tariffs {TARIFFS} --regions {REGIONS}{PAID}"
WITHHELD = "the input could not be read to its end"


def prepare():
    """Candidates, bids, regions and tariffs, and a ledger."""
    Path(CANDIDATES).write_text("id,lon,lat\na,1,1\nb,3,3\n")
    Path(BIDS).write_text("lon,lat,bid,user\n" + "".join(f"1,{i % 4},2,u{i}\n" for i in range(8)))
    west, east = ("POLYGON(({0} 0,{1} 0,{1} 4,{0} 4,{0} 0))".format(*x) for x in ((0, 2), (2, 4)))
    Path(REGIONS).write_text(f'id,far,wkt\nwest,1,"SRID=3857;{west}"\neast,2,"SRID=3857;{east}"\n')
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


def bids(*texts):
    """One record with each bid."""
    return file(BIDS, "lon,lat,bid\n" + "".join(f"1,1,{text}\n" for text in texts))


@later
def order(*values):
    """Regions with other numbers in the column of the order."""
    table = Path(REGIONS).read_text().replace("west,1", f"west,{values[0]}")
    Path(REGIONS).write_text(table.replace("east,2", f"east,{values[1]}"))


# fmt: off
CASES = (
    taken("H01-good", "two candidates", SITE, charges=1),
    refused("H01-none", "candidates that do not exist", SITE.replace(CANDIDATES, "none.csv"),
        "none.csv does not exist", code=8),
    refused("H01-id", "candidates without a column id", SITE, "no column id",
        file(CANDIDATES, "name,lon,lat\na,1,1\nb,3,3\n"), code=8),
    refused("H01-one", "one candidate", SITE, "at least 2, got 1",
        file(CANDIDATES, "id,lon,lat\na,1,1\n")),
    refused("H01-twice", "an id of two candidates", SITE, "got 'a' twice",
        file(CANDIDATES, "id,lon,lat\na,1,1\na,3,3\n")),
    refused("H01-radius", "points without `--radius`", SITE.replace(" --radius 2", ""),
        "--radius must be given"),
    refused("H01-empty", "no candidates", SITE, "at least 2, got 0",
        file(CANDIDATES, "id,lon,lat\n")),
    refused("H01-outside", "a candidate outside the bounds", SITE + " --bounds 0 0 4 4",
        "must lie in the bounds, got 'b' outside", file(CANDIDATES, "id,lon,lat\na,1,1\nb,90,90\n"),
        code=3),
    refused("H01-crs", "candidates of a layer without a CRS",
        SITE.replace(CANDIDATES, "sites.gpkg"), "has no CRS", without_crs, code=3),
    refused("H01-line", "a line as a candidate", OUTLINED, "polygons with an area",
        outlines("LINESTRING(0 0,2 2)", SQUARE)),
    refused("H01-hollow", "an empty polygon as a candidate", OUTLINED, "polygons with an area",
        outlines("POLYGON EMPTY", SQUARE)),
    refused("H01-crossed", "a polygon that crosses itself", OUTLINED, "must be valid polygons",
        outlines("POLYGON((0 0,2 2,2 0,0 2,0 0))", SQUARE)),
    refused("H01-wkt", "a candidate that is no WKT", OUTLINED,
        "sites.csv line 3: its wkt cannot be read", outlines(SQUARE, "home"), code=8),
    refused("H01-zero", "`--radius 0`", SITE.replace("--radius 2", "--radius 0"),
        "--radius must be a number of metres"),
    refused("H01-degrees", "`--radius 200000` in degrees",
        SITE.replace("--radius 2", "--radius 200000").replace("3857", "4326"),
        "at most 100000 m where coordinates are degrees"),
    taken("H01-tiny", "`--radius 1e-300`: nothing tells of a record",
        SITE.replace("--radius 2", "--radius 1e-300"), charges=1),
    taken("H01-alike", "an epsilon at which all candidates are alike",
        SITE.replace("0.5", "0.000000001"), charges=1),
    refused("H01-share", "an epsilon below the least one of each draw",
        SITE.replace("0.5", "0.000000001") + " --best 2",
        "--epsilon must be at least 1e-9 for each draw"),
    refused("H01-best", "`--best 3` of two candidates", SITE + " --best 3", "--best must be"),
    refused("H01-records", "the records as candidates", SITE.replace(CANDIDATES, BIDS),
        "must not be an input of records", file(BIDS, "id,lon,lat\na,1,1\nb,3,3\n")),
    taken("H02-good", "prices with commas", PRICE, charges=1),
    refused("H02-order", "`--prices 2,1`", PRICE.replace("1,2,3", "2,1"), "in ascending order"),
    refused("H02-zero", "`--prices 0,1`", PRICE.replace("1,2,3", "0,1"), "decimal numbers above 0"),
    refused("H02-twice", "`--prices 1,1`", PRICE.replace("1,2,3", "1,1"), "given twice"),
    refused("H02-one", "one price", PRICE.replace("1,2,3", "1"),
        "--prices must be at least 2, got 1"),
    refused("H02-million", "a million prices and one", PRICE.replace("1,2,3", "1..1000001/1"),
        "--prices must be at most 1,000,000"),
    refused("H02-huge", "`--prices 1,1e1000000`", PRICE.replace("1,2,3", "1,1e1000000"),
        "decimal numbers above 0"),
    refused("H02-step", "`--prices 1..3`", PRICE.replace("1,2,3", "1..3"),
        "got '1..3'; a range needs a step"),
    refused("H02-bounds", "no bounds", PRICE.replace(f" {BOUNDS}", ""), "--bounds must be given"),
    refused("H02-column", "a column of bids that does not exist",
        PRICE.replace("--bid bid", "--bid offer"), WITHHELD, code=8),
    taken("H02-text", "bids that are text: they are left out", PRICE, setup=bids("many", "nan"),
        charges=1),
    taken("H02-odd", "bids that are negative, too large, infinite or empty", PRICE,
        setup=bids(-5, 99, "1e999", "inf", ""), charges=1),
    taken("H02-empty", "no bid", PRICE, setup=file(BIDS, "lon,lat,bid\n"), charges=1),
    taken("H03-good", "zones of a map", ZONES, charges=1),
    refused("H03-many", "more zones than the map has cells",
        ZONES.replace("--zones 2", "--zones 5"), "--zones must be"),
    refused("H03-zero", "`--zones 0`", ZONES.replace("--zones 2", "--zones 0"),
        "it must be a number from 1 to 100"),
    refused("H03-text", "`--zones few`", ZONES.replace("--zones 2", "--zones few"),
        "'--zones': it must be a number"),
    refused("H03-regions", "more zones than regions", ORDERED.replace("--zones 2", "--zones 3"),
        "--zones must be"),
    refused("H03-cells", "a million prices in each of 65,536 cells",
        ZONES.replace("1,2,3", "1..1000000/1").replace("depth 1", "depth 8"),
        "--prices must be at most 8,192 for 65,536 cells", deep=True),
    refused("H03-depth", "zones without `--zone-depth` and regions",
        ZONES.replace(" --zone-depth 1", ""), "--zone-depth must be given"),
    refused("H03-output", "`-o zones.shp`", ZONES + " -o zones.shp", "--output must end in"),
    refused("H03-input", "`-o` that names the file of bids", f"{ZONES} -o {BIDS} --overwrite",
        "is read as an input too", code=6),
    taken("H03-ordered", "zones along an order of regions", ORDERED, charges=1),
    refused("H03-order", "an order that is no column of the regions",
        ORDERED.replace("--order far", "--order near"), "no column near", code=8),
    refused("H03-ties", "an order with ties", ORDERED, "without ties", order(1, 1)),
    refused("H03-gap", "an order without a number for a region", ORDERED, "got none for 'east'",
        order(1, "")),
    taken("H04-good", "tariffs", TARIFF, charges=1),
    refused("H04-cover", "tariffs without a region", TARIFF, "none for 'east'",
        file(TARIFFS, "tariff,west\ntoday,1\nnext,2\n")),
    refused("H04-more", "tariffs with a price of no region", TARIFF,
        "'north', which is not a region",
        file(TARIFFS, "tariff,west,east,north\ntoday,1,2,3\nnext,2,1,3\n")),
    refused("H04-one", "one tariff", TARIFF, "at least 2, got 1",
        file(TARIFFS, "tariff,west,east\ntoday,1,2\n")),
    refused("H04-twice", "two tariffs with one id", TARIFF, "got 'now'",
        file(TARIFFS, "tariff,west,east\nnow,1,2\nnow,2,1\n")),
    refused("H04-gap", "a tariff without a price for a region", TARIFF,
        "tariffs.csv line 2: a price must be a number above 0",
        file(TARIFFS, "tariff,west,east\nnow,1,\nnext,2,1\n"), code=8),
    refused("H04-huge", "a price of `1e999999`", TARIFF,
        "tariffs.csv line 2: a price must be a number above 0",
        file(TARIFFS, "tariff,west,east\nnow,1,1e999999\nnext,2,1\n"), code=8),
    refused("H04-area", "tariffs without `--regions` and bounds",
        TARIFF.replace(f" --regions {REGIONS}", ""), "--bounds or --regions must be given"),
    refused("H04-regions", "regions that do not exist", TARIFF.replace(REGIONS, "none.gpkg"),
        "none.gpkg", code=8),
    refused("H05-ledger", "no ledger", PRICE.replace(LEDGERED, ""), "psd choose charges a ledger"),
    refused("H05-none", "a ledger that does not exist",
        PRICE.replace(f"--ledger {LEDGER}", "--ledger none.ledger"), "does not exist", code=9),
    refused("H05-dataset", "a dataset that is not registered",
        PRICE.replace("--dataset bids", "--dataset fares"), "is not registered", code=9),
    refused("H05-budget", "more than the rest of the budget", PRICE.replace("0.5", "1.5"),
        "has epsilon 1 left, and this costs 1.5", code=4),
    refused("H05-zero", "`--epsilon 0`", PRICE.replace("0.5", "0"), "--epsilon must be"),
    refused("H05-input", "an input that does not exist", PRICE.replace(BIDS, "none.csv"),
        "none.csv does not exist", code=8),
)
# fmt: on
