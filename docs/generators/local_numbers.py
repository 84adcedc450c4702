"""The page of the numbers of the source documents, computed by exact integrals."""

from __future__ import annotations

from math import log

from psd.apps.local.answer_design import design_words
from psd.privacy.loss import epsilon_text
from support import seed_numbers as seeds

HEAD = """\
# Local numbers: the source documents computed again

Three documents describe local privacy: 000 is on the bounded staircase mechanism, 001 introduces
differential and local privacy, and 002 is on RAPPOR. This page gives their numbers, what is wrong in
them, and why. It is computed by exact integrals and enumerations (`tests/support/seed_numbers.py`) when
`python docs/generate.py` runs; `tests/apps/local/test_seed_numbers.py` checks them by identities.
[Local protocols](local-protocols.md) has the formulas of `psd.apps.local`.

## Document 000: the bounded staircase

Number t and output y are in [l, u], D = u - l. The density is 1/Z for |y - t| < gamma D and
exp(-ehat)/Z elsewhere in [l, u]. Since Z depends on t, ehat has to be smaller than epsilon.

- **Figure 1**, (l, u, gamma, epsilon) = (10, 20, 0.3, 1): ehat = {ehat:.10f}. At t = 18 the density is
  {inside:.9f} at y = 15.5, 18 and 19.9, and {outside:.9f} at y = 11.
- **Figure 2**, mean squared error of heights, in 1e-3 m^2: normal with mean 1.758 and deviation 0.0538,
  clipped to 1.67 to 1.85. Bounded Laplace has the scale D / epsilon; its range is its sensitivity, so it
  needs no correction.

![Mean squared error of heights by epsilon: the best gamma of each epsilon is below bounded Laplace and below four fixed gammas](../assets/local-numbers.png)

| epsilon | bounded Laplace | gamma .16 | .18 | .20 | .22 | best gamma | its error |
|---|---|---|---|---|---|---|---|
"""

FIGURE_2 = """\

The picture is drawn by `python docs/assets/local_numbers_picture.py docs/assets/local-numbers.png`.

- **Gammas from .16 to .22 win.** On these heights a gamma beats bounded Laplace at all epsilons from .2
  to 10 if it is from {low:.4f} to {high:.4f}. The document says .16 to .22, which is this, rounded inwards.
- **No gamma is best for all epsilons.** The best one falls from .32 at epsilon .2 to .023 at epsilon 10.
  `psd` chooses it by epsilon, for a uniform number: the data must not choose it.
- **It is a statement on the mean over these heights.** The largest error over t, in 1e-3 m^2, is
  {laplace_02:.3f} for bounded Laplace and {stairs_02:.3f} for gamma .16 at epsilon .2; at epsilon 1,
  {laplace_1:.3f} and {stairs_1:.3f}.
- **It is no measure of means.** Outputs of both mechanisms are drawn to the middle, and no number of
  reports mends this bias. `psd` gives means by `duchi`, `piecewise` and `hybrid` alone, which are exactly
  unbiased, and keeps the staircases for single values.

### What is wrong in it

- **Definition 5 prints epsilon for ehat.** With epsilon in the density, ehat changes nothing, and the
  mechanism is not private: with (gamma, epsilon) = (.3, 1), (.2, 2) and (.16, 10) the true epsilon is
  {uncorrected}.
- **Row 2 of theorem 6 (gamma from 1/2) has a gamma too many under the root.** It solves
  g E^2 - g e^eps E - (1 - g) e^eps = 0. Right is E^2 - g e^eps E - (1 - g) e^eps = 0, with E = e^ehat:
  ehat = ln((g e^eps + sqrt(g^2 e^(2 eps) + 4 (1 - g) e^eps)) / 2). It is continuous at gamma = 1/2, and
  tight. As printed, ehat is above epsilon, and the true epsilon is epsilon + ln(1 / gamma):

| gamma | ehat, corrected | ehat as printed | true epsilon as printed, for epsilon 1 |
|---|---|---|---|
"""

ROW_1 = """\

- **Row 1 (gamma below 1/2) is right and tight.** E solves
  2 g E^2 + (1 - 2 g - g e^eps) E - (1 - g) e^eps = 0.
- **Gamma 1 is uniform**: nothing is lost, and nothing said. `psd` refuses a window that holds all outputs.
- **On a lattice ehat is not the weight.** `psd` has 1,024 steps, and takes the largest integer weight
  whose enumerated loss is within epsilon ([local protocols](local-protocols.md)). The continuous ehat at
  gamma = (window + 1/2) / 1,024 is smaller: private, and not tight.

## Document 001: coins

- **The fair response.** True with probability x, else false: epsilon = ln(x / (1 - x)). With x = .75 it is
  ln 3 = {ln3:.6f}. This is `k-ary` with two answers; `--set truth=0.75` may stand for epsilon.
- **The coin that says yes on every head is not private.** The document says yes on heads and the truth on
  tails, and estimates 2 Y' - 1. Then no is never said by a device whose truth is yes, so a no gives the
  truth away: epsilon is infinite. `psd` refuses it by its name, `forced-yes`.
- **n yes/no questions for n options cost twice.** Two answers differ in two bits, so bits that each have
  epsilon ln(x / (1 - x)) cost 2 ln(x / (1 - x)) together: {twice:.6f} with x = .75, not {ln3:.6f}. The
  protocol `unary` has bits at half of epsilon (symmetric), or another split (optimised).

## Document 002: RAPPOR

A Bloom filter has h of k bits. The permanent response replaces each bit with probability f by a fair one;
each report says a 1 for a bit of 0 or 1 with probability p or q. All pairs of masks and all reports,
enumerated:

| k | h | f | p | q | epsilon of the permanent response | of one report | as printed |
|---|---|---|---|---|---|---|---|
"""

