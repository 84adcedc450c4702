"""Planted bugs of the device in JavaScript: its file has the bug, and node runs it."""

from privacy.planted_bugs.bug import like, planted
from privacy.planted_bugs.local import ROUNDING, SPENDING, edited

BROWSER = "tests/apps/local/test_device_js.py::"
SAME_REPORTS = BROWSER + "test_the_same_words_give_the_same_reports_as_python_and_in_bulk"
ONCE = BROWSER + "test_a_store_answers_once_and_is_that_of_python"


def changed_source(usual, wrong):
    return edited(usual, wrong, "device.js")


@planted(test=BROWSER + "test_hashes_codes_and_thresholds", like=ROUNDING)
def browser_threshold_rounded_up():
    """Thresholds of the browser are rounded up, so the loss is above epsilon by the last bit."""
    usual = "return (weight << 62n) / ((BigInt(others) << 128n) + weight);"
    return changed_source(usual, usual.replace(";", " + 1n;"))


@planted(test=BROWSER + "test_the_word_before_a_threshold_keeps_and_the_word_at_it_does_not")
@like(ROUNDING)
def browser_compares_floats():
    """The browser compares a word with a probability as floats: the last bits decide nothing."""
    usual = "keeps(threshold) { return this.word() >> 2n < threshold; }"
    wrong = "keeps(p) { return Number(this.word() >> 2n) / 2 ** 62 < Number(p) / 2 ** 62; }"
    return changed_source(usual, wrong)


@planted(test=BROWSER + "test_a_browser_without_randomness_is_refused", like="seeded noise")
def browser_words_of_math_random():
    """Words of the browser come from a generator with a small state, which reports give away."""
    usual = "this.words = [...crypto.getRandomValues(new BigUint64Array(512))];"
    wrong = "this.words = [BigInt(Math.floor(Math.random() * 2 ** 53)) << 11n];"
    return changed_source(usual, wrong)


@planted(test=BROWSER + "test_every_point_gives_a_report")
@like("what a device does beside a report")
def browser_silence_for_outside():
    """A browser whose point is outside says nothing, and so says where it is not."""
    usual = "if (!(west <= x && x <= east && south <= y && y <= north)) return starts.length;"
    return changed_source(usual, usual.replace("return starts.length", "throw new DeviceError()"))


@planted(test=SAME_REPORTS, like="randomness that depends on the value")
def browser_hash_seed_from_the_value():
    """The hash function of the browser is a function of the answer, so a report names it."""
    usual = "const drawn = 1 + words.below(functions - 1);"
    return changed_source(usual, "const drawn = 1 + (answer % (functions - 1));")


@planted(test=SAME_REPORTS, like="a wrong law")
def browser_takes_every_word():
    """A biased remainder: words beyond the last multiple of a limit are not drawn again."""
    return changed_source("while (word >= last) word = this.word();", "")


@planted(test=ONCE, like=SPENDING)
def browser_draws_anew_each_time():
    """A browser draws again when it is asked again, so its answers average out."""
    usual = "if (entry && entry.report !== null) return { text, report: entry.report };"
    return changed_source(usual, "")


@planted(test=ONCE, like=SPENDING)
def browser_cap_of_each_campaign_alone():
    """Every campaign is compared with the cap alone, so several exceed it together."""
    usual = "if (spentBy(answers) + campaign.nano > cap)"
    return changed_source(usual, "if (campaign.nano > cap)")


@planted(test=BROWSER + "test_a_lost_or_damaged_store_answers_nothing", like=SPENDING)
def browser_with_a_lost_store_starts_anew():
    """A browser whose store is lost begins with a cap of its own."""
    usual = "if (text === undefined) throw new DeviceError(lost, 9);"
    wrong = "if (text === undefined) return { cap: NANO, answers: {} };"
    return changed_source(usual, wrong)


@planted(test=BROWSER + "test_no_campaign_fetches_or_uses_up_the_report_of_another")
@like("the same device counted or charged again")
def browser_report_for_whoever_names_its_campaign():
    """The browser gives a report to each campaign that names the one it was for as earlier."""
    usual = (
        "if (!entry && rounds.some((each) => each.report !== null)) return { text, report: null };"
    )
    given = "rounds.find((each) => each.report !== null).report"
    return changed_source(usual, usual.replace("report: null", f"report: {given}"))
