"""The page of the formulas of local protocols, with numbers of the registered protocols."""

from __future__ import annotations

from psd.apps.local.answer_design import design_words
from psd.apps.local.device import NANO, STEPS, UNIT
from psd.apps.local.protocols import LocalProtocol, best_protocol, list_protocols, protocol_class
from psd.apps.local.protocols.numbers import NumberProtocol, SingleValueProtocol, UnbiasedProtocol
from psd.apps.local.protocols.rappor import Rappor

HEAD = """\
# Local protocols: formulas

`psd local protocols` lists them. e is exp(epsilon). A device works out all probabilities as integers:
E, a lower bound of e in 128 bits, gives thresholds out of 2^62 and integer weights, so the loss is at most
epsilon, and short of it by less than 2e-9 (`tests/contract`). The numbers of this page are computed from
the registered protocols by `python docs/generate.py`.

## Stores

The store of a device is one file of JSON with a digest (`psd-device` 1): the cap, and for each campaign that
the device knows, by its digest, the group, the shares, the epsilon that was spent and the report. `rappor`
keeps the settled bits and a secret beside it. A store of an older format is refused by name: what was spent stays spent, and a new store is no fresh budget.
`psd local randomize --store` keeps the groups of rows the same way (`psd-rows` 1).

- A campaign whose digest is in the store gets its report again.
- A campaign that names an answered one in `earlier` gets nothing, and nothing is drawn or spent.
- Any other campaign is answered at its own epsilon, if the cap leaves it. The group is that of an earlier round with
  equal shares, and else is drawn.

A path is resolved before the store is locked and saved. A file with a second hard link is refused. Under
the lock, what stands at the name with `.new` is removed, and the new content is created there with mode
0600, never through a link.

## Places and options

A report supports the true answer with probability p and another one with probability q. Of C supports
among n reports, the estimate of a share is (C / n - q) / (p - q), and n times its variance at a share f is
q (1 - q) / (p - q)^2 + f (1 - p - q) / (p - q).

| protocol | p | q | report |
|---|---|---|---|
| `k-ary`, k answers | e / (e + k - 1) | 1 / (e + k - 1) | an answer |
| `unary`, symmetric | e' / (e' + 1), e' = exp(epsilon / 2) | 1 - p | a bit for each answer |
| `unary`, optimised | 1 / 2 | 1 / (e + 1) | a bit for each answer |
| `subset`, w of d answers | w e / (w e + d - w) | (p (w - 1) + (1 - p) w) / (d - 1) | a set |
| `hashing` into g, D = g^m functions | e / (e + g - 1) | p r + (1 - p) (1 - r) / (g - 1), r = (D / g - 1) / (D - 1) | a function and its value |

`k-ary` with two answers is Warner's response; `hashing` with g = 2 is the 1-bit Hadamard response. The
default is `subset` up to 256 answers where it beats `hashing`, else `hashing`. n times the variance of a
rare answer, by protocol with its best settings:

| answers | epsilon | default | k-ary | unary | subset | hashing |
|---|---|---|---|---|---|---|
"""

RAPPOR = """\

## Answers that are asked for again and again

`rappor` settles the bits of an answer once, and randomises the settled bits again in each report. With
flips of 128, f = flips / 128: a settled bit is a coin with probability f, and else the true bit. A report
has a 1 with probability p' for a settled 0, and with q' for a settled 1. So it has a 1 with probability
p = (1 - f / 2) q' + (f / 2) p' for a bit that the answer has, and with q = (1 - f / 2) p' + (f / 2) q' for
another one; in the paper these are q* and p*. An answer has h bits: with `encoding=one-hot` one of its own,
h = 1; a word those of its h hashes (`encoding=bloom`), in a cohort that the device draws. Two answers differ in
2 h bits at most, so

- one report costs h ln(p (1 - q) / (q (1 - p))), h bits of each kind;
- all reports of one answer cost 2 h ln((1 - f / 2) / (f / 2)) at most, since they follow from settled bits;
- n reports cost the smaller one of n epsilon and the latter.

Both are reached where two answers have no bit in common (`tests/apps/local/test_rappor.py` enumerates both
steps). One of two is stated, and the other follows:

- **epsilon.** Then p' = 1 - q', so p = 1 - q, and one report costs 2 h ln(p / (1 - p)): q' follows from
  epsilon. By default f is the smallest for which all reports cost at most 4 epsilon.
- **the settings `p`, `q` and `flips`**, for p' and q' that need not add up to 1, 0 < p' < q' < 1. Epsilon is the
  least number of 1e-9 that covers one report. The campaign has both as integers out of 1e9, in which decimals
  and the multiples of 1/256 that some clients have are exact. A device rounds p' up and q' down to thresholds
  out of 2^62, works out the epsilon of these integers, and refuses a campaign that states less.

Words are estimated by weighted least squares over the bits of all cohorts, with and without negative numbers.
n times the variance of a bit that a share s of the devices has is (s p (1 - p) + (1 - s) q (1 - q)) /
(p - q)^2, whose reciprocal is its weight (`psd/apps/local/answer_tables.py` has the covariance of the estimates). A
word is called present where its estimate is above its standard error times the quantile of the normal
distribution at the level, divided by the number of words (Bonferroni).

n times the variance of a rare option, or of a rare word whose bits no other word has:

| epsilon of a report | hashes | flips | p' | q' | epsilon of all reports | p | q | n times the variance |
|---|---|---|---|---|---|---|---|---|
"""

