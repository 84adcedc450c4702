"""Every registered protocol: its exact law, its privacy, its estimates, and the device's draws."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from psd.apps.local import device
from psd.apps.local.device import (
    NANO,
    UNIT,
    HashingDraw,
    KaryDraw,
    RapporDraw,
    SubsetDraw,
    UnaryDraw,
    Words,
    keep_threshold,
)
from psd.apps.local.protocols import best_protocol, list_protocols, protocol_class, protocol_content
from support.goodness_of_fit import holds
from support.local import Listed, epsilon_of, law_of, log_ratio, support_of, worst_ratio

EPSILONS = (NANO // 10, NANO // 2, NANO, 2 * NANO, 4 * NANO)

# Small domains of each protocol, by epsilon.
SMALL = {
    "k-ary": lambda nano: [KaryDraw(nano, k) for k in (2, 3, 5)],
    "unary": lambda nano: [
        UnaryDraw(nano, d, form) for d in (2, 4) for form in ("symmetric", "optimised")
    ],
    "subset": lambda nano: [
        SubsetDraw(nano, d, w) for d, w in ((2, 1), (5, 1), (5, 2), (5, 3), (6, 5))
    ],
    "rappor": lambda nano: [
        RapporDraw(nano, d, "one-hot", flips) for d, flips in ((2, 1), (4, 1), (4, 16))
    ],
    "hashing": lambda nano: [
        HashingDraw(nano, d, g, "seed") for d, g in ((2, 2), (4, 2), (8, 2), (5, 3), (4, 5), (6, 5))
    ],
}
by_name = pytest.mark.parametrize("name", SMALL)


def small(name, *epsilons):
    """Protocols of all small domains."""
    return [protocol_class(name)(draw=draw) for nano in epsilons for draw in SMALL[name](nano)]


def test_every_protocol_has_a_small_domain_and_a_device():
    assert set(list_protocols()) == SMALL.keys() | device.WINDOWS == device.PROTOCOLS.keys()


@by_name
def test_law_is_what_the_device_draws(name):
    for protocol in small(name, *EPSILONS):
        for answer in range(protocol.answers):
            drawn = law_of(lambda words, a=answer, p=protocol: p.draw.randomise(a, words))
            assert drawn == dict(protocol.law(answer)), protocol
            assert sum(drawn.values()) == 1


@by_name
def test_privacy_is_exact(name):
    for nano in EPSILONS:
        for protocol in small(name, nano):
            worst = worst_ratio([dict(protocol.law(answer)) for answer in range(protocol.answers)])
            loss, epsilon = log_ratio(worst), epsilon_of(nano)
            assert epsilon - epsilon_of(2) < loss <= epsilon, protocol


@by_name
def test_estimates_are_unbiased_and_of_the_stated_variance(name):
    for protocol in small(name, *EPSILONS):
        p, q, d = protocol.p, protocol.q, protocol.answers
        supports, mean = {}, np.zeros((d, d), object)
        for answer in range(d):
            for report, chance in protocol.law(answer):
                if report not in supports:
                    supports[report] = support_of(protocol, report)
                mean[answer] += chance * supports[report].astype(object)
        assert (mean == np.where(np.eye(d, dtype=bool), p, q)).all(), protocol
        variance = mean * (1 - mean)  # of a bit, for each answer and cell
        for share in (Fraction(0), Fraction(1, 3), Fraction(1)):
            exact = share * variance[0][0] + (1 - share) * variance[1][0]
            assert exact / (p - q) ** 2 == protocol.variance(share), protocol


def test_settings_take_the_place_of_the_best_ones():
    best = best_protocol(10**9, 17)
    assert protocol_content(best, {"size": 2}) == {"name": "subset", "size": 2}


def test_variances_of_rare_answers():
    def at(name, nano, answers, **settings):
        protocol = best_protocol(nano, answers, name)
        assert settings.items() <= protocol.settings.items()
        return round(float(protocol.variance(0)), 6)

    assert [at("k-ary", e * NANO, 2) for e in (1, 2, 4)] == [0.920674, 0.181015, 0.019005]
    halves = (NANO // 2, NANO, 2 * NANO, 4 * NANO)
    assert [at("unary", e, 9) for e in halves] == [15.670792, 3.682694, 0.724062, 0.076022]
    symmetric = [small("unary", e * NANO)[0].variance(0) for e in (1, 2, 4)]
    assert [round(float(v), 6) for v in symmetric] == [3.917698, 0.920674, 0.181015]
    # Hashing beyond all digits: q tends to 1 / g.
    assert abs(at("hashing", NANO, 60_000, modulus=3) - 3.770066) < 1e-3
    assert abs(at("hashing", 2 * NANO, 60_000, modulus=7) - 0.731940) < 1e-3
    assert abs(at("hashing", 4 * NANO, 60_000, modulus=53) - 0.076068) < 1e-4
    ratios = [at("subset", NANO, d) / at("unary", NANO, d) for d in (4, 16, 64, 256, 1024)]
    assert [round(r, 3) for r in ratios] == [0.434, 0.845, 0.960, 0.990, 0.998]


def test_seed_001_coin_of_three_quarters_is_ln_3_and_twice_that_one_hot():
    coin = Fraction(3, 4)
    assert round(log_ratio(coin / (1 - coin)), 6) == round(epsilon_of(1_098_612_000), 6)
    assert round(log_ratio((coin / (1 - coin)) ** 2), 6) == round(epsilon_of(2_197_225_000), 6)


GOLDEN = {
    (NANO, 1): 3371412625719392690,
    (NANO, 2): 2656870182454516697,
    (NANO, 3): 2192242823720348389,
    (2 * NANO, 6): 2545064151574931512,
    (4 * NANO, 52): 2362044041679559733,
    (NANO // 2, 2): 2083849181198939898,
}


def test_thresholds_are_the_golden_ones_and_the_largest_that_are_private():
    for (nano, others), threshold in GOLDEN.items():
        assert keep_threshold(nano, others) == threshold
        ratio = [Fraction(t * others, UNIT - t) for t in (threshold, threshold + 1)]
        assert log_ratio(ratio[0]) <= epsilon_of(nano) < log_ratio(ratio[1])


def test_the_word_before_a_threshold_keeps_and_the_word_at_it_does_not():
    for threshold in GOLDEN.values():
        words = [(threshold << 2) - 1, threshold << 2, 0, 2**64 - 1]
        listed = Listed(words)
        assert [listed.keeps(threshold) for _ in words] == [True, False, True, False]


def test_below_is_uniform_and_draws_the_last_words_again():
    last = 2**64 // 7 * 7
    assert Listed([last, 2**64 - 1, last - 1]).below(7) == 6
    assert Listed([7]).below(7) == 0


SAMPLES = 20_000


def support_p_value(protocol, p, q):
    """P-value of the supports of real reports of answer 0, against p and q."""
    words = Words()
    support = np.zeros(protocol.answers, np.int64)
    for _ in range(SAMPLES):
        support += support_of(protocol, protocol.draw.randomise(0, words))
    at = support[0], int(support[1:].sum() / (protocol.answers - 1))
    return min(
        stats.binomtest(n, SAMPLES, float(r)).pvalue for n, r in zip(at, (p, q), strict=True)
    )


@pytest.mark.deep
@by_name
def test_real_devices_have_the_law_and_other_epsilons_are_rejected(name):
    protocol = small(name, NANO)[1]
    assert holds(lambda: support_p_value(protocol, protocol.p, protocol.q))
    for other in (7 * NANO // 10, 13 * NANO // 10):
        wrong = small(name, other)[1]
        assert support_p_value(wrong, protocol.p, protocol.q) < 1e-6


def test_hashing_counts_as_the_plain_sum_does():
    protocol = protocol_class("hashing")(draw=HashingDraw(NANO, 40, 5, "seed"))
    generator = np.random.default_rng(3)
    function = generator.integers(1, protocol.draw.functions, 3000)
    value = generator.integers(0, 5, 3000)
    codes, valid = protocol.read(function, value)
    plain = [
        sum(protocol.draw.value(int(a), code) == y for a, y in zip(function, value, strict=True))
        for code in protocol.draw.codes
    ]
    assert valid.all()
    assert protocol.support(protocol.tabulate(codes)).tolist() == plain
