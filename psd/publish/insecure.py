"""Noise that a seed repeats, for demonstrations and for reproducing faults; never for a release.

Whoever guesses the seed takes the noise off and has the exact counts. So what is built with it
is marked, no writer of releases takes it, and its own file is text that no reader of releases
reads. It has nothing in common with the mechanisms of `psd.mechanisms`.
"""

from __future__ import annotations

import json
import os
from hashlib import shake_256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd._util.atomic_write import write_file
from psd._util.fields import integer_between
from psd._util.untrusted_parquet import INSECURE
from psd.errors import ParameterError
from psd.privacy.epsilon import NANO, epsilon_text

if TYPE_CHECKING:
    from psd.mechanisms import Noise
    from psd.mechanisms.exponential_mechanism import Candidates
    from psd.release.record import Release

__all__ = ["ENDING", "SeededNoise", "check_name", "refuse_paid", "write"]

ENDING = INSECURE
"""How the name of such a file ends."""

_WARNING = (
    "INSECURE: noise from a seed protects nobody. This is no release; psd reads it nowhere. "
    "Do not publish it if the rows are real."
)


class SeededNoise:
    """The laws of a release, near enough, from a stream that a seed repeats.

    Guarantees
    ----------
    - The same seed, data and parameters give the same answers. Which rows of a user with more
      than k of them are kept is drawn as always.
    - A release built with it cannot be saved or exported, and no ledger pays for it.

    Parameters
    ----------
    seed : int
        0 to 2^63 - 1.

    Examples
    --------
    >>> import pandas as pd, psd
    >>> points = pd.DataFrame({"lon": [126.98, 127.03], "lat": [37.57, 37.50]})
    >>> domain = psd.Domain(bounds=(126.40, 37.00, 127.60, 38.00))
    >>> how = {"domain": domain, "epsilon": 1, "method": psd.Grid(size=2)}
    >>> first, again = (psd.build(points, **how, noise=SeededNoise(7)) for _ in range(2))
    >>> bool((first.tree.count == again.tree.count).all()), first.source
    (True, 'insecure')
    """

    def __init__(self, seed: int) -> None:
        self.seed = integer_between(0, 2**63 - 1)("insecure_seed", seed)
        self._draws = 0

    def count(self, true: Integers, epsilon: Integers, sensitivity: int) -> Integers:
        """True counts plus noise of scale sensitivity / epsilon."""
        return true + self._laplace(sensitivity * NANO / epsilon)

    def exceeds(self, biased: Integers, numerator: int, denominator: Integers) -> NDArray[np.bool_]:
        """Whether each number plus noise of its scale is above 0."""
        above: NDArray[np.bool_] = biased + self._laplace(numerator / denominator) > 0
        return above

    def select(self, candidates: Candidates, epsilon: Integers, sensitivity: Integers) -> Integers:
        """One candidate per group: the largest of the log-weights plus Gumbel noise."""
        group, number = candidates.group, len(epsilon)
        rate = (epsilon / (2.0 * NANO * sensitivity))[group]
        weight = rate * candidates.score + np.log(np.maximum(candidates.length, 1e-300))
        keys = weight - np.log(-np.log(self._uniform(len(group))))
        order = np.lexsort((keys, group))
        last = order[np.searchsorted(group[order], np.arange(number), side="right") - 1]
        length = candidates.length[last]
        within = (self._uniform(number) * length).astype(np.int64)
        chosen: Integers = candidates.first[last] + np.minimum(within, length - 1)
        return chosen

    def _laplace(self, scale: NDArray[np.float64]) -> Integers:
        """Difference of two geometric numbers."""
        first, second = self._uniform(2 * len(scale)).reshape(2, -1)
        parts = [np.floor(-np.log(uniform) * scale).astype(np.int64) for uniform in (first, second)]
        return parts[0] - parts[1]

    def _uniform(self, size: int) -> NDArray[np.float64]:
        """Numbers in (0, 1), the next of the stream."""
        self._draws += 1
        name = f"psd insecure {self.seed} {self._draws}".encode()
        words = np.frombuffer(shake_256(name).digest(8 * size), dtype="<u8")
        return ((words >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def refuse_paid(noise: Noise | None, account: object) -> None:
    """Refuse an account for noise that a seed repeats: nothing is published, so nothing is paid.

    Raises
    ------
    ParameterError
    """
    if account is not None and isinstance(noise, SeededNoise):
        raise ParameterError(
            "account is given with noise from a seed, which makes no release; no ledger pays for it"
        )


def check_name(path: str | os.PathLike[str]) -> None:
    """Refuse a file whose name does not say what it is.

    Raises
    ------
    ParameterError
    """
    if not Path(path).name.endswith(ENDING):
        raise ParameterError(
            f"output {path} does not end in {ENDING}; what a seed made (--insecure-seed) protects "
            "nobody, and its name is to say so"
        )


def write(
    release: Release, path: str | os.PathLike[str], *, seed: int, overwrite: bool = False
) -> None:
    """Write what a seed made as JSON that says so; the file appears whole or not at all.

    Raises
    ------
    ParameterError
        If the name does not end in ``.insecure``, or if the release was not made by a seed.
    WriteError
        If the file cannot be written.
    """
    check_name(path)
    if release.source != "insecure":
        raise ParameterError("only a release made with a seed is written as an insecure one")
    text = json.dumps(_content(release, seed), indent=1, allow_nan=False) + "\n"
    write_file(path, text.encode("ascii"), overwrite=overwrite)


def _content(release: Release, seed: int) -> dict[str, Any]:
    """Everything that the file says."""
    tree, domain = release.tree, release.domain
    nodes = np.column_stack([tree.boxes, tree.parent, tree.level, tree.count, tree.epsilon])
    return {
        "warning": _WARNING,
        "insecure_seed": seed,
        "method": release.method,
        "parameters": dict(release.parameters),
        "epsilon": epsilon_text(release.epsilon),
        "unit": release.unit_of_privacy.promise,
        "bounds": list(domain.bounds),
        "crs": domain.crs,
        "lattice": list(domain.lattice),
        "columns": ["x0", "y0", "x1", "y1", "parent", "level", "count", "nano_epsilon"],
        "nodes": nodes.tolist(),
    }
