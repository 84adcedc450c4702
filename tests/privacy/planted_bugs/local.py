"""Planted bugs of local campaigns: devices that spend more than they say, or say too much."""

import math
import os
import random
import shutil
import tempfile
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa

from privacy.planted_bugs.bug import around, instead, like, planted, replaced, together
from psd.apps.local import device
from psd.apps.local.device import (
    NANO,
    UNIT,
    Store,
    draw_report,
    exp_lower,
    keep_threshold,
)

CONTRACT = "tests/apps/local/test_local_protocols.py::"
PRIVACY = CONTRACT + "test_privacy_is_exact"
LAW = CONTRACT + "test_law_is_what_the_device_draws"
THRESHOLDS = CONTRACT + "test_thresholds_are_the_golden_ones_and_the_largest_that_are_private"
WORDS = CONTRACT + "test_the_word_before_a_threshold_keeps_and_the_word_at_it_does_not"
DEVICE = "tests/apps/local/test_device.py::"

FORMULAS = "formulas of the source documents as they are printed"
SPENDING = "a device that forgets what it has spent"
ROUNDING = "probabilities in floats, or rounded to the wrong side"
SIDE = "what a device does beside its report"
BESIDE = "what a collector keeps beside a report"


@planted(test=PRIVACY, like=FORMULAS)
@instead("psd.apps.local.device.UnaryDraw.thresholds")
def one_hot_bits_at_all_of_epsilon(self):
    """Each bit of the symmetric unary protocol has all of epsilon, so a report has twice."""
    keep = keep_threshold(self.nano, 1)
    return UNIT - keep, keep


