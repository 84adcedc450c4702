"""Draw figure 2 of document 000: `python docs/assets/local_numbers_picture.py FILE`.

Mean squared errors of heights by epsilon, from exact integrals; matplotlib is needed, the extra
`plot`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))


def main() -> None:
    """Draw the picture."""
    from support import seed_numbers as seeds

    if len(sys.argv) != 2:
        sys.exit("usage: python docs/assets/local_numbers_picture.py FILE")
    mpl.use("agg")
    from matplotlib import pyplot as plt

    epsilons = np.geomspace(0.2, 10, 40)
    figure, axes = plt.subplots(figsize=(7, 4.5))
    laplace = [1e3 * seeds.laplace_heights(epsilon) for epsilon in epsilons]
    axes.plot(epsilons, laplace, color="black", label="bounded Laplace")
    for gamma, color in zip(
        seeds.GAMMAS, ("#9ecae1", "#6baed6", "#3182bd", "#08519c"), strict=True
    ):
        errors = [1e3 * seeds.staircase_heights(gamma, epsilon) for epsilon in epsilons]
        axes.plot(epsilons, errors, color=color, label=f"staircase, gamma {gamma:.2f}")
    best = [1e3 * seeds.best_gamma(epsilon)[1] for epsilon in epsilons]
    axes.plot(epsilons, best, color="#b03a2e", linestyle="--", label="staircase, best gamma")
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="mean squared error, 1e-3 m²")
    axes.legend(frameon=False)
    figure.savefig(sys.argv[1], dpi=80, bbox_inches="tight")


if __name__ == "__main__":
    main()
