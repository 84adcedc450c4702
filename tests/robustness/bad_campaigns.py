"""Wrong campaigns, reports, stores and answers of local campaigns, and what comes of each."""

from pathlib import Path

from psd.apps.local.collection import collect
from psd.apps.local.device import NANO, Campaign, Store, Words, draw_report
from robustness.commands import file, later, refused, taken
from support.local import GRID, HASHING, KARY, campaign, campaign_bytes

CAMPAIGN, LINES, STORE = "c.json", "reports.jsonl", "my.store"
GROUPS = ((500_000, GRID, HASHING), (500_000, ["0", "1", "2", "3"], KARY))

COLLECT = f"collect {CAMPAIGN} {LINES} --into parts"
DESCRIBE = f"describe {CAMPAIGN}"
RANDOMIZE = f"randomize {CAMPAIGN} --store {STORE}"
AGGREGATE = f"aggregate {CAMPAIGN} few -o r.psd.parquet"
TABLE = f"aggregate {CAMPAIGN} parts -o words.csv --words list.txt"
NEW = "design -o new.json --devices 1000 --epsilon 1 "
NUMBERS = NEW + "--range 0 100"
OPTIONS = NEW + "--options list.txt"
TRUTH = OPTIONS.replace("--epsilon 1", "") + " --protocol k-ary --set truth="
TEXTS = NEW + "--words"
LAW = TEXTS.replace("--epsilon 1", "") + " --set p=0.5 --set q=0.75"
REGIONS = NEW + "--regions wards.csv --region-id ward"
DESIGN = NEW + "--bounds 0 0 8 4"


def prepare():
    """A campaign, two good reports and a store."""
    Path(CAMPAIGN).write_bytes(campaign_bytes(GROUPS))
    source, one = Words(), campaign(GROUPS)
    write_lines(draw_report(one, group, 1, source) for group in (0, 1))
    Store.create(STORE, 2 * NANO)


def write_lines(texts):
    """A file of reports."""
    Path(LINES).write_text("".join(f"{text}\n" for text in texts))


def line(group=0, answer="[1,0]", digest=None):
    """Appends a line to the reports."""
    digest, nonce = digest or campaign(GROUPS).digest, "0123456789abcdef" * 2
    start = f'{{"psd-report":1,"campaign":"{digest}","group":{group},"nonce":"{nonce}"'
    return raw(f'{start},"answer":{answer}}}\n'.encode())


@later
def raw(content):
    """Appends bytes to the reports."""
    with Path(LINES).open("ab") as file:
        file.write(content)


def with_campaign(groups=GROUPS, **fields):
    """Another campaign."""
    return lambda: Path(CAMPAIGN).write_bytes(campaign_bytes(groups, **fields))


def ask_number():
    """A campaign that asks for a number."""
    cells, protocol = ["0", "100"], {"name": "piecewise", "window": 300}
    with_campaign(((1_000_000, cells, protocol),), question="numbers", domain=None)()


def ask_word():
    """A campaign that asks for a word."""
    sizes = {"flips": 9, "hashes": 1, "bits": 4, "cohorts": 4}
    groups = ((1_000_000, [], {"name": "rappor", "encoding": "bloom", **sizes}),)
    with_campaign(groups, question="words", domain=None)()


@later
def words(*listed):
    """A campaign that asks for words, with parts of 50 reports, and a list of words."""
    ask_word()
    one, source = Campaign.load(CAMPAIGN), Words()
    write_lines(draw_report(one, 0, "a", source) for _ in range(50))
    collect(CAMPAIGN, [LINES], "parts")
    options(*listed)()


def their_rows():
    """A campaign that asks for words, and three rows of other clients."""
    ask_word()
    file("theirs.csv", "cohort,irr\n0,0101\n1,01011\n3,1111\n")()


def options(*texts):
    """A file of options, or of words."""
    return file("list.txt", "".join(f"{text}\n" for text in texts))