TAIL = """\

- **The factor 2 h is missing.** Two words differ in up to 2 h bits, so the permanent response costs
  2 h ln((1 - f/2) / (f/2)). The document prints it without 2 h. One report costs
  h ln(q* (1 - p*) / (p* (1 - q*))), with p* = f/2 (p + q) + (1 - f) p and q* = f/2 (p + q) + (1 - f) q; its
  logarithm holds both kinds of bits, so the factor is h. N reports cost the smaller of N times this and
  the epsilon of the permanent response. Both formulas are those of the table where k is at least 2 h.
- **Exponents are the wrong way round.** In P(b' | b), a permanent 1 for a bit of 1 has probability
  1 - f/2, and the sum begins at i = 1, not at 0.

### A campaign of these numbers

The protocol `rappor` takes p and q as decimals and f as flips of 128, in place of epsilon. The first row of the
table is

```sh
mkdir -p try/numbers
psd local design -o try/numbers/002.json --words --devices 10000 --set bits=6 --set hashes=2 \\
    --set flips=64 --set p=0.5 --set q=0.75
psd local describe try/numbers/002.json
```

`psd local describe` states both epsilons: {once} for a report and {forever} for all reports of a device,
rounded up to 1e-9. Where k is below 2 h, as in the last row, `psd` charges what two words cost that share no
bit. [Reports of other clients](../guide/local.md#reports-of-other-clients) are decoded by such a campaign.
"""


def page() -> str:
    """Give the text of the page."""
    low, high = seeds.winning_gammas()
    worst = [1e3 * e for epsilon in (0.2, 1) for e in seeds.worst_errors(epsilon, 0.16)]
    pairs = ((0.3, 1), (0.2, 2), (0.16, 10))
    law: dict[str, int | str] = {"bits": 6, "hashes": 2, "flips": 64, "p": "0.5", "q": "0.75"}
    campaign = design_words(None, 10_000, settings=law)
    uncorrected = [f"{seeds.staircase_loss(*pair):.4f}" for pair in pairs]
    return "".join(
        (
            HEAD.format(
                ehat=seeds.corrected_epsilon(0.3, 1),
                inside=seeds.staircase_density(0.8, 0.8, 0.3, 1) / 10,
                outside=seeds.staircase_density(0.1, 0.8, 0.3, 1) / 10,
            ),
            *(_errors(epsilon) for epsilon in seeds.EPSILONS),
            FIGURE_2.format(
                low=low,
                high=high,
                laplace_02=worst[0],
                stairs_02=worst[1],
                laplace_1=worst[2],
                stairs_1=worst[3],
                uncorrected=f"{uncorrected[0]}, {uncorrected[1]} and {uncorrected[2]}",
            ),
            *(_printed(gamma) for gamma in (0.5, 0.6, 0.7, 0.8, 0.9, 0.99)),
            ROW_1.format(ln3=log(3), twice=2 * log(3)),
            *(_rappor(*case) for case in CASES),
            TAIL.format(
                once=epsilon_text(campaign.nano_epsilon),
                forever=epsilon_text(campaign.groups[0].draw.lifetime),
            ),
        )
    )


CASES = (
    (6, 2, "1/2", "1/2", "3/4"),
    (6, 3, "1/2", "1/2", "3/4"),
    (4, 1, "1/2", "1/2", "3/4"),
    (6, 2, "1/4", "7/20", "13/20"),
    (8, 2, "3/4", "1/4", "3/4"),
    (3, 2, "1/2", "1/2", "3/4"),
)


def _errors(epsilon: float) -> str:
    """Row of figure 2."""
    gamma, least = seeds.best_gamma(epsilon)
    errors = [seeds.laplace_heights(epsilon)]
    errors += [seeds.staircase_heights(each, epsilon) for each in seeds.GAMMAS]
    cells = " | ".join(f"{error * 1e3:.4f}" for error in errors)
    return f"| {epsilon:g} | {cells} | {gamma:.4f} | {least * 1e3:.4f} |\n"


def _printed(gamma: float) -> str:
    """Row of the theorem as it is printed."""
    right, printed = seeds.corrected_epsilon(gamma, 1), seeds.printed_epsilon(gamma, 1)
    loss = seeds.staircase_loss(gamma, printed)
    return f"| {gamma:g} | {right:.4f} | {printed:.4f} | {loss:.4f} |\n"


def _rappor(bits: int, hashes: int, f: str, p: str, q: str) -> str:
    """Row of RAPPOR."""
    forever, once = seeds.rappor_epsilons(bits, hashes, f, p, q)
    a, b = map(int, f.split("/"))
    printed = log((1 - a / b / 2) / (a / b / 2))
    return f"| {bits} | {hashes} | {f} | {p} | {q} | {forever:.6f} | {once:.6f} | {printed:.6f} |\n"