@planted(test=THRESHOLDS, like=ROUNDING)
@instead("psd.apps.local.device.keep_threshold")
def threshold_rounded_up(nano, others, each=1):
    """Thresholds are rounded up, so the loss is above epsilon by the last bit."""
    weight = exp_lower(nano) * each
    return -(-(weight << 62) // ((others << 128) + weight))


@planted(test=WORDS, like=ROUNDING)
@instead("psd.apps.local.device.Words.keeps")
def word_compared_as_a_float(self, threshold):
    """A word is compared with a probability, as floats: the last bits decide nothing."""
    return (self.word() >> 2) / UNIT < threshold / UNIT


@planted(test=DEVICE + "test_campaigns_with_wrong_fields_are_refused", like="trusted parameters")
@around("psd.apps.local.device._make_draw")
def threshold_from_the_campaign(make_draw, name, nano, answers, settings, digest):
    """A probability in the campaign takes the place of the one that follows from epsilon."""
    p = settings.pop("p", None)
    draw = make_draw(name, nano, answers, settings, digest)
    if p is not None:
        draw.__dict__["threshold"] = int(p) * UNIT
    return draw


@planted(test=LAW, like="randomness that depends on the value")
@instead("psd.apps.local.device.HashingDraw.randomise")
def hash_seed_from_the_value(self, answer, words):
    """The hash function is a function of the answer, so a report names it."""
    function = 1 + answer % (self.functions - 1)
    return f"[{function},{self.value(function, self.codes[answer])}]"


@planted(test=LAW, like=FORMULAS)
@instead("psd.apps.local.device.KaryDraw.randomise")
def longitude_and_latitude_at_all_of_epsilon(self, answer, words):
    """The column and the row of an answer have all of epsilon each, so a report has twice."""
    side = math.isqrt(self.answers) + 1
    threshold, drawn = keep_threshold(self.nano, side - 1), []
    for true in divmod(answer, side):
        other = true if words.keeps(threshold) else words.below(side - 1)
        drawn.append(other + (other != true and other >= true))
    return f"[{min(drawn[0] * side + drawn[1], self.answers - 1)}]"


@planted(test=PRIVACY, like="protocols of peers in which a 1 is never flipped (pure-ldp 1.2.0)")
@instead("psd.apps.local.device.UnaryDraw.thresholds")
def true_bit_never_flipped(self):
    """The bit of the true answer is always 1, so a 0 rules an answer out."""
    return UNIT // 4, UNIT - 1


RAPPOR = "tests/apps/local/test_rappor.py::"
RAPPOR_LAW = RAPPOR + "test_law_of_settled_bits_and_of_reports_is_what_the_device_draws"


@planted(test=RAPPOR + "test_both_epsilons_are_the_enumerated_ones")
@like("protocols of peers in which a 1 is never flipped (pure-ldp 1.2.0)")
@instead("psd.apps.local.device.RapporDraw.settle")
def settled_1_never_flipped(self, answer, words):
    """A settled bit of an answer is always 1, so a 0 of many reports rules the answer out."""
    cohort = words.below(self.cohorts)
    ones, flip = self.bits(answer, cohort), self.flips << 54
    return [cohort, words.mask(UNIT - 1 if i in ones else flip for i in range(self.answers))]


@planted(test=RAPPOR + "test_privacy_of_rappor_is_exact", like=FORMULAS)
@instead("psd.apps.local.device.RapporDraw.thresholds")
def bits_of_a_word_at_epsilon_over_hashes(self):
    """Each bit of a word has epsilon / h, though two words differ in 2 h bits."""
    keep = keep_threshold(self.nano, 1, parts=self.hashes)
    high = min((256 * keep - (self.flips << 62)) // (256 - 2 * self.flips), UNIT)
    return UNIT - high, high


COSTS = RAPPOR + "test_a_report_by_p_and_q_costs_what_its_integer_law_says"


@planted(test=DEVICE + "test_a_campaign_whose_epsilon_does_not_cover_p_and_q_is_refused")
@like("trusted parameters")
@instead("psd.apps.local.device.RapporDraw.once")
def epsilon_of_p_and_q_believed(self):
    """A device believes the epsilon of a campaign, though its p and q cost more."""
    return self.nano


@planted(test=COSTS, like=FORMULAS)
@around("psd.apps.local.device.RapporDraw.once")
def p_and_q_exchanged_in_epsilon(once, self):
    """The epsilon of a report takes p for q, so a larger difference of both costs less."""
    high, low = self.thresholds
    other = type(self)(self.nano, self.answers, self.encoding, self.flips, self.hashes)
    other.__dict__["thresholds"] = (low, high)
    return once(other)


@planted(test=COSTS, like=FORMULAS)
@around("psd.apps.local.device.RapporDraw.once")
def one_bit_of_a_word_in_epsilon(once, self):
    """The epsilon of a report is that of one bit, though two words differ in 2 h bits."""
    about = (self.nano, self.answers, self.encoding, self.flips)
    return once(type(self)(*about, p=self.p, q=self.q))


@planted(test="tests/apps/local/test_word_tables.py::test_errors_of_a_word_are_those_of_its_law")
@like("a wrong variance")
@around("psd.apps.local.answer_tables.noise_variance")
def bits_that_are_held_as_noisy_as_others(variance, p, q, share):
    """The variance of a bit of words does not depend on how many devices have it."""
    return variance(p, q, 0)


FOREIGN = "tests/apps/local/test_rappor_csv.py::"


@planted(test=FOREIGN + "test_bits_and_cohorts_are_those_of_their_client", like=BESIDE)
@around("psd.apps.local.collection._answers")
def true_bits_of_other_clients_collected(answers, campaign, file, refused):
    """Of a file of other clients, the bits of the answer are kept in place of the report."""
    lines = (line.replace("bloom", "irr", 1).replace("prr,irr", "prr,", 1) for line in file)
    return answers(campaign, lines, refused)


@planted(test=FOREIGN + "test_a_file_counts_once_and_another_with_the_same_rows_again")
@like("counted twice")
@around("psd.apps.local.collection.keyed_words")
def file_of_other_clients_counts_again(keyed, secret, text):
    """Rows get random nonces, so a file that is collected again counts twice."""
    return keyed(os.urandom(32).hex(), text)


@planted(test=DEVICE + "test_asked_again_rappor_reports_the_first_answer_anew", like=SPENDING)
@around("psd.apps.local.device.answer_place")
def another_word_settles_other_bits(answer_place, path, *about):
    """A device settles bits for each answer, so a change of it is seen in its reports."""
    with Store.locked(path) as store:
        for entry in store.answers.values():
            entry |= {"settled": {}, "report": None}
        store.save()
    return answer_place(path, *about)


@planted(test=DEVICE + "test_settled_bits_follow_from_the_secret_of_the_store", like=SPENDING)
@instead("psd.apps.local.device.keyed_words")
def settled_bits_from_fresh_words(secret, text):
    """Settled bits follow from no secret, so a copy of a store draws them again."""
    return iter(())


@planted(test=DEVICE + "test_all_reports_of_an_answer_cost_no_more_than_its_settled_bits")
@like(SPENDING)
def further_reports_cost_nothing():
    """A device charges its first report alone, though further ones tell more of its bits."""
    return replaced("psd.apps.local.device.RapporDraw.lifetime", property(lambda self: self.nano))


@planted(test=DEVICE + "test_asked_again_a_device_gives_the_same_report", like=SPENDING)
@instead("psd.apps.local.device.answer_place")
def a_new_draw_each_day(path, campaign, x, y, words, ticket=None):
    """A device draws again when it is asked again, so its answers average out."""
    group = campaign.draw_group(words)
    return draw_report(campaign, group, campaign.answer_of(group, x, y), words, ticket)


@planted(test=DEVICE + "test_lost_and_damaged_stores_answer_nothing", like=SPENDING)
@around("psd.apps.local.device.Store.locked")
def lost_store_starts_anew(locked, kind, path):
    """A device whose store is lost or damaged begins with all of its cap."""
    if not Path(path).exists():
        Store.create(path, NANO)
    return locked(kind, path)


LINKS = "a file that is known by two names"
LINKED = DEVICE + "test_links_to_a_store_lead_to_one_store"


@planted(test=LINKED, like=LINKS)
@around("psd.apps.local.device.Store.locked")
@contextmanager
def store_behind_a_link_is_spent_twice(locked, kind, path):
    """A store that is opened by a link is saved in place of the link, and stays as it was."""
    yield Store._parse(path, Path(path).read_bytes())


@planted(test=LINKED, like=LINKS)
@around("psd.apps.local.device.Store.locked")
@contextmanager
def store_with_a_hard_link_is_spent_twice(locked, kind, path):
    """A store with two names answers by each of them."""
    path = os.path.realpath(path)
    yield Store._parse(path, Path(path).read_bytes())


@planted(test=DEVICE + "test_a_file_that_is_left_over_or_prepared_is_not_written_to", like=LINKS)
@instead("psd.apps.local.device.Store.save")
def prepared_file_is_written_to(self, to=None):
    """What stands beside a store under the name of its next content is opened, whatever it is."""
    Path(self.path + ".new").write_bytes(self.content())
    os.replace(self.path + ".new", self.path)


@planted(test=DEVICE + "test_no_report_leaves_before_it_is_synced", like=SPENDING)
@instead("psd.apps.local.device.Store.save")
def report_before_the_store_is_synced(self, to=None):
    """A store is written and not synced, so a power cut forgets a report that has left."""
    Path(self.path + ".new").write_bytes(self.content())
    os.replace(self.path + ".new", self.path)


@planted(test=DEVICE + "test_campaigns_add_up_to_the_cap", like=SPENDING)
def cap_of_each_campaign_alone():
    """Every campaign is compared with the cap alone, so several exceed it together."""
    return replaced("psd.apps.local.device.Store.spent", property(lambda self: 0))


@contextmanager
def edited(old, new, name="device.py"):
    """The program of the device has another text, in a folder of its own."""
    usual = Path(device.__file__).parent
    source = (usual / name).read_text()
    assert source.count(old) == 1, old
    with tempfile.TemporaryDirectory() as folder:
        for program in ("device.py", "device.js"):
            shutil.copy(usual / program, folder)
        Path(folder, name).write_text(source.replace(old, new))
        with replaced("psd.apps.local.device.__file__", str(Path(folder, "device.py"))):
            yield


@planted(test=DEVICE + "test_every_point_gives_a_report_and_nothing_else", like=SIDE)
def silence_for_outside():
    """A device whose point is outside says nothing, and so says where it is not."""
    told = '    raise DeviceError("the point is outside")\n'
    return edited("    return len(partition.names)\n", told)


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
    return edited('islice(given, text == "--answer")', "islice(given, 0)")


@planted(test="tests/apps/local/test_device_js.py::test_every_answer_gives_a_report", like=SIDE)
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
    seen = [0]

    @around("psd.apps.local.device.Campaign.answer_of")
    def remembering(answer_of, self, group, x, y):
        seen.append(0 if math.isnan(x) else x)
        return answer_of(self, group, x, y)

    by_x = replaced("psd.apps.local.device.Campaign.draw_group", lambda *_: int(seen[-1] > 4))
    return together(remembering(), by_x)


@planted(test=DEVICE + "test_a_system_without_randomness_is_refused", like="seeded noise")
def words_of_the_module_random():
    """Words come from a generator with a small state, which reports give away."""
    return replaced("psd.apps.local.device.Words.word", lambda self: random.getrandbits(64))


@planted(test=LAW, like="a wrong law")
@instead("psd.apps.local.device.KaryDraw.randomise")
def others_with_the_true_answer(self, answer, words):
    """An answer that is replaced may be replaced by itself."""
    if words.keeps(self.threshold):
        return f"[{answer}]"
    return f"[{words.below(self.answers)}]"


NUMBERS = "tests/apps/local/test_number_protocols.py::"
NUMBER_PRIVACY = NUMBERS + "test_privacy_of_numbers_is_exact"


def _staircase_weights(solve):
    """Weights of the bounded staircase by another equation; others stay."""

    @around("psd.apps.local.device.NumberDraw.weights")
    def weights(usual, self):
        inside, outside = usual(self)
        if self.law == "bounded-staircase":
            gamma = (self.window + 0.5) / self.answers
            inside = int(outside * math.exp(solve(gamma, self.nano / NANO)))
        return inside, outside

    return weights()


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


@planted(test=NUMBERS + "test_decoded_numbers_are_exactly_unbiased_and_of_the_stated_variance")
@like("a wrong estimator")
@instead("psd.apps.local.protocols.numbers.UnbiasedProtocol.decoded")
def outputs_taken_for_numbers(self):
    """An output is taken for the number itself, so means are drawn to the middle."""
    return [Fraction(i) for i in range(self.outputs)]


@planted(test=NUMBERS + "test_law_of_numbers_is_what_the_device_draws", like="a wrong law")
@instead("psd.apps.local.device.NumberDraw.randomise")
def number_drawn_by_a_float(self, answer, words):
    """A device draws outputs by the random floats of a library."""
    sizes, weights = zip(*self.runs(answer), strict=True)
    every = [w for size, w in zip(sizes, weights, strict=True) for _ in range(size)]
    return f"[{random.choices(range(len(every)), every)[0]}]"


AGAIN = "the same device counted or charged again"


@planted(test=DEVICE + "test_a_device_answers_in_its_group_only_and_once", like=AGAIN)
def every_round_answered_by_every_device():
    """A device takes the group that is asked, so it answers in every round."""

    @instead("psd.apps.local.device.Campaign.draw_group")
    def asked_group(self, words):
        return next(i for i, group in enumerate(self.groups) if group.draw is not None)

    @around("psd.apps.local.device.Store.locked")
    @contextmanager
    def forgetting(locked, kind, path):
        with locked(kind, path) as store:
            store.answers.clear()
            yield store

    return together(asked_group(), forgetting())


@planted(test=DEVICE + "test_no_campaign_fetches_or_uses_up_the_report_of_another", like=AGAIN)
@around("psd.apps.local.device.answer_place")
def report_for_whoever_names_its_campaign(answer_place, path, campaign, *about):
    """A campaign gets the report that a device gave to one that it names as earlier."""
    with Store.locked(path) as store:
        for entry in map(store.answers.get, campaign.earlier):
            if entry and entry["report"]:
                return entry["report"]
    return answer_place(path, campaign, *about)


@planted(test=DEVICE + "test_a_group_is_taken_over_from_equal_shares_alone", like=AGAIN)
@around("psd.apps.local.device.answer_place")
def group_taken_over_from_other_shares(answer_place, path, campaign, *about):
    """A device keeps its group in a campaign with other shares, which tells what it was before."""
    with Store.locked(path) as store:
        for name in {*campaign.earlier} & store.answers.keys():
            store.answers[name]["shares"] = campaign.shares
        store.save()
    return answer_place(path, campaign, *about)


@planted(test="tests/apps/local/test_campaign_design.py::"
         "test_a_campaign_is_written_and_read_by_the_device", like="a divided budget")  # fmt: skip
@around("psd.apps.local.campaign_design.campaign_content")
def epsilon_split_over_rounds(content, bounds, crs, title, nano, devices, groups):
    """Each round has its part of epsilon, although a device answers in one of them alone."""
    return content(bounds, crs, title, nano // len(groups), devices, groups)


@planted(test="tests/unit/estimation/test_local_measurements.py::"
         "test_the_sampling_of_the_level_adds_its_term", like="a wrong variance")  # fmt: skip
@instead("psd.estimation.least_squares.share_variance")
def constant_variance_alone(share, level, reports):
    """The variance of a count lacks the term of its devices and that of the sampling."""
    p, q = level.p, level.q
    return np.full(np.shape(share), float(q * (1 - q) / (p - q) ** 2) / level.reports)


@planted(test="tests/apps/local/test_aggregation.py::"
         "test_variances_follow_pooled_shares_and_not_their_own_estimate",
         like="a weight that follows its estimate")  # fmt: skip
@around("psd.estimation.least_squares._measure_at")
def weights_follow_estimates(measure_at, tree, local, shares):
    """The variance of a node is computed from its own estimate, so sums drift upward."""
    own = measure_at(tree, local, shares).value / local.reports
    return measure_at(tree, local, np.maximum(own, 0))


MEASURED = "tests/unit/estimation/test_local_measurements.py::"


@planted(test=MEASURED + "test_estimates_and_variances_are_exact_for_fixed_answers")
@like("bias of estimates that are cut off")
@around("psd.estimation.least_squares.share_estimate")
def estimates_clipped_before_they_are_summed(estimate, share, level):
    """Estimates below 0 become 0, so the sum over many empty cells is too large."""
    return np.maximum(estimate(share, level), 0)


@planted(test=MEASURED + "test_the_sampling_of_the_level_adds_its_term", like="a wrong variance")
@around("psd.estimation.least_squares.share_variance")
def sampling_of_the_group_left_out(variance, share, level, reports):
    """The variance lacks the term of the devices that were asked elsewhere."""
    return variance(share, level, level.reports)


COLLECT = "tests/apps/local/test_collection.py::"
PARTS = COLLECT + "test_parts_are_sorted_by_nonce_and_hold_nothing_else"


@planted(test=PARTS, like=BESIDE)
@around("psd.apps.local.collection.canonical_json")
def time_beside_the_reports(canonical, value):
    """A part states when it was written, and so when its devices were online."""
    return canonical({**value, "time": 7})


@planted(test=PARTS, like=BESIDE)
def reports_in_the_order_in_which_they_came():
    """A part has the order of its lines, which says who answered before whom."""
    return replaced("psd.apps.local.collection.drop_repeated", lambda table: (table, 0))


@planted(test=COLLECT + "test_a_nonce_counts_once_in_a_part_and_across_parts", like="counted twice")
@instead("psd.apps.local.aggregation._drop_repeated")
def nonces_of_other_parts_count_again(tables):
    """A report that is in two parts counts twice."""
    return pa.concat_tables(tables), 0
