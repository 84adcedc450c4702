"""Wrong campaigns, reports, stores and answers of local campaigns, and what comes of each."""

from pathlib import Path

from psd.local.collection import collect
from psd.local.device import NANO, Campaign, Store, Words, answer_place, canonical_json, draw_report
from robustness.commands import file, later, refused, taken
from support.local import GRID, HASHING, KARY, campaign, campaign_bytes, campaign_value

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
AGAIN = OPTIONS + " --protocol rappor"
TRUTH = OPTIONS.replace("--epsilon 1", "") + " --protocol k-ary --set truth="
TEXTS = NEW + "--words"
REGIONS = NEW + "--regions wards.csv --regions id=ward"
DESIGN = NEW + "--bounds 0 0 8 4"
PLAN = "plan --bounds 0 0 8 4 --epsilon 1 --devices 9999"


def prepare():
    """A campaign, two good reports and a store."""
    Path(CAMPAIGN).write_bytes(campaign_bytes(GROUPS))
    source, one = Words(), campaign(GROUPS)
    lines = [draw_report(one, group, 1, source) for group in (0, 1)]
    Path(LINES).write_text("".join(f"{text}\n" for text in lines))
    Store.create(STORE, 2 * NANO)


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


def edited(change):
    """A campaign that was edited and kept its digest."""
    content = canonical_json(change(campaign_value(GROUPS))).encode()
    return lambda: Path(CAMPAIGN).write_bytes(content)


def cut_store():
    """A store that lost its end."""
    Path(STORE).write_bytes(Path(STORE).read_bytes()[:-9])


def twice():
    """All lines once more."""
    Path(LINES).write_text(Path(LINES).read_text() * 2)


def ask_number():
    """A campaign that asks for a number."""
    cells, protocol = ["0", "100"], {"name": "piecewise", "window": 300}
    with_campaign(((1_000_000, cells, protocol),), question="numbers", domain=None)()


def answer_twice():
    """A campaign of options that the device has answered twice, which is all of its cap."""
    protocol = {"name": "rappor", "encoding": "one-hot", "flips": 9}
    groups = ((1_000_000, ["bus", "train"], protocol),)
    with_campaign(groups, question="options", domain=None)()
    for _ in range(2):
        answer_place(STORE, Campaign.load(CAMPAIGN), "bus", float("nan"), Words())


def reports(folder, number=1, answer=1):
    """Parts of new reports in a folder."""
    one, source = Campaign.load(CAMPAIGN), Words()
    lines = [draw_report(one, 0, answer, source) for _ in range(number)]
    Path(LINES).write_text("".join(f"{text}\n" for text in lines))
    collect(CAMPAIGN, [LINES], folder)


@later
def regions(ring, drawn=False):
    """A campaign that asks for a region with one outline, and a report in the folder ``few``."""
    with_campaign(((1_000_000, [f"a|ward|{ring}"], KARY),), question="regions")()
    if drawn:
        reports("few")


def words(*listed, bits=4, cohorts=4):
    """A campaign that asks for words, with parts of 50 reports, and a list of words."""
    protocol = {"name": "rappor", "encoding": "bloom", "flips": 9, "hashes": 1}
    groups = ((1_000_000, [], {**protocol, "bits": bits, "cohorts": cohorts}),)

    def ask():
        with_campaign(groups, question="words", domain=None)()
        reports("parts", 50, "a")
        options(*listed)()

    return ask


def options(*texts):
    """A file of options, or of words."""
    return file("list.txt", "".join(f"{text}\n" for text in texts))


def collect_other():
    """Parts of another campaign in the folder ``other``."""
    good = Path(CAMPAIGN).read_bytes()
    with_campaign(title="other")()
    reports("other")
    Path(CAMPAIGN).write_bytes(good)


def collect_few():
    """Parts of the two good reports in the folder ``few``."""
    collect(CAMPAIGN, [LINES], "few")