MALFORMED = "refused 1 lines: not a report in its one spelling"
# fmt: off
CASES = (
    taken("D01-outside", "a point outside the bounds: answered like any other",
        RANDOMIZE + " --at 127 37"),
    taken("D01-nan", "`--at nan inf`: answered like any other", RANDOMIZE + " --at nan inf"),
    taken("D02-keys", "a key more", COLLECT, MALFORMED, raw(b'{"psd-report":1,"time":5}\n')),
    taken("D02-long", "a line of 5 kB", COLLECT, MALFORMED, raw(b"x" * 5000 + b"\n")),
    taken("D02-cut", "a last line that is cut off", COLLECT, MALFORMED, raw(b'{"psd-rep')),
    taken("D03-campaign", "a report of another campaign", COLLECT,
        "refused 1 lines: of another campaign", line(digest="A" * 22)),
    taken("D03-group", "a report of a group that is not asked", COLLECT,
        "refused 1 lines: of a group that is not asked", line(group=2)),
    taken("D04-twice", "lines that come twice in a file", COLLECT,
        "refused 2 lines: with a nonce that was there before",
        lambda: Path(LINES).write_text(Path(LINES).read_text() * 2)),
    refused("D05-two", "fewer reports than cells", AGGREGATE, "at least as many reports as cells",
        lambda: collect(CAMPAIGN, [LINES], "few"), code=8),
    refused("D06-cap", "epsilon above the cap of the device", RANDOMIZE + " --at 1 1",
        "more epsilon than the cap", with_campaign(nano_epsilon=3 * NANO), code=4),
    refused("D07-answers", "rappor of more options than a report has bits",
        OPTIONS + " --protocol rappor",
        "must have at most 4,096 answers", options(*map(str, range(4096)))),
    refused("D08-words-epsilon", "words without epsilon", TEXTS.replace("--epsilon 1", ""),
        "--epsilon must be given, or with --set what it follows from"),
    refused("D13-flips", "p and q of rappor without flips", LAW,
        "got no flips; flips is 128 times"),
    refused("D13-neither", "flips of rappor and no epsilon",
        LAW.split(" --set p")[0] + " --set flips=9",
        "--epsilon must be given, or settings in its place: p, q and flips"),
    refused("D13-both", "p and q of rappor beside epsilon", LAW + " --set flips=64 --epsilon 1",
        "p and q must be in place of epsilon"),
    refused("D13-order", "a p of rappor that is not below q",
        LAW.replace("0.5", "0.75") + " --set flips=64", "p must be below q"),
    refused("D13-name", "a setting that the protocol does not have", TEXTS + " --set x=1",
        "rappor has bits, cohorts, encoding, flips, hashes, p, q"),
    taken("D13-csv-rows", "rows of other clients with another number of bits",
        f"collect {CAMPAIGN} theirs.csv --rappor-csv --into parts",
        "refused 1 lines: with an answer that the protocol does not have", their_rows),
    refused("D13-csv-columns", "a file of other clients without cohorts",
        f"collect {CAMPAIGN} list.txt --rappor-csv --into parts",
        "must have the columns cohort, and irr or bits", words("a"), code=8),
    refused("D12-twice", "a list with a word twice", TABLE, "words must be stated once each",
        words("a", "b", "a")),
    refused("D12-no-list", "words and no list of them", TABLE.replace(" --words list.txt", ""),
        "--words must be given for a campaign of words", words("a")),
    refused("D12-other", "a list of words for a campaign of places", TABLE, "and for no other"),
    refused("D08-modulus", "hashing with a modulus that is not prime", DESCRIBE,
        "modulus must be a prime",
        with_campaign(((1_000_000, GRID, {"name": "hashing", "modulus": 4}),))),
    taken("D01-number", "a number beyond the range: answered like any other",
        RANDOMIZE + " --answer 1e300", setup=ask_number),
    taken("D01-no-number", "`--answer nan`: answered like any other", RANDOMIZE + " --answer nan",
        setup=ask_number),
    taken("D01-word", "`--answer` with a text where a number is asked: answered",
        RANDOMIZE + " --answer here", setup=ask_number),
    refused("D06-number-small", "epsilon of a number below 0.001",
        NUMBERS.replace(" 1 ", " 0.0009 "), "epsilon must be from 0.001 to 12"),
    refused("D06-number-large", "epsilon of a number above 12", NUMBERS.replace(" 1 ", " 12.1 "),
        "epsilon must be from 0.001 to 12"),
    refused("D06-truth-half", "a truth of one half, which says nothing", TRUTH + "0.5",
        "truth must be above 1/2", options("y")),
    refused("D06-truth-1", "a truth of 1, which is not private", TRUTH + "1",
        "truth must be above 1/2 and below 1", options("yes")),
    refused("D06-truth-text", "a truth that is no number", TRUTH + "often", "truth must be above",
        options("yes")),
    refused("D06-forced-yes", "the coin that says yes on every head",
        OPTIONS + " --protocol forced-yes", "epsilon is infinite", options("yes")),
    refused("D09-all", "a window of the staircase that holds all outputs (gamma 1)",
        NUMBERS + " --protocol bounded-staircase --set window=1023",
        "window must be an integer from 0 to 1,022"),
    refused("D09-none", "a staircase without a first stair (gamma 0)",
        NUMBERS + " --protocol staircase --set window=0",
        "window must be an integer from 1 to 1,023"),
    refused("D09-infinite", "a range without an end", NUMBERS.replace("0 100", "0 inf"),
        "range must be 2 numbers"),
    refused("D09-protocol", "a protocol of places for numbers", NUMBERS + " --protocol subset",
        "protocol must be of numbers"),
    refused("D10-foreign", "another file in place of the store", RANDOMIZE + " --at 1 1",
        "store is damaged or of another kind", file(STORE, '{"psd":1}'), code=9),
    refused("G10-bounds", "bounds reversed", DESIGN.replace("0 0 8 4", "8 0 0 4"), "bounds",
        code=3),
    refused("G15-none", "no option", OPTIONS + " --protocol k-ary", "options must be at least one",
        options()),
    refused("G17-set", "a setting that is not NAME=VALUE", DESIGN + " --set form",
        "set must be NAME=VALUE"),
    refused("G18-two", "bounds and a range", DESIGN + " --range 0 1",
        "one of --bounds, --regions, --options, --range and --words"),
    refused("G19-tickets", "shuffled reports with tickets",
        f"{DESCRIBE} --shuffled --delta 1e-6 --tickets", "must be without tickets"),
    refused("G25-plan-points", "public points that are all out of bounds",
        "plan --bounds 0 0 8 4 --epsilon 1 --devices 9999 --points far.csv",
        "points must be inside the bounds", file("far.csv", "lon,lat\n99,99\n")),
    refused("G28-regions-kind", "regions that are map tiles",
        REGIONS.replace("wards.csv --region-id ward", "tiles=8"),
        "must be files of polygons, got tiles"),
    refused("G30-regions-file", "a missing file of regions", REGIONS, "does not exist", code=8),
    refused("G31-regions-epsilon", "regions and no epsilon", REGIONS.replace("--epsilon 1", ""),
        "--epsilon must be given, or with --set what it follows from"),
)
# fmt: on

NOT_LOCAL = {
    "D11": "estimates below 0, above n: the estimate `signed` has them, the default has not"
}
