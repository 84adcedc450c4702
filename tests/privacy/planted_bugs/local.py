"""Planted bugs of local campaigns: devices that spend more than they say, or say too much."""

from __future__ import annotations

import math
import os
import random
import tempfile
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa

from privacy.planted_bugs.bug import planted, replaced
from psd.estimation import local_measurements
from psd.local import campaign_design, counting, device, parts
from psd.local.device import (
    NANO,
    UNIT,
    Campaign,
    HashingDraw,
    KaryDraw,
    NumberDraw,
    RapporDraw,
    Store,
    UnaryDraw,
    Words,
    draw_report,
    exp_lower,
    keep_threshold,
)
from psd.local.protocols._numbers import UnbiasedProtocol

CONTRACT = "tests/contract/test_local_protocols.py::"
PRIVACY = CONTRACT + "test_privacy_is_exact"
LAW = CONTRACT + "test_law_is_what_the_device_draws"
THRESHOLDS = CONTRACT + "test_thresholds_are_the_golden_ones_and_the_largest_that_are_private"
WORDS = CONTRACT + "test_the_word_before_a_threshold_keeps_and_the_word_at_it_does_not"
DEVICE = "tests/unit/local/test_device.py::"

FORMULAS = "formulas of the source documents as they are printed"
SPENDING = "a device that forgets what it has spent"
ROUNDING = "probabilities in floats, or rounded to the wrong side"
SIDE = "what a device does beside its report"


@planted(test=PRIVACY, like=FORMULAS)
def one_hot_bits_at_all_of_epsilon():
    """Each bit of the symmetric unary protocol has all of epsilon, so a report has twice."""

    def thresholds(self):
        keep = keep_threshold(self.nano, 1)
        return UNIT - keep, keep

    return replaced(UnaryDraw, "thresholds", property(thresholds))


