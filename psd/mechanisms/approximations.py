"""Draws by floats, for samplers with a seed. No release draws by them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from psd._util.arrays import Floats, Integers
from psd.mechanisms.base import Uniform


def laplace_noise(scale: Floats, uniform: Uniform) -> Integers:
    """Difference of two geometric numbers, for each scale."""
    first, second = uniform(2 * len(scale)).reshape(2, -1)
    parts = [np.floor(-np.log(each) * scale).astype(np.int64) for each in (first, second)]
    return parts[0] - parts[1]


def index_by_logs(logs: ArrayLike, uniform: Uniform) -> int:
    """Index with a probability in proportion to the exponential of its number."""
    numbers = np.asarray(logs, np.float64)
    return int(np.argmax(numbers - np.log(-np.log(uniform(len(numbers))))))


def log_sum(logs: ArrayLike) -> float:
    """Logarithm of the sum of exponentials."""
    return float(np.logaddexp.reduce(np.asarray(logs)))
