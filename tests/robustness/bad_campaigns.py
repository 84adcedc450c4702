"""Wrong campaigns, reports, stores and answers of local campaigns, and what comes of each."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from psd.local.device import NANO, Campaign, Store, Words, answer_place, canonical_json, draw_report
from support.local import GRID, HASHING, KARY, campaign, campaign_bytes, campaign_value

CAMPAIGN, LINES, STORE = "c.json", "reports.jsonl", "my.store"
GROUPS = ((500_000, GRID, HASHING), (500_000, ["0", "1", "2", "3"], KARY))
NONCE = "0123456789abcdef" * 2

COLLECT = f"collect {CAMPAIGN} {LINES} --into parts"
DESCRIBE = f"describe {CAMPAIGN}"
ANSWER = f"randomize {CAMPAIGN} --store {STORE} --at 1 1"
NUMBERS = "design -o new.json --range 0 100 --epsilon 1 --devices 1000"
OPTIONS = "design -o new.json --options options.txt --epsilon 1 --devices 1000"
TEXTS = "design -o new.json --words --epsilon 1 --devices 1000"
TABLE = f"aggregate {CAMPAIGN} parts -o words.csv --words list.txt"
AGAIN = OPTIONS + " --protocol rappor"
TRUTH = "design -o new.json --options options.txt --devices 9 --protocol k-ary --set truth="
REGIONS = "design -o new.json --regions wards.csv --regions id=ward --epsilon 1 --devices 1000"
DESIGN = "design -o new.json --bounds 0 0 8 4 --epsilon 1 --devices 1000"


@dataclass(frozen=True, kw_only=True)
class LocalCase:
    """A command of `psd local`, what is there before it, and its outcome."""

    name: str
    given: str
    args: str = COLLECT
    setup: Callable[[], object] | None = None
    code: int = 0
    told: str = ""

    @property
    def id(self):
        return self.name.split("-")[0]


def prepare(case):
    """A campaign, two good reports and a store, and then what the case changes."""
    Path(CAMPAIGN).write_bytes(campaign_bytes(GROUPS))
    words = Words()
    one = campaign(GROUPS)
    lines = [draw_report(one, group, 1, words) for group in (0, 1)]
    Path(LINES).write_text("".join(f"{text}\n" for text in lines))
    Store.create(STORE, 2 * NANO)
    if case.setup is not None:
        case.setup()


def line(group=0, answer="[1,0]", nonce=NONCE, **others):
    """Appends a line to the reports."""

    def append():
        digest = others.get("digest", campaign(GROUPS).digest)
        text = (
            f'{{"psd-report":1,"campaign":"{digest}","group":{group},"nonce":"{nonce}",'
            f'"answer":{answer}}}'
        )
        with Path(LINES).open("a") as file:
            file.write(text + "\n")

    return append


def raw(content):
    """Appends bytes to the reports."""

    def append():
        with Path(LINES).open("ab") as file:
            file.write(content)

    return append


def with_campaign(groups=GROUPS, **fields):
    """Another campaign."""
    return lambda: Path(CAMPAIGN).write_bytes(campaign_bytes(groups, **fields))


def edited(change):
    """A campaign that was edited and kept its digest."""
    content = canonical_json(change(campaign_value(GROUPS))).encode()
    return lambda: Path(CAMPAIGN).write_bytes(content)


def store(content):
    """Another content of the store, or none."""
    if content is None:
        return lambda: os.remove(STORE)
    return lambda: Path(STORE).write_bytes(content)


def cut_store():
    """A store that lost its end."""
    Path(STORE).write_bytes(Path(STORE).read_bytes()[:-9])


def twice():
    """All lines once more."""
    Path(LINES).write_text(Path(LINES).read_text() * 2)


MALFORMED = "refused 1 lines: not a report in its one spelling"
ANSWERS = "refused 1 lines: with an answer that the protocol does not have"
TWICE = "refused 2 lines: with a nonce that was there before"
LIMITS = "is not valid: "
# fmt: off
CASES = (
    LocalCase(name="D01-outside", given="a point outside the bounds: answered like any other",
        args=f"randomize {CAMPAIGN} --store {STORE} --at 127 37"),
    LocalCase(name="D01-nan", given="`--at nan inf`: answered like any other",
        args=f"randomize {CAMPAIGN} --store {STORE} --at nan inf"),
    LocalCase(name="D01-text", given="`--at` with a text", code=2, told="not a valid float",
        args=f"randomize {CAMPAIGN} --store {STORE} --at here 1"),
    LocalCase(name="D02-short", given="a report of one number, of a protocol with two",
        setup=line(answer="[1]"), told=ANSWERS),
    LocalCase(name="D02-range", given="a function beyond the last one", setup=line(answer="[27,0]"),
        told=ANSWERS),
    LocalCase(name="D02-negative", given="a negative number", setup=line(answer="[-1,0]"),
        told=MALFORMED),
    LocalCase(name="D02-true", given="`true` for a number", setup=line(answer="[true,0]"),
        told=MALFORMED),
    LocalCase(name="D02-float", given="`1.0` for a number", setup=line(answer="[1.0,0]"),
        told=MALFORMED),
    LocalCase(name="D02-huge", given="a number of 2^70", setup=line(answer=f"[{2**70},0]"),
        told=MALFORMED),
    LocalCase(name="D02-keys", given="a key more", told=MALFORMED,
        setup=raw(b'{"psd-report":1,"time":5}\n')),
    LocalCase(name="D02-long", given="a line of 5 kB", setup=raw(b"x" * 5000 + b"\n"),
        told=MALFORMED),
    LocalCase(name="D02-bytes", given="a line that is not UTF-8", setup=raw(b"\xff\xfe\0\n"),
        told=MALFORMED),
    LocalCase(name="D02-cut", given="a last line that is cut off", setup=raw(b'{"psd-rep'),
        told=MALFORMED),
    LocalCase(name="D03-campaign", given="a report of another campaign",
        setup=line(digest="A" * 22), told="refused 1 lines: of another campaign"),
    LocalCase(name="D03-group", given="a report of a group that is not asked", setup=line(group=2),
        told="refused 1 lines: of a group that is not asked"),
    LocalCase(name="D03-parts", given="parts of another campaign", code=8, told="another campaign",
        args=f"aggregate {CAMPAIGN} other -o r.psd.parquet",
        setup=lambda: collect_other()),
    LocalCase(name="D04-twice", given="lines that come twice in a file", setup=twice, told=TWICE),
    LocalCase(name="D05-none", given="no report", code=8, told="must have parts of reports",
        args=f"aggregate {CAMPAIGN} empty -o r.psd.parquet"),
    LocalCase(name="D05-two", given="fewer reports than cells", code=8,
        told="at least as many reports as cells",
        args=f"aggregate {CAMPAIGN} few -o r.psd.parquet", setup=lambda: collect_few()),
    LocalCase(name="D06-epsilon-0", given="epsilon 0, where p and q are equal", code=2,
        told="epsilon must be above 0", args=DESIGN.replace("--epsilon 1", "--epsilon 0")),
    LocalCase(name="D06-nano-0", given="epsilon 0 in a campaign", code=2,
        told="nano_epsilon must be", args=DESCRIBE, setup=with_campaign(nano_epsilon=0)),
    LocalCase(name="D06-large", given="epsilon above 1,000 in a campaign", code=2,
        told="nano_epsilon must be", args=DESCRIBE, setup=with_campaign(nano_epsilon=10**12 + 1)),
    LocalCase(name="D06-cap", given="epsilon above the cap of the device", code=4,
        told="more epsilon than the cap", args=ANSWER, setup=with_campaign(nano_epsilon=3 * NANO)),
    LocalCase(name="D07-f-0", given="rappor without a flip (f = 0), so its bits stay true", code=2,
        told="flips must be an integer from 1 to 127", args=f"{AGAIN} --set flips=0",
        setup=lambda: write_options("bus", "train")),
    LocalCase(name="D07-f-1", given="rappor that flips all bits (f = 1), which says nothing",
        code=2, told="flips must be an integer from 1 to 127", args=f"{AGAIN} --set flips=128",
        setup=lambda: write_options("bus", "train")),
    LocalCase(name="D07-f-many", given="more flips than the epsilon of a report allows", code=2,
        told="flips must be fewer, for its epsilon", args=f"{AGAIN} --set flips=100",
        setup=lambda: write_options("bus", "train")),
    LocalCase(name="D07-f-few", given="epsilon of rappor above that of one flip of 128", code=2,
        told="flips must be fewer, for its epsilon", args=AGAIN.replace("epsilon 1", "epsilon 12"),
        setup=lambda: write_options("bus", "train")),
    LocalCase(name="D07-encoding", given="bits of words for a list of options", code=2,
        told="encoding must be spelled one-hot", args=f"{AGAIN} --set encoding=bloom",
        setup=lambda: write_options("bus", "train")),
    LocalCase(name="D07-answers", given="rappor of more options than a report has bits", code=2,
        told="must have at most 4,096 answers", args=AGAIN,
        setup=lambda: write_options(*map(str, range(4096)))),
    LocalCase(name="D07-cap", given="a further report of rappor beyond the cap", code=4,
        told="more epsilon than the cap", args=f"randomize {CAMPAIGN} --store {STORE} --answer bus",
        setup=lambda: answer_twice()),
    LocalCase(name="D07-word-f-0", given="words without a flip (f = 0)", code=2,
        told="flips must be an integer from 1 to 127", args=f"{TEXTS} --set flips=0"),
    LocalCase(name="D07-word-f-1", given="words of which all bits flip (f = 1)", code=2,
        told="flips must be an integer from 1 to 127", args=f"{TEXTS} --set flips=128"),
    LocalCase(name="D08-hashes", given="more hashes than bits (h > k)", code=2,
        told="hashes must be at most as many as bits",
        args=f"{TEXTS} --set bits=8 --set hashes=9"),
    LocalCase(name="D08-hashes-0", given="words without a hash", code=2,
        told="hashes must be an integer from 1 to 16", args=f"{TEXTS} --set hashes=0"),
    LocalCase(name="D08-hashes-17", given="more hashes than a digest has bytes", code=2,
        told="hashes must be an integer from 1 to 16", args=f"{TEXTS} --set hashes=17"),
    LocalCase(name="D08-bits", given="more bits than a byte of a digest tells apart", code=2,
        told="bits must be an integer from 2 to 256", args=f"{TEXTS} --set bits=257"),
    LocalCase(name="D08-cohorts", given="no cohort", code=2,
        told="cohorts must be an integer from 1 to 1,024", args=f"{TEXTS} --set cohorts=0"),
    LocalCase(name="D08-words-one-hot", given="a bit for each word, of which there is no list",
        code=2, told="encoding must be spelled bloom", args=f"{TEXTS} --set encoding=one-hot"),
    LocalCase(name="D08-words-protocol", given="words with a protocol of options", code=2,
        told="protocol must be of words", args=f"{TEXTS} --protocol hashing"),
    LocalCase(name="D08-words-epsilon", given="words without epsilon", code=2,
        told="--epsilon must be given", args="design -o new.json --words --devices 9"),
    LocalCase(name="D12-twice", given="a list with a word twice", code=2,
        told="words must be stated once each", args=TABLE, setup=lambda: ask_words("a", "b", "a")),
    LocalCase(name="D12-empty", given="a list with an empty word", code=2,
        told="words must be stated once each", args=TABLE, setup=lambda: ask_words("a", "")),
    LocalCase(name="D12-many", given="more words than cohorts x bits", code=2,
        told="words must be at most the bits of all cohorts with reports, 16, got 18", args=TABLE,
        setup=lambda: ask_words(*map(str, range(17)))),
    LocalCase(name="D12-collision", given="words whose bits are the same in all cohorts", code=2,
        told="words must differ in their bits", args=TABLE,
        setup=lambda: ask_words(*map(str, range(12)), bits=16, cohorts=1)),
    LocalCase(name="D12-no-list", given="words and no list of them", code=2,
        told="--words must be given for a campaign of words", setup=lambda: ask_words("a"),
        args=TABLE.replace(" --words list.txt", "")),
    LocalCase(name="D12-file", given="a missing list of words", code=2,
        told="words must be a file of lines", args=TABLE.replace("list.txt", "none.txt"),
        setup=lambda: ask_words("a")),
    LocalCase(name="D12-level", given="a level of 1", code=2, told="level must be above 0",
        args=f"{TABLE} --level 1", setup=lambda: ask_words("a")),
    LocalCase(name="D12-other", given="a list of words for a campaign of places", code=2,
        told="and for no other", args=TABLE),
    LocalCase(name="D08-modulus", given="hashing with a modulus that is not prime", code=2,
        told="modulus must be a prime", args=DESCRIBE,
        setup=with_campaign(((1_000_000, GRID, {"name": "hashing", "modulus": 4}),))),
    LocalCase(name="D08-size", given="a subset of all answers", code=2, told="size must be",
        args=DESCRIBE, setup=with_campaign(((1_000_000, GRID, {"name": "subset", "size": 17}),))),
    LocalCase(name="D01-number", given="a number beyond the range: answered like any other",
        args=f"randomize {CAMPAIGN} --store {STORE} --answer 1e300", setup=lambda: ask_number()),
    LocalCase(name="D01-no-number", given="`--answer nan`: answered like any other",
        args=f"randomize {CAMPAIGN} --store {STORE} --answer nan", setup=lambda: ask_number()),
    LocalCase(name="D01-word", given="`--answer` with a text where a number is asked: answered",
        setup=lambda: ask_number(),
        args=f"randomize {CAMPAIGN} --store {STORE} --answer here"),
    LocalCase(name="D06-number-small", given="epsilon of a number below 0.001", code=2,
        told="epsilon must be from 0.001 to 12", args=NUMBERS.replace(" 1 ", " 0.0009 ")),
    LocalCase(name="D06-number-large", given="epsilon of a number above 12", code=2,
        told="epsilon must be from 0.001 to 12", args=NUMBERS.replace(" 1 ", " 12.1 ")),
    LocalCase(name="D06-truth-half", given="a truth of one half, which says nothing", code=2,
        told="truth must be above 1/2", args=TRUTH + "0.5", setup=lambda: write_options("y")),
    LocalCase(name="D06-truth-1", given="a truth of 1, which is not private", code=2,
        told="truth must be above 1/2 and below 1", args=TRUTH + "1",
        setup=lambda: write_options("yes")),
    LocalCase(name="D06-truth-text", given="a truth that is no number", code=2,
        told="truth must be above", args=TRUTH + "often",
        setup=lambda: write_options("yes")),
    LocalCase(name="D06-forced-yes", given="the coin that says yes on every head", code=2,
        told="epsilon is infinite", args=OPTIONS + " --protocol forced-yes",
        setup=lambda: write_options("yes")),
    LocalCase(name="D06-truth-places", given="a truth where places are asked", code=2,
        told="protocol must have its fields", args=DESIGN + " --protocol k-ary --set truth=0.75"),
    LocalCase(name="D09-all", given="a window of the staircase that holds all outputs (gamma 1)",
        code=2, told="window must be an integer from 0 to 1,022",
        args=NUMBERS + " --protocol bounded-staircase --set window=1023"),
    LocalCase(name="D09-none", given="a staircase without a first stair (gamma 0)", code=2,
        told="window must be an integer from 1 to 1,023",
        args=NUMBERS + " --protocol staircase --set window=0"),
    LocalCase(name="D09-negative", given="a negative window", code=2, told="window must be",
        args=NUMBERS + " --protocol piecewise --set window=-1"),
    LocalCase(name="D09-range", given="a range that is reversed", code=2,
        told="range must be wide enough", args=NUMBERS.replace("0 100", "100 0")),
    LocalCase(name="D09-infinite", given="a range without an end", code=2,
        told="range must be 2 numbers", args=NUMBERS.replace("0 100", "0 inf")),
    LocalCase(name="D09-setting", given="a setting that the protocol does not have", code=2,
        told="protocol must have its fields", args=NUMBERS + " --set gamma=0.5"),
    LocalCase(name="D09-protocol", given="a protocol of places for numbers", code=2,
        told="protocol must be of numbers", args=NUMBERS + " --protocol subset"),
    LocalCase(name="D10-lost", given="a lost store", code=9, told="store is missing", args=ANSWER,
        setup=store(None)),
    LocalCase(name="D10-cut", given="a store that was cut", code=9, told="store is damaged",
        args=ANSWER, setup=cut_store),
    LocalCase(name="D10-foreign", given="another file in place of the store", code=9,
        told="store is damaged or of another kind", args=ANSWER, setup=store(b'{"psd":1}')),
    LocalCase(name="D10-exists", given="a new store in place of an old one", code=9,
        told="it is not replaced", args=f"store {STORE} --cap 9"),
    LocalCase(name="G01-digest", given="a campaign that was edited", code=2,
        told="does not match its digest", args=DESCRIBE,
        setup=edited(lambda v: {**v, "devices": 5})),
    LocalCase(name="G02-field", given="an unknown field", code=2, told="no others", args=DESCRIBE,
        setup=edited(lambda v: {**v, "p": "0.9"})),
    LocalCase(name="G03-version", given="a version of the future", code=2,
        told="version that this device does not know", args=DESCRIBE,
        setup=edited(lambda v: {**v, "psd-campaign": 2})),
    LocalCase(name="G04-gap", given="cells that leave a gap", code=2, told="leave no gap",
        args=DESCRIBE, setup=with_campaign(((1_000_000, ["0", "1", "3"], KARY),))),
    LocalCase(name="G05-overlap", given="cells that overlap", code=2, told="not overlap",
        args=DESCRIBE, setup=with_campaign(((1_000_000, ["0", "00", "1", "2", "3"], KARY),))),
    LocalCase(name="G06-shares", given="shares that do not add up", code=2, told="must add up",
        args=DESCRIBE, setup=with_campaign(((900_000, GRID, KARY),))),
    LocalCase(name="G07-json", given="no JSON", code=2, told="not strict JSON", args=DESCRIBE,
        setup=lambda: Path(CAMPAIGN).write_bytes(b"lon,lat\n")),
    LocalCase(name="G08-missing", given="no campaign", code=2, told="campaign cannot be read",
        args="describe none.json"),
    LocalCase(name="G09-devices", given="no device expected", code=2, told="devices must be",
        args=DESIGN.replace("1000", "0")),
    LocalCase(name="G10-bounds", given="bounds reversed", code=3, told="bounds",
        args=DESIGN.replace("0 0 8 4", "8 0 0 4")),
    LocalCase(name="G13-twice", given="an option that comes twice", code=2,
        told="each option must be stated once", args=OPTIONS,
        setup=lambda: write_options("bus", "bus")),
    LocalCase(name="G14-empty", given="an empty option", code=2, told="an option must be",
        args=OPTIONS, setup=lambda: write_options("bus", "")),
    LocalCase(name="G15-none", given="no option", code=2, told="options must be at least one",
        args=OPTIONS + " --protocol k-ary", setup=lambda: write_options()),
    LocalCase(name="G16-file", given="a missing file of options", code=2,
        told="options must be a file", args=OPTIONS),
    LocalCase(name="G17-set", given="a setting that is not NAME=VALUE", code=2,
        told="set must be NAME=VALUE", args=DESIGN + " --set form"),
    LocalCase(name="G18-two", given="bounds and a range", code=2,
        told="one of --bounds, --regions, --options, --range and --words",
        args=DESIGN + " --range 0 1"),
    LocalCase(name="G11-next", given="a next round of a campaign of one", code=2,
        told="asked together", args=f"next {CAMPAIGN} parts -o new.json"),
    LocalCase(name="G12-rows", given="a file that is no table of rows", code=8,
        told="must be CSV in UTF-8",
        args=f"randomize {CAMPAIGN} {LINES} -o new.jsonl"),
    LocalCase(name="G19-tickets", given="shuffled reports with tickets", code=2,
        told="must be without tickets", args=f"{DESCRIBE} --shuffled --delta 1e-6 --tickets"),
    LocalCase(name="G20-no-delta", given="shuffled reports and no delta", code=2,
        told="delta must be a number above 0", args=f"{DESCRIBE} --shuffled"),
    LocalCase(name="G21-delta", given="a delta of 1", code=2,
        told="delta must be a number above 0", args=f"{DESCRIBE} --shuffled --delta 1"),
    LocalCase(name="G22-delta-alone", given="a delta without shuffling", code=2,
        told="with shuffled alone", args=f"{DESCRIBE} --delta 1e-6"),
    LocalCase(name="G23-plan", given="a plan of fewer than 1,000 devices", code=2,
        told="devices must be", args="plan --bounds 0 0 8 4 --devices 999 --epsilon 1"),
    LocalCase(name="G24-plan-rounds", given="a plan of five rounds", code=2,
        told="rounds must be 1, 2, 3, 4 or 7",
        args="plan --bounds 0 0 8 4 --devices 9999 --epsilon 1 --rounds 5"),
    LocalCase(name="G25-plan-points", given="public points that are all out of bounds", code=2,
        told="points must be inside the bounds",
        setup=lambda: Path("far.csv").write_text("lon,lat\n99,99\n"),
        args="plan --bounds 0 0 8 4 --devices 9999 --epsilon 1 --points far.csv"),
    LocalCase(name="G26-regions-id", given="regions without a column of ids", code=2,
        told="--regions id must be the column", setup=lambda: write_wards(),
        args=REGIONS.replace("--regions id=ward ", "")),
    LocalCase(name="G27-regions-two", given="regions and a range", code=2,
        told="one of --bounds, --regions, --options, --range and --words",
        args=REGIONS + " --range 0 1"),
    LocalCase(name="G28-regions-kind", given="regions that are map tiles", code=2,
        told="must be files of polygons, got tiles",
        args=REGIONS.replace("wards.csv --regions id=ward", "tiles=8")),
    LocalCase(name="G29-regions-elsewhere", given="an area in no region as a region", code=2,
        told="with gaps outside", setup=lambda: write_wards(),
        args=REGIONS + " --regions gaps=elsewhere --bounds 0 0 8 5"),
    LocalCase(name="G30-regions-file", given="a missing file of regions", code=8,
        told="does not exist", args=REGIONS),
    LocalCase(name="G31-regions-epsilon", given="regions and no epsilon", code=2,
        told="--epsilon must be given", args=REGIONS.replace("--epsilon 1", "")),
    LocalCase(name="G32-rings", given="an outline of two vertices in a campaign", code=2,
        told="a region must be spelled", args=DESCRIBE, setup=lambda: ask_regions("0 0 9 9 0 0")),
    LocalCase(name="G33-rings-text", given="an outline whose vertices are no numbers", code=2,
        told="a region must be spelled", args=DESCRIBE,
        setup=lambda: ask_regions("0 0 9 9 x 9 0 0")),
    LocalCase(name="G34-rings-crossed", given="an outline that crosses itself", code=2,
        told="must be a valid polygon", setup=lambda: ask_regions("0 0 3 3 3 0 0 3 0 0"),
        args=f"aggregate {CAMPAIGN} few -o r.psd.parquet"),
)
# fmt: on


def ask_number():
    """A campaign that asks for a number."""
    cells, protocol = ["0", "100"], {"name": "piecewise", "window": 300}
    with_campaign(((1_000_000, cells, protocol),), question="numbers", domain=None)()


def answer_twice():
    """A campaign of options that the device has answered twice, which is all of its cap."""
    protocol = {"name": "rappor", "encoding": "one-hot", "flips": 9}
    fields = {"question": "options", "domain": None}
    groups = ((1_000_000, ["bus", "train"], protocol),)
    with_campaign(groups, **fields)()
    for _ in range(2):
        answer_place(STORE, campaign(groups, **fields), "bus", float("nan"), Words())


def write_wards():
    """A file of two wards."""
    rows = 'ward,wkt\na,"SRID=4326;POLYGON((0 0,4 0,4 4,0 4,0 0))"\n'
    Path("wards.csv").write_text(rows + 'b,"SRID=4326;POLYGON((4 0,8 0,8 4,4 4,4 0))"\n')


def ask_regions(ring):
    """A campaign that asks for a region with one outline, and parts in the folder ``few``."""
    from psd.local.collection import collect

    groups = ((1_000_000, [f"a|ward|{ring}"], KARY),)
    with_campaign(groups, question="regions")()
    if ring.count(" ") == 9 and "x" not in ring:
        one = Campaign.load(CAMPAIGN)
        Path(LINES).write_text(draw_report(one, 0, 1, Words()) + "\n")
        collect(CAMPAIGN, [LINES], "few")


def ask_words(*words, bits=4, cohorts=4):
    """A campaign that asks for words, with parts of 50 reports, and a list of words."""
    from psd.local.collection import collect

    protocol = {"name": "rappor", "encoding": "bloom", "flips": 9, "hashes": 1}
    groups = ((1_000_000, [], {**protocol, "bits": bits, "cohorts": cohorts}),)
    fields = {"question": "words", "domain": None}
    with_campaign(groups, **fields)()
    one, source = campaign(groups, **fields), Words()
    lines = [draw_report(one, 0, "a", source) for _ in range(50)]
    Path(LINES).write_text("".join(f"{text}\n" for text in lines))
    collect(CAMPAIGN, [LINES], "parts")
    Path("list.txt").write_text("".join(f"{word}\n" for word in words))


def write_options(*texts):
    """A file of options."""
    Path("options.txt").write_text("".join(f"{text}\n" for text in texts))


def collect_other():
    """Parts of another campaign in the folder ``other``."""
    from psd.local.collection import collect

    other = campaign(GROUPS, title="other")
    Path("other.json").write_bytes(campaign_bytes(GROUPS, title="other"))
    Path("other.jsonl").write_text(draw_report(other, 0, 1, Words()) + "\n")
    collect("other.json", ["other.jsonl"], "other")


def collect_few():
    """Parts of the two good reports in the folder ``few``."""
    from psd.local.collection import collect

    collect(CAMPAIGN, [LINES], "few")


NOT_LOCAL = {
    "D11": "estimates below 0, above n: the estimate `signed` has them, the default has not",
}


def page_rows(row):
    """Lines of the page."""
    return "".join(
        row(case.name, case.given, f"`psd local {case.args.split()[0]}`", case.code, case.told)
        for case in CASES
    )