NUMBERS = """\

## Numbers

A range has K = 1,024 steps; a report is an output, drawn by integer weights. With A / B at most e:

| protocol | outputs and weights | window, setting `window` = w |
|---|---|---|
| `square-wave` | K + w outputs; A for y in [t, t + w], else B | 2 b K, b = (epsilon e - e + 1) / (2 e (e - 1 - epsilon)) |
| `piecewise` | the same | (K - 1) exp(-epsilon / 2) |
| `duchi` | two; the upper one has A t + B (K - 1 - t), of (A + B) (K - 1) | none |
| `hybrid` | those of `piecewise` with probability 1 - exp(-epsilon / 2), else those of `duchi` | of `piecewise`; 0 up to epsilon .61, which is `duchi` alone |
| `bounded-staircase` | K; A for y in [t - w, t + w], else B | least mean squared error of a uniform number |
| `staircase` | K; distances below w have A, each next K - 1 distances B / A times as much; the ends take what is beyond | the same |
| `bounded-laplace` | K; exp(-epsilon d / (K - 1)) at distance d | none |

- **Privacy.** The sum of weights does not depend on t in `square-wave`, `piecewise`, `duchi`, `hybrid` and
  `staircase`, so the ratio is that of weights, at most A / B. In `bounded-staircase` it does: the worst pair
  has windows of w1 = w + 1 and w2 = min(2 w + 1, K - 1) outputs, and A / B is the largest x with
  x (x w2 + K - w2) <= e (x w1 + K - w1). In `bounded-laplace` it is largest in the middle, and the worst pair
  is the two ends, whose sums are equal.
- **Means.** The mean of the outputs of `piecewise` and of `duchi` grows evenly with t, so outputs are decoded
  as (y - m(0)) (K - 1) / (m(K - 1) - m(0)), with m(t) the mean at t. This is exactly unbiased. The error of a
  mean is the standard deviation of the decoded outputs, divided by the root of their number.
- **Distributions.** Expectation maximisation over 256 parts, each step followed by smoothing with
  (1/4, 1/2, 1/4), until the log-likelihood stays within .001. The error of a part is the root of
  a variance, that of 60 samples of as many reports drawn from the estimate, and of a squared bias. The bias is
  that of the smoothing: how far estimates without noise are from a sharper distribution whose estimate would be
  the one at hand, largest of a part and its neighbours.

With the best windows, on a range of length 1:

| protocol | epsilon | window | outputs | largest root of the mean squared error of one report |
|---|---|---|---|---|
"""

EPSILONS = (NANO // 2, NANO, 2 * NANO, 4 * NANO)
# Hashes, flips, p' and q': those of the paper, and of its collection of home pages.
STATED = ((2, 64, "0.5", "0.75"), (1, 64, "0.5", "0.75"), (2, 32, "0.35", "0.65"))


def page() -> str:
    """Give the text of the page."""
    kinds = {name: protocol_class(name) for name in list_protocols()}
    numbers = [kind for kind in kinds.values() if issubclass(kind, NumberProtocol)]
    answers = [
        _answer_row(count, nano, [name for name in kinds if issubclass(kinds[name], LocalProtocol)])
        for count in (2, 17, 257, 1025)
        for nano in EPSILONS
    ]
    rows = [_number_row(kind, nano) for kind in numbers for nano in EPSILONS]
    best = [Rappor.of_words(nano, hashes=hashes) for hashes in (1, 2) for nano in EPSILONS]
    settled = [_settled_row(protocol) for protocol in [*best, *map(_stated, STATED)]]
    return HEAD + "".join(answers) + RAPPOR + "".join(settled) + NUMBERS + "".join(rows)


def _answer_row(count: int, nano: int, names: list[str]) -> str:
    """Variances of a rare answer."""
    best = best_protocol(nano, count)
    settings = ", ".join(f"{key} {value}" for key, value in best.settings.items())
    order = ("k-ary", "unary", "subset", "hashing")
    assert sorted(names) == sorted((*order, "rappor"))
    cells = " | ".join(_variance(best_protocol(nano, count, name)) for name in order)
    return f"| {count:,} | {nano / NANO:g} | {best.name} ({settings}) | {cells} |\n"


def _stated(law: tuple[int, int, str, str]) -> Rappor:
    """Protocol of words with p and q of its own."""
    settings = dict(zip(("hashes", "flips", "p", "q"), law, strict=True))
    return Rappor(draw=design_words(None, 1, settings=settings).groups[0].draw)


def _settled_row(protocol: Rappor) -> str:
    """Both epsilons and the variance of settled bits."""
    draw = protocol.draw
    low, high = (rate / UNIT for rate in draw.thresholds)
    facts = f"{draw.nano / NANO:.6g} | {draw.hashes} | {draw.flips} | {low:.4g} | {high:.4g}"
    rates = f"{protocol.lifetime / NANO:.4f} | {float(protocol.p):.4f} | {float(protocol.q):.4f}"
    return f"| {facts} | {rates} | {_variance(protocol)} |\n"


def _variance(protocol: LocalProtocol) -> str:
    """Variance of a rare answer, from one report."""
    return f"{float(protocol.variance(0)):.4g}"


def _number_row(kind: type[NumberProtocol], nano: int) -> str:
    """Errors of a protocol of numbers."""
    protocol, error = kind.best(nano), "-"
    if isinstance(protocol, SingleValueProtocol):
        error = f"{protocol.squared_errors().max() ** 0.5 / (STEPS - 1):.4f}"
    elif isinstance(protocol, UnbiasedProtocol):
        error = f"{protocol.variances().max() ** 0.5 / (STEPS - 1):.4f}"
    window = protocol.settings.get("window", "-")
    return f"| {kind.name} | {nano / NANO:g} | {window} | {protocol.outputs:,} | {error} |\n"
