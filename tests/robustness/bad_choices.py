"""Wrong candidates, prices, zones, tariffs and bids of `psd choose`, and what comes of each."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import geopandas as gpd

from psd.ledger.ledger import Ledger

LEDGER, CANDIDATES, BIDS, TARIFFS, REGIONS = "l", "sites.csv", "bids.csv", "tariffs.csv", "z.csv"
BOUNDS = "--bounds 0 0 4 4"
SITE = f"site {BIDS} --candidates {CANDIDATES} --radius 2"
TINY = SITE.replace("--radius 2", "--radius 1e-300")
OUTLINED = f"site {BIDS} --candidates {CANDIDATES}"
SQUARE = "POLYGON((0 0,2 0,2 2,0 2,0 0))"
PRICE = f"price {BIDS} --bid bid --prices 1,2,3 {BOUNDS}"
ZONES = f"prices {BIDS} --bid bid --prices 1,2,3 --zones 2 --zone-depth 1 {BOUNDS}"
ORDERED = f"prices {BIDS} --bid bid --prices 1,2,3 --zones 2 --regions {REGIONS} --order far"
TARIFF = f"tariff {BIDS} --bid bid --tariffs {TARIFFS} --regions {REGIONS}"
PAID = f" --crs EPSG:3857 --epsilon 0.5 --ledger {LEDGER} --dataset bids"
WITHHELD = "the input could not be read to its end"


@dataclass(frozen=True, kw_only=True)
class ChoiceCase:
    """A command of `psd choose`, what is there before it, its outcome and its charges."""

    name: str
    given: str
    args: str
    paid: str = PAID
    setup: Callable[[], object] | None = None
    code: int = 0
    told: str = ""
    charges: int = 0


def prepare(case):
    """Candidates, bids, regions and tariffs, a ledger, and then what the case changes."""
    Path(CANDIDATES).write_text("id,lon,lat\na,1,1\nb,3,3\n")
    Path(BIDS).write_text("lon,lat,bid,user\n" + "".join(f"1,{i % 4},2,u{i}\n" for i in range(8)))
    west, east = ("POLYGON(({0} 0,{1} 0,{1} 4,{0} 4,{0} 0))".format(*x) for x in ((0, 2), (2, 4)))
    Path(REGIONS).write_text(f'id,far,wkt\nwest,1,"SRID=3857;{west}"\neast,2,"SRID=3857;{east}"\n')
    Path(TARIFFS).write_text("tariff,west,east\ntoday,1,2\nnext,2,1\n")
    Ledger.create(LEDGER).register("bids", 1)
    if case.setup is not None:
        case.setup()


def file(name, content):
    """A file with other content."""
    return lambda: Path(name).write_text(content)


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


def order(*values):
    """Regions with other numbers in the column of the order."""

    def write():
        table = Path(REGIONS).read_text().replace("west,1", f"west,{values[0]}")
        Path(REGIONS).write_text(table.replace("east,2", f"east,{values[1]}"))

    return write


# fmt: off
CASES = (
    ChoiceCase(name="H01-good", given="two candidates", args=SITE, charges=1),
    ChoiceCase(name="H01-none", given="candidates that do not exist", code=8,
        args=SITE.replace(CANDIDATES, "none.csv"), told="none.csv does not exist"),
    ChoiceCase(name="H01-id", given="candidates without a column id", code=8, args=SITE,
        setup=file(CANDIDATES, "name,lon,lat\na,1,1\nb,3,3\n"), told="no column id"),
    ChoiceCase(name="H01-one", given="one candidate", code=2, args=SITE,
        setup=file(CANDIDATES, "id,lon,lat\na,1,1\n"), told="at least 2, got 1"),
    ChoiceCase(name="H01-twice", given="an id of two candidates", code=2, args=SITE,
        setup=file(CANDIDATES, "id,lon,lat\na,1,1\na,3,3\n"), told="got 'a' twice"),
    ChoiceCase(name="H01-radius", given="points without `--radius`", code=2,
        args=SITE.replace(" --radius 2", ""), told="--radius must be given"),
    ChoiceCase(name="H01-empty", given="no candidates", code=2, args=SITE,
        setup=file(CANDIDATES, "id,lon,lat\n"), told="at least 2, got 0"),
    ChoiceCase(name="H01-outside", given="a candidate outside the bounds", code=3,
        args=SITE + " --bounds 0 0 4 4", setup=file(CANDIDATES, "id,lon,lat\na,1,1\nb,90,90\n"),
        told="must lie in the bounds, got 'b' outside"),
    ChoiceCase(name="H01-crs", given="candidates of a layer without a CRS", code=3,
        args=SITE.replace(CANDIDATES, "sites.gpkg"), setup=without_crs, told="has no CRS"),
    ChoiceCase(name="H01-line", given="a line as a candidate", code=2, args=OUTLINED,
        setup=outlines("LINESTRING(0 0,2 2)", SQUARE), told="polygons with an area"),
    ChoiceCase(name="H01-hollow", given="an empty polygon as a candidate", code=2, args=OUTLINED,
        setup=outlines("POLYGON EMPTY", SQUARE), told="polygons with an area"),
    ChoiceCase(name="H01-crossed", given="a polygon that crosses itself", code=2, args=OUTLINED,
        setup=outlines("POLYGON((0 0,2 2,2 0,0 2,0 0))", SQUARE), told="must be valid polygons"),
    ChoiceCase(name="H01-wkt", given="a candidate that is no WKT", code=8, args=OUTLINED,
        setup=outlines(SQUARE, "home"), told="sites.csv line 3: its wkt cannot be read"),
    ChoiceCase(name="H01-zero", given="`--radius 0`", code=2,
        args=SITE.replace("--radius 2", "--radius 0"), told="--radius must be a number of metres"),
    ChoiceCase(name="H01-degrees", given="`--radius 200000` in degrees", code=2,
        args=SITE.replace("--radius 2", "--radius 200000"), paid=PAID.replace("3857", "4326"),
        told="at most 100000 m where coordinates are degrees"),
    ChoiceCase(name="H01-tiny", given="`--radius 1e-300`: nothing tells of a record", args=TINY,
        charges=1),
    ChoiceCase(name="H01-alike", given="an epsilon at which all candidates are alike", args=SITE,
        paid=PAID.replace("0.5", "0.000000001"), charges=1),
    ChoiceCase(name="H01-share", given="an epsilon below the least one of each draw", code=2,
        args=SITE + " --best 2", paid=PAID.replace("0.5", "0.000000001"),
        told="--epsilon must be at least 1e-9 for each draw"),
    ChoiceCase(name="H01-best", given="`--best 3` of two candidates", code=2,
        args=SITE + " --best 3", told="--best must be"),
    ChoiceCase(name="H01-records", given="the records as candidates", code=2,
        args=SITE.replace(CANDIDATES, BIDS), setup=file(BIDS, "id,lon,lat\na,1,1\nb,3,3\n"),
        told="must not be an input of records"),
    ChoiceCase(name="H02-good", given="prices with commas", args=PRICE, charges=1),
    ChoiceCase(name="H02-order", given="`--prices 2,1`", code=2,
        args=PRICE.replace("1,2,3", "2,1"), told="in ascending order"),
    ChoiceCase(name="H02-zero", given="`--prices 0,1`", code=2,
        args=PRICE.replace("1,2,3", "0,1"), told="decimal numbers above 0"),
    ChoiceCase(name="H02-twice", given="`--prices 1,1`", code=2,
        args=PRICE.replace("1,2,3", "1,1"), told="given twice"),
    ChoiceCase(name="H02-one", given="one price", code=2, args=PRICE.replace("1,2,3", "1"),
        told="--prices must be at least 2, got 1"),
    ChoiceCase(name="H02-million", given="a million prices and one", code=2,
        args=PRICE.replace("1,2,3", "1..1000001/1"), told="--prices must be at most 1,000,000"),
    ChoiceCase(name="H02-huge", given="`--prices 1,1e1000000`", code=2,
        args=PRICE.replace("1,2,3", "1,1e1000000"), told="decimal numbers above 0"),
    ChoiceCase(name="H02-step", given="`--prices 1..3`", code=2,
        args=PRICE.replace("1,2,3", "1..3"), told="got '1..3'; a range needs a step"),
    ChoiceCase(name="H02-bounds", given="no bounds", code=2,
        args=PRICE.replace(f" {BOUNDS}", ""), told="--bounds must be given"),
    ChoiceCase(name="H02-column", given="a column of bids that does not exist", code=8,
        args=PRICE.replace("--bid bid", "--bid offer"), told=WITHHELD),
    ChoiceCase(name="H02-text", given="bids that are text: they are left out", args=PRICE,
        setup=bids("many", "nan"), charges=1),
    ChoiceCase(name="H02-odd", given="bids that are negative, too large, infinite or empty",
        args=PRICE, setup=bids(-5, 99, "1e999", "inf", ""), charges=1),
    ChoiceCase(name="H02-empty", given="no bid", args=PRICE,
        setup=file(BIDS, "lon,lat,bid\n"), charges=1),
    ChoiceCase(name="H03-good", given="zones of a map", args=ZONES, charges=1),
    ChoiceCase(name="H03-many", given="more zones than the map has cells", code=2,
        args=ZONES.replace("--zones 2", "--zones 5"), told="--zones must be"),
    ChoiceCase(name="H03-zero", given="`--zones 0`", code=2,
        args=ZONES.replace("--zones 2", "--zones 0"), told="it must be a number from 1 to 100"),
    ChoiceCase(name="H03-text", given="`--zones few`", code=2,
        args=ZONES.replace("--zones 2", "--zones few"), told="'--zones': it must be a number"),
    ChoiceCase(name="H03-regions", given="more zones than regions", code=2,
        args=ORDERED.replace("--zones 2", "--zones 3"), told="--zones must be"),
    ChoiceCase(name="H03-cells", given="a million prices in each of 65,536 cells", code=2,
        args=ZONES.replace("1,2,3", "1..1000000/1").replace("depth 1", "depth 8"),
        told="--prices must be at most 8,192 for 65,536 cells"),
    ChoiceCase(name="H03-depth", given="zones without `--zone-depth` and regions", code=2,
        args=ZONES.replace(" --zone-depth 1", ""), told="--zone-depth must be given"),
    ChoiceCase(name="H03-output", given="`-o zones.shp`", code=2, args=ZONES + " -o zones.shp",
        told="--output must end in"),
    ChoiceCase(name="H03-input", given="`-o` that names the file of bids", code=6,
        args=f"{ZONES} -o {BIDS} --overwrite", told="is read as an input too"),
    ChoiceCase(name="H03-ordered", given="zones along an order of regions", args=ORDERED,
        charges=1),
    ChoiceCase(name="H03-order", given="an order that is no column of the regions", code=8,
        args=ORDERED.replace("--order far", "--order near"), told="no column near"),
    ChoiceCase(name="H03-ties", given="an order with ties", code=2, args=ORDERED,
        setup=order(1, 1), told="without ties"),
    ChoiceCase(name="H03-gap", given="an order without a number for a region", code=2,
        args=ORDERED, setup=order(1, ""), told="got none for 'east'"),
    ChoiceCase(name="H04-good", given="tariffs", args=TARIFF, charges=1),
    ChoiceCase(name="H04-cover", given="tariffs without a region", code=2, args=TARIFF,
        setup=file(TARIFFS, "tariff,west\ntoday,1\nnext,2\n"), told="none for 'east'"),
    ChoiceCase(name="H04-more", given="tariffs with a price of no region", code=2, args=TARIFF,
        setup=file(TARIFFS, "tariff,west,east,north\ntoday,1,2,3\nnext,2,1,3\n"),
        told="'north', which is not a region"),
    ChoiceCase(name="H04-one", given="one tariff", code=2, args=TARIFF,
        setup=file(TARIFFS, "tariff,west,east\ntoday,1,2\n"), told="at least 2, got 1"),
    ChoiceCase(name="H04-twice", given="two tariffs with one id", code=2, args=TARIFF,
        setup=file(TARIFFS, "tariff,west,east\nnow,1,2\nnow,2,1\n"), told="got 'now'"),
    ChoiceCase(name="H04-gap", given="a tariff without a price for a region", code=8, args=TARIFF,
        setup=file(TARIFFS, "tariff,west,east\nnow,1,\nnext,2,1\n"),
        told="tariffs.csv line 2: a price must be a number above 0"),
    ChoiceCase(name="H04-huge", given="a price of `1e999999`", code=8, args=TARIFF,
        setup=file(TARIFFS, "tariff,west,east\nnow,1,1e999999\nnext,2,1\n"),
        told="tariffs.csv line 2: a price must be a number above 0"),
    ChoiceCase(name="H04-area", given="tariffs without `--regions` and bounds", code=2,
        args=TARIFF.replace(f" --regions {REGIONS}", ""),
        told="--bounds or --regions must be given"),
    ChoiceCase(name="H04-regions", given="regions that do not exist", code=8,
        args=TARIFF.replace(REGIONS, "none.gpkg"), told="none.gpkg"),
    ChoiceCase(name="H05-ledger", given="no ledger", args=PRICE, code=2,
        paid=" --crs EPSG:3857 --epsilon 0.5", told="psd choose charges a ledger"),
    ChoiceCase(name="H05-none", given="a ledger that does not exist", args=PRICE, code=9,
        paid=PAID.replace(f"--ledger {LEDGER}", "--ledger none.ledger"), told="does not exist"),
    ChoiceCase(name="H05-dataset", given="a dataset that is not registered", args=PRICE, code=9,
        paid=PAID.replace("--dataset bids", "--dataset fares"), told="is not registered"),
    ChoiceCase(name="H05-budget", given="more than the rest of the budget", args=PRICE, code=4,
        paid=PAID.replace("0.5", "1.5"), told="has epsilon 1 left, and this costs 1.5"),
    ChoiceCase(name="H05-zero", given="`--epsilon 0`", args=PRICE, code=2,
        paid=PAID.replace("0.5", "0"), told="--epsilon must be"),
    ChoiceCase(name="H05-input", given="an input that does not exist", code=8,
        args=PRICE.replace(BIDS, "none.csv"), told="none.csv does not exist"),
)
# fmt: on


def page_rows(row):
    """Lines of the page."""
    return "".join(
        row(case.name, case.given, _command(case), case.code, case.told, case.charges)
        for case in CASES
    )


def _command(case):
    """Name of the command of a case."""
    return f"`psd choose {case.args.split()[0]}`"