WARDS = file("wards.csv", """ward,wkt
a,"SRID=4326;POLYGON((0 0,4 0,4 4,0 4,0 0))"
b,"SRID=4326;POLYGON((4 0,8 0,8 4,4 4,4 0))"
""")  # fmt: skip
MALFORMED = "refused 1 lines: not a report in its one spelling"
ANSWERS = "refused 1 lines: with an answer that the protocol does not have"
TWICE = "refused 2 lines: with a nonce that was there before"
# fmt: off
CASES = (
    taken("D01-outside", "a point outside the bounds: answered like any other",
        RANDOMIZE + " --at 127 37"),
    taken("D01-nan", "`--at nan inf`: answered like any other", RANDOMIZE + " --at nan inf"),
    refused("D01-text", "`--at` with a text", RANDOMIZE + " --at here 1", "not a valid float"),
    taken("D02-short", "a report of one number, of a protocol with two", COLLECT, ANSWERS,
        line(answer="[1]")),
    taken("D02-range", "a function beyond the last one", COLLECT, ANSWERS, line(answer="[27,0]")),
    taken("D02-negative", "a negative number", COLLECT, MALFORMED, line(answer="[-1,0]")),
    taken("D02-true", "`true` for a number", COLLECT, MALFORMED, line(answer="[true,0]")),
    taken("D02-float", "`1.0` for a number", COLLECT, MALFORMED, line(answer="[1.0,0]")),
    taken("D02-huge", "a number of 2^70", COLLECT, MALFORMED, line(answer=f"[{2**70},0]")),
    taken("D02-keys", "a key more", COLLECT, MALFORMED, raw(b'{"psd-report":1,"time":5}\n')),
    taken("D02-long", "a line of 5 kB", COLLECT, MALFORMED, raw(b"x" * 5000 + b"\n")),
    taken("D02-bytes", "a line that is not UTF-8", COLLECT, MALFORMED, raw(b"\xff\xfe\0\n")),
    taken("D02-cut", "a last line that is cut off", COLLECT, MALFORMED, raw(b'{"psd-rep')),
    taken("D03-campaign", "a report of another campaign", COLLECT,
        "refused 1 lines: of another campaign", line(digest="A" * 22)),
    taken("D03-group", "a report of a group that is not asked", COLLECT,
        "refused 1 lines: of a group that is not asked", line(group=2)),
    refused("D03-parts", "parts of another campaign", AGGREGATE.replace("few", "other"),
        "another campaign", collect_other, code=8),
    taken("D04-twice", "lines that come twice in a file", COLLECT, TWICE, twice),
    refused("D05-none", "no report", AGGREGATE.replace("few", "empty"),
        "must have parts of reports", code=8),
    refused("D05-two", "fewer reports than cells", AGGREGATE, "at least as many reports as cells",
        collect_few, code=8),
    refused("D06-epsilon-0", "epsilon 0, where p and q are equal",
        DESIGN.replace("--epsilon 1", "--epsilon 0"), "epsilon must be above 0"),
    refused("D06-nano-0", "epsilon 0 in a campaign", DESCRIBE, "nano_epsilon must be",
        with_campaign(nano_epsilon=0)),
    refused("D06-large", "epsilon above 1,000 in a campaign", DESCRIBE, "nano_epsilon must be",
        with_campaign(nano_epsilon=10**12 + 1)),
    refused("D06-cap", "epsilon above the cap of the device", RANDOMIZE + " --at 1 1",
        "more epsilon than the cap", with_campaign(nano_epsilon=3 * NANO), code=4),
    refused("D07-f-0", "rappor without a flip (f = 0), so its bits stay true",
        f"{AGAIN} --set flips=0", "flips must be an integer from 1 to 127",
        options("bus", "train")),
    refused("D07-f-1", "rappor that flips all bits (f = 1), which says nothing",
        f"{AGAIN} --set flips=128", "flips must be an integer from 1 to 127",
        options("bus", "train")),
    refused("D07-f-many", "more flips than the epsilon of a report allows",
        f"{AGAIN} --set flips=100", "flips must be fewer, for its epsilon",
        options("bus", "train")),
    refused("D07-f-few", "epsilon of rappor above that of one flip of 128",
        AGAIN.replace("epsilon 1", "epsilon 12"), "flips must be fewer, for its epsilon",
        options("bus", "train")),
    refused("D07-encoding", "bits of words for a list of options", f"{AGAIN} --set encoding=bloom",
        "encoding must be spelled one-hot", options("bus", "train")),
    refused("D07-answers", "rappor of more options than a report has bits", AGAIN,
        "must have at most 4,096 answers", options(*map(str, range(4096)))),
    refused("D07-cap", "a further report of rappor beyond the cap", RANDOMIZE + " --answer bus",
        "more epsilon than the cap", answer_twice, code=4),
    refused("D07-word-f-0", "words without a flip (f = 0)", f"{TEXTS} --set flips=0",
        "flips must be an integer from 1 to 127"),
    refused("D07-word-f-1", "words of which all bits flip (f = 1)", f"{TEXTS} --set flips=128",
        "flips must be an integer from 1 to 127"),
    refused("D08-hashes", "more hashes than bits (h > k)", f"{TEXTS} --set bits=8 --set hashes=9",
        "hashes must be at most as many as bits"),
    refused("D08-hashes-0", "words without a hash", f"{TEXTS} --set hashes=0",
        "hashes must be an integer from 1 to 16"),
    refused("D08-hashes-17", "more hashes than a digest has bytes", f"{TEXTS} --set hashes=17",
        "hashes must be an integer from 1 to 16"),
    refused("D08-bits", "more bits than a byte of a digest tells apart", f"{TEXTS} --set bits=257",
        "bits must be an integer from 2 to 256"),
    refused("D08-cohorts", "no cohort", f"{TEXTS} --set cohorts=0",
        "cohorts must be an integer from 1 to 1,024"),
    refused("D08-words-one-hot", "a bit for each word, of which there is no list",
        f"{TEXTS} --set encoding=one-hot", "encoding must be spelled bloom"),
    refused("D08-words-protocol", "words with a protocol of options", f"{TEXTS} --protocol hashing",
        "protocol must be of words"),
    refused("D08-words-epsilon", "words without epsilon", TEXTS.replace("--epsilon 1", ""),
        "--epsilon must be given"),
    refused("D12-twice", "a list with a word twice", TABLE, "words must be stated once each",
        words("a", "b", "a")),
    refused("D12-empty", "a list with an empty word", TABLE, "words must be stated once each",
        words("a", "")),
    refused("D12-many", "more words than cohorts x bits", TABLE,
        "words must be at most the bits of all cohorts with reports, 16, got 18",
        words(*map(str, range(17)))),
    refused("D12-collision", "words whose bits are the same in all cohorts", TABLE,
        "words must differ in their bits", words(*map(str, range(12)), bits=16, cohorts=1)),
    refused("D12-no-list", "words and no list of them", TABLE.replace(" --words list.txt", ""),
        "--words must be given for a campaign of words", words("a")),
    refused("D12-file", "a missing list of words", TABLE.replace("list.txt", "none.txt"),
        "words must be a file of lines", words("a")),
    refused("D12-level", "a level of 1", f"{TABLE} --level 1", "level must be above 0", words("a")),
    refused("D12-other", "a list of words for a campaign of places", TABLE, "and for no other"),
    refused("D08-modulus", "hashing with a modulus that is not prime", DESCRIBE,
        "modulus must be a prime",
        with_campaign(((1_000_000, GRID, {"name": "hashing", "modulus": 4}),))),
    refused("D08-size", "a subset of all answers", DESCRIBE, "size must be",
        with_campaign(((1_000_000, GRID, {"name": "subset", "size": 17}),))),
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
    refused("D06-truth-places", "a truth where places are asked",
        DESIGN + " --protocol k-ary --set truth=0.75", "protocol must have its fields"),
    refused("D09-all", "a window of the staircase that holds all outputs (gamma 1)",
        NUMBERS + " --protocol bounded-staircase --set window=1023",
        "window must be an integer from 0 to 1,022"),
    refused("D09-none", "a staircase without a first stair (gamma 0)",
        NUMBERS + " --protocol staircase --set window=0",
        "window must be an integer from 1 to 1,023"),
    refused("D09-negative", "a negative window", NUMBERS + " --protocol piecewise --set window=-1",
        "window must be"),
    refused("D09-range", "a range that is reversed", NUMBERS.replace("0 100", "100 0"),
        "range must be wide enough"),
    refused("D09-infinite", "a range without an end", NUMBERS.replace("0 100", "0 inf"),
        "range must be 2 numbers"),
    refused("D09-setting", "a setting that the protocol does not have",
        NUMBERS + " --set gamma=0.5", "protocol must have its fields"),
    refused("D09-protocol", "a protocol of places for numbers", NUMBERS + " --protocol subset",
        "protocol must be of numbers"),
    refused("D10-lost", "a lost store", RANDOMIZE + " --at 1 1", "store is missing",
        lambda: Path(STORE).unlink(), code=9),
    refused("D10-cut", "a store that was cut", RANDOMIZE + " --at 1 1", "store is damaged",
        cut_store, code=9),
    refused("D10-foreign", "another file in place of the store", RANDOMIZE + " --at 1 1",
        "store is damaged or of another kind", file(STORE, '{"psd":1}'), code=9),
    refused("D10-exists", "a new store in place of an old one", f"store {STORE} --cap 9",
        "it is not replaced", code=9),
    refused("G01-digest", "a campaign that was edited", DESCRIBE, "does not match its digest",
        edited(lambda v: {**v, "devices": 5})),
    refused("G02-field", "an unknown field", DESCRIBE, "no others",
        edited(lambda v: {**v, "p": "0.9"})),
    refused("G03-version", "a version of the future", DESCRIBE,
        "version that this device does not know", edited(lambda v: {**v, "psd-campaign": 2})),
    refused("G04-gap", "cells that leave a gap", DESCRIBE, "leave no gap",
        with_campaign(((1_000_000, ["0", "1", "3"], KARY),))),
    refused("G05-overlap", "cells that overlap", DESCRIBE, "not overlap",
        with_campaign(((1_000_000, ["0", "00", "1", "2", "3"], KARY),))),
    refused("G06-shares", "shares that do not add up", DESCRIBE, "must add up",
        with_campaign(((900_000, GRID, KARY),))),
    refused("G07-json", "no JSON", DESCRIBE, "not strict JSON", file(CAMPAIGN, "lon,lat\n")),
    refused("G08-missing", "no campaign", "describe none.json", "campaign cannot be read"),
    refused("G09-devices", "no device expected", DESIGN.replace("1000", "0"), "devices must be"),
    refused("G10-bounds", "bounds reversed", DESIGN.replace("0 0 8 4", "8 0 0 4"), "bounds",
        code=3),
    refused("G13-twice", "an option that comes twice", OPTIONS, "each option must be stated once",
        options("bus", "bus")),
    refused("G14-empty", "an empty option", OPTIONS, "an option must be", options("bus", "")),
    refused("G15-none", "no option", OPTIONS + " --protocol k-ary", "options must be at least one",
        options()),
    refused("G16-file", "a missing file of options", OPTIONS, "options must be a file"),
    refused("G17-set", "a setting that is not NAME=VALUE", DESIGN + " --set form",
        "set must be NAME=VALUE"),
    refused("G18-two", "bounds and a range", DESIGN + " --range 0 1",
        "one of --bounds, --regions, --options, --range and --words"),
    refused("G11-next", "a next round of a campaign of one", f"next {CAMPAIGN} parts -o new.json",
        "asked together"),
    refused("G12-rows", "a file that is no table of rows",
        f"randomize {CAMPAIGN} {LINES} -o new.jsonl", "must be CSV in UTF-8", code=8),
    refused("G19-tickets", "shuffled reports with tickets",
        f"{DESCRIBE} --shuffled --delta 1e-6 --tickets", "must be without tickets"),
    refused("G20-no-delta", "shuffled reports and no delta", f"{DESCRIBE} --shuffled",
        "delta must be a number above 0"),
    refused("G21-delta", "a delta of 1", f"{DESCRIBE} --shuffled --delta 1",
        "delta must be a number above 0"),
    refused("G22-delta-alone", "a delta without shuffling", f"{DESCRIBE} --delta 1e-6",
        "with shuffled alone"),
    refused("G23-plan", "a plan of fewer than 1,000 devices", PLAN.replace("9999", "999"),
        "devices must be"),
    refused("G24-plan-rounds", "a plan of five rounds", PLAN + " --rounds 5",
        "rounds must be 1, 2, 3, 4 or 7"),
    refused("G25-plan-points", "public points that are all out of bounds",
        PLAN + " --points far.csv", "points must be inside the bounds",
        file("far.csv", "lon,lat\n99,99\n")),
    refused("G26-regions-id", "regions without a column of ids",
        REGIONS.replace(" --regions id=ward", ""), "--regions id must be the column", WARDS),
    refused("G27-regions-two", "regions and a range", REGIONS + " --range 0 1",
        "one of --bounds, --regions, --options, --range and --words"),
    refused("G28-regions-kind", "regions that are map tiles",
        REGIONS.replace("wards.csv --regions id=ward", "tiles=8"),
        "must be files of polygons, got tiles"),
    refused("G29-regions-elsewhere", "an area in no region as a region",
        REGIONS + " --regions gaps=elsewhere --bounds 0 0 8 5", "with gaps outside", WARDS),
    refused("G30-regions-file", "a missing file of regions", REGIONS, "does not exist", code=8),
    refused("G31-regions-epsilon", "regions and no epsilon", REGIONS.replace("--epsilon 1", ""),
        "--epsilon must be given"),
    refused("G32-rings", "an outline of two vertices in a campaign", DESCRIBE,
        "a region must be spelled", regions("0 0 9 9 0 0")),
    refused("G33-rings-text", "an outline whose vertices are no numbers", DESCRIBE,
        "a region must be spelled", regions("0 0 9 9 x 9 0 0")),
    refused("G34-rings-crossed", "an outline that crosses itself", AGGREGATE,
        "must be a valid polygon", regions("0 0 3 3 3 0 0 3 0 0", drawn=True)),
)
# fmt: on

NOT_LOCAL = {
    "D11": "estimates below 0, above n: the estimate `signed` has them, the default has not",
}