@planted(test=THRESHOLDS, like=ROUNDING)
def threshold_rounded_up():
    """Thresholds are rounded up, so the loss is above epsilon by the last bit."""

    def rounded(nano, others, each=1):
        weight = exp_lower(nano) * each
        return -(-(weight << 62) // ((others << 128) + weight))

    return replaced(device, "keep_threshold", rounded)


@planted(test=WORDS, like=ROUNDING)
def word_compared_as_a_float():
    """A word is compared with a probability, as floats: the last bits decide nothing."""

    def keeps(self, threshold):
        return (self.word() >> 2) / UNIT < threshold / UNIT

    return replaced(Words, "keeps", keeps)


@planted(test=DEVICE + "test_campaigns_with_wrong_fields_are_refused", like="trusted parameters")
def threshold_from_the_campaign():
    """A probability in the campaign takes the place of the one that follows from epsilon."""

    make_draw = device._make_draw

    def trusting(name, nano, answers, settings, digest):
        p = settings.pop("p", None)
        draw = make_draw(name, nano, answers, settings, digest)
        if p is not None:
            draw.__dict__["threshold"] = int(p) * UNIT
        return draw

    return replaced(device, "_make_draw", trusting)


@planted(test=LAW, like="randomness that depends on the value")
def hash_seed_from_the_value():
    """The hash function is a function of the answer, so a report names it."""

    def randomise(self, answer, words):
        function = 1 + answer % (self.functions - 1)
        return f"[{function},{self.value(function, self.codes[answer])}]"

    return replaced(HashingDraw, "randomise", randomise)


@planted(test=LAW, like=FORMULAS)
def longitude_and_latitude_at_all_of_epsilon():
    """The column and the row of an answer have all of epsilon each, so a report has twice."""

    def randomise(self, answer, words):
        side = math.isqrt(self.answers) + 1
        threshold, drawn = keep_threshold(self.nano, side - 1), []
        for true in divmod(answer, side):
            other = true if words.keeps(threshold) else words.below(side - 1)
            drawn.append(other + (other != true and other >= true))
        return f"[{min(drawn[0] * side + drawn[1], self.answers - 1)}]"

    return replaced(KaryDraw, "randomise", randomise)


@planted(test=PRIVACY, like="protocols of peers in which a 1 is never flipped (pure-ldp 1.2.0)")
def true_bit_never_flipped():
    """The bit of the true answer is always 1, so a 0 rules an answer out."""

    return replaced(UnaryDraw, "thresholds", property(lambda self: (UNIT // 4, UNIT - 1)))


RAPPOR = "tests/contract/test_rappor.py::"
RAPPOR_LAW = RAPPOR + "test_law_of_settled_bits_and_of_reports_is_what_the_device_draws"


@planted(test=RAPPOR + "test_both_epsilons_are_the_enumerated_ones",
         like="protocols of peers in which a 1 is never flipped (pure-ldp 1.2.0)")  # fmt: skip
def settled_1_never_flipped():
    """A settled bit of an answer is always 1, so a 0 of many reports rules the answer out."""

    def settle(self, answer, words):
        cohort = words.below(self.cohorts)
        ones, flip = self.bits(answer, cohort), self.flips << 54
        return [cohort, words.mask(UNIT - 1 if i in ones else flip for i in range(self.answers))]

    return replaced(RapporDraw, "settle", settle)


@planted(test=RAPPOR + "test_privacy_of_rappor_is_exact", like=FORMULAS)
def bits_of_a_word_at_epsilon_over_hashes():
    """Each bit of a word has epsilon / h, though two words differ in 2 h bits."""

    def thresholds(self):
        keep = keep_threshold(self.nano, 1, parts=self.hashes)
        high = min((256 * keep - (self.flips << 62)) // (256 - 2 * self.flips), UNIT)
        return UNIT - high, high

    return replaced(RapporDraw, "thresholds", property(thresholds))


@planted(test=DEVICE + "test_asked_again_rappor_reports_the_first_answer_anew", like=SPENDING)
def another_word_settles_other_bits():
    """A device settles bits for each answer, so a change of it is seen in its reports."""
    answer_place = device.answer_place

    def forgetting(path, *about):
        with Store.locked(path) as store:
            for entry in store.answers.values():
                entry |= {"settled": {}, "report": None}
            store.save()
        return answer_place(path, *about)

    return replaced(device, "answer_place", forgetting)


@planted(test=DEVICE + "test_settled_bits_follow_from_the_secret_of_the_store", like=SPENDING)
def settled_bits_from_fresh_words():
    """Settled bits follow from no secret, so a copy of a store draws them again."""

    def fresh(secret, text):
        return iter(())

    return replaced(device, "keyed_words", fresh)


@planted(test=DEVICE + "test_all_reports_of_an_answer_cost_no_more_than_its_settled_bits",
         like=SPENDING)  # fmt: skip
def further_reports_cost_nothing():
    """A device charges its first report alone, though further ones tell more of its bits."""
    return replaced(RapporDraw, "lifetime", property(lambda self: self.nano))


@planted(test=DEVICE + "test_asked_again_a_device_gives_the_same_report", like=SPENDING)
def a_new_draw_each_day():
    """A device draws again when it is asked again, so its answers average out."""

    def answer(path, campaign, x, y, words, ticket=None):
        group = campaign.draw_group(words)
        return draw_report(campaign, group, campaign.answer_of(group, x, y), words, ticket)

    return replaced(device, "answer_place", answer)


@planted(test=DEVICE + "test_lost_and_damaged_stores_answer_nothing", like=SPENDING)
def lost_store_starts_anew():
    """A device whose store is lost or damaged begins with all of its cap."""
    locked = Store.locked.__func__

    @contextmanager
    def forgiving(kind, path):
        if not Path(path).exists():
            Store.create(path, NANO)
        with locked(kind, path) as store:
            yield store

    return replaced(Store, "locked", classmethod(forgiving))


@planted(test=DEVICE + "test_no_report_leaves_before_it_is_synced", like=SPENDING)
def report_before_the_store_is_synced():
    """A store is written and not synced, so a power cut forgets a report that has left."""

    def save(self, to=None):
        Path(self.path + ".new").write_bytes(self.content())
        os.replace(self.path + ".new", self.path)

    return replaced(Store, "save", save)


@planted(test=DEVICE + "test_campaigns_add_up_to_the_cap", like=SPENDING)
def cap_of_each_campaign_alone():
    """Every campaign is compared with the cap alone, so several exceed it together."""
    return replaced(Store, "spent", property(lambda self: 0))


@contextmanager
def edited(old, new, name="device.py"):
    """The program of the device has another text, in a folder of its own."""
    source = Path(device.__file__).with_name(name).read_text()
    assert source.count(old) == 1
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).write_text(source.replace(old, new))
        with replaced(device, "__file__", str(Path(folder, "device.py"))):
            yield


@planted(test=DEVICE + "test_every_point_gives_a_report_and_nothing_else", like=SIDE)
def silence_for_outside():
    """A device whose point is outside says nothing, and so says where it is not."""
    return edited(
        "            return len(partition.names)\n",
        '            raise DeviceError("the point is outside")\n',
    )


ANSWERS = DEVICE + "test_every_answer_gives_a_report_and_nothing_else"


@planted(test=ANSWERS, like=SIDE)
def text_in_place_of_a_number_is_refused():
    """A device whose answer is no number refuses it, and so says what the answer is not."""
    return edited(
        "        with suppress(ValueError):  # a refusal would depend on the answer\n"
        "            value = float(number)\n",
        "        try:\n            value = float(number)\n        except ValueError:\n"
        '            raise DeviceError("answer must be a number") from None\n',
    )


@planted(test=ANSWERS, like=SIDE)
def answer_below_zero_taken_for_an_option():
    """An answer that begins with a minus is taken for an option, and refused."""
    return edited('.replace("--answer\\0", "--answer=")', "")


@planted(test="tests/unit/local/test_device_js.py::test_every_answer_gives_a_report", like=SIDE)
def other_options_are_refused():
    """The device in JavaScript refuses a text that is no option of the campaign."""
    return edited(
        "return starts.includes(x) ? starts.indexOf(x) : starts.length;",
        'require(starts.includes(x), "answer must be an option"); return starts.indexOf(x);',
        "device.js",
    )


@planted(test=DEVICE + "test_the_group_depends_on_no_point", like=SIDE)
def group_from_the_cell():
    """The group of a device follows from its point, and every report names the group."""
    answer_of = Campaign.answer_of

    def remembering(self, group, x, y):
        _seen["x"] = 0 if math.isnan(x) else x
        return answer_of(self, group, x, y)

    def draw_group(self, words):
        return int(_seen.get("x", 0) > 4)

    stack = ExitStack()
    stack.enter_context(replaced(Campaign, "answer_of", remembering))
    stack.enter_context(replaced(Campaign, "draw_group", draw_group))
    return stack


_seen = {}


@planted(test=DEVICE + "test_a_system_without_randomness_is_refused", like="seeded noise")
def words_of_the_module_random():
    """Words come from a generator with a small state, which reports give away."""
    return replaced(Words, "word", lambda self: random.getrandbits(64))


@planted(test=LAW, like="a wrong law")
def others_with_the_true_answer():
    """An answer that is replaced may be replaced by itself."""

    def randomise(self, answer, words):
        if words.keeps(self.threshold):
            return f"[{answer}]"
        return f"[{words.below(self.answers)}]"

    return replaced(KaryDraw, "randomise", randomise)


NUMBERS = "tests/contract/test_number_protocols.py::"
NUMBER_PRIVACY = NUMBERS + "test_privacy_of_numbers_is_exact"


def _staircase_weights(solve):
    """Weights of the bounded staircase by another equation; others stay."""
    usual = NumberDraw.__dict__["weights"].func

    def weights(self):
        inside, outside = usual(self)
        if self.law == "bounded-staircase":
            gamma = (self.window + 0.5) / self.answers
            inside = int(outside * math.exp(solve(gamma, self.nano / NANO)))
        return inside, outside

    return replaced(NumberDraw, "weights", property(weights))


@planted(test=NUMBER_PRIVACY, like=FORMULAS)
def staircase_uncorrected():
    """The window of the bounded staircase has the weight exp(epsilon), though it is cut off."""
    return _staircase_weights(lambda gamma, epsilon: epsilon)


@planted(test=NUMBER_PRIVACY, like=FORMULAS)
def second_row_of_the_staircase_as_printed():
    """The correction for windows of half of the range and more has a gamma under the root."""

    def solve(gamma, epsilon):
        growth = gamma * math.exp(epsilon)
        if gamma < 0.5:
            b = growth - 1 + 2 * gamma
            root = math.sqrt(b * b + 8 * gamma * (1 - gamma) * math.exp(epsilon))
            return math.log((b + root) / (4 * gamma))
        root = math.sqrt(growth**2 + 4 * gamma * (1 - gamma) * math.exp(epsilon))
        return math.log(2 * (1 - gamma) * math.exp(epsilon) / (root - growth))

    return _staircase_weights(solve)


@planted(test=NUMBERS + "test_decoded_numbers_are_exactly_unbiased_and_of_the_stated_variance",
         like="a wrong estimator")  # fmt: skip
def outputs_taken_for_numbers():
    """An output is taken for the number itself, so means are drawn to the middle."""

    def decoded(self):
        return [Fraction(i) for i in range(self.outputs)]

    return replaced(UnbiasedProtocol, "decoded", decoded)


@planted(test=NUMBERS + "test_law_of_numbers_is_what_the_device_draws", like="a wrong law")
def number_drawn_by_a_float():
    """A device draws outputs by the random floats of a library."""

    def randomise(self, answer, words):
        sizes, weights = zip(*self.runs(answer), strict=True)
        every = [w for size, w in zip(sizes, weights, strict=True) for _ in range(size)]
        return f"[{random.choices(range(len(every)), every)[0]}]"

    return replaced(NumberDraw, "randomise", randomise)


ROUNDS = "tests/unit/local/test_rounds.py::"
AGAIN = "the same device counted or charged again"


@planted(test=ROUNDS + "test_real_devices_from_start_to_end", like=AGAIN)
def every_round_answered_by_every_device():
    """A device takes the group that is asked, so it answers in every round."""

    def draw_group(self, words):
        return next(i for i, group in enumerate(self.groups) if group.draw is not None)

    locked = Store.locked.__func__

    @contextmanager
    def forgetting(kind, path):
        with locked(kind, path) as store:
            store.answers.clear()
            yield store

    stack = ExitStack()
    stack.enter_context(replaced(Campaign, "draw_group", draw_group))
    stack.enter_context(replaced(Store, "locked", classmethod(forgetting)))
    return stack


@planted(test=ROUNDS + "test_seven_rounds_have_about_the_error_of_four", like="a divided budget")
def epsilon_split_over_rounds():
    """Each round has its part of epsilon, although a device answers in one of them alone."""
    content = campaign_design.campaign_content

    def split(bounds, crs, title, nano, devices, groups):
        return content(bounds, crs, title, nano // len(groups), devices, groups)

    return replaced(campaign_design, "campaign_content", split)


@planted(test=ROUNDS + "test_the_perturbation_error_is_predicted", like="a wrong variance")
def constant_variance_alone():
    """The variance of a count lacks the term of its devices and that of the sampling."""

    def variance(share, level, reports):
        p, q = level.p, level.q
        return np.full(np.shape(share), float(q * (1 - q) / (p - q) ** 2) / level.reports)

    return replaced(local_measurements, "share_variance", variance)


@planted(test=ROUNDS + "test_sums_do_not_drift", like="a weight that follows its estimate")
def weights_follow_estimates():
    """The variance of a node is computed from its own estimate, so sums drift upward."""
    measure_at = local_measurements._measure_at

    def follow(tree, local, shares):
        own = measure_at(tree, local, shares).value / local.reports
        return measure_at(tree, local, np.maximum(own, 0))

    return replaced(local_measurements, "_measure_at", follow)


@planted(test="tests/unit/estimation/test_local_measurements.py::"
         "test_estimates_and_variances_are_exact_for_fixed_answers",
         like="bias of estimates that are cut off")  # fmt: skip
def estimates_clipped_before_they_are_summed():
    """Estimates below 0 become 0, so the sum over many empty cells is too large."""
    estimate = local_measurements.share_estimate
    return replaced(
        local_measurements, "share_estimate", lambda s, level: np.maximum(estimate(s, level), 0)
    )


@planted(test="tests/unit/estimation/test_local_measurements.py::"
         "test_the_sampling_of_the_level_adds_its_term", like="a wrong variance")  # fmt: skip
def sampling_of_the_group_left_out():
    """The variance lacks the term of the devices that were asked elsewhere."""
    variance = local_measurements.share_variance
    return replaced(
        local_measurements, "share_variance", lambda f, level, n: variance(f, level, level.reports)
    )


COLLECT = "tests/unit/local/test_collection.py::"
PARTS = COLLECT + "test_parts_are_sorted_by_nonce_and_hold_nothing_else"
BESIDE = "what a collector keeps beside a report"


@planted(test=PARTS, like=BESIDE)
def time_beside_the_reports():
    """A part states when it was written, and so when its devices were online."""
    canonical = parts.canonical_json
    return replaced(parts, "canonical_json", lambda value: canonical({**value, "time": 7}))


@planted(test=PARTS, like=BESIDE)
def reports_in_the_order_in_which_they_came():
    """A part has the order of its lines, which says who answered before whom."""
    return replaced(parts, "drop_repeated", lambda table: (table, 0))


@planted(test=COLLECT + "test_a_nonce_counts_once_in_a_part_and_across_parts", like="counted twice")
def nonces_of_other_parts_count_again():
    """A report that is in two parts counts twice."""
    return replaced(counting, "_drop_repeated", lambda tables: (pa.concat_tables(tables), 0))
