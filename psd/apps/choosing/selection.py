"""A private choice among candidates with integer scores of one's own."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from numpy.typing import ArrayLike

from psd._util.declared_parameters import integer_between
from psd.errors import ParameterError
from psd.mechanisms.base import MAX_SENSITIVITY
from psd.mechanisms.permute_and_flip import PermuteAndFlip
from psd.privacy.loss import parse_epsilon


def select(
    scores: ArrayLike,
    *,
    epsilon: str | float | Decimal,
    sensitivity: int,
    is_monotone: bool = False,
) -> int:
    """Choose one of a public list of candidates, by permute-and-flip.

    Guarantees
    ----------
    - The choice is epsilon-differentially private under adding or removing one unit, if one unit
      moves no score by more than the sensitivity and, if `is_monotone`, never lowers one.
    - The law is exact: only integers decide, with randomness of the operating system. Every
      candidate has a positive probability, and ties are broken by chance.
    - Nothing is charged: the epsilons of all choices from one data set add up, and the caller
      keeps the sum.

    Parameters
    ----------
    scores : array_like of int, shape (m,)
        Score of each candidate, 64-bit integers; the larger, the better. **Private.** Their number
        is public.
    epsilon : str, int, float or Decimal
        Epsilon of the choice, above 0, at most 1,000.
    sensitivity : int
        Largest change of any score by one unit of privacy, 1 to 2**32, in units of the scores.
    is_monotone : bool
        Whether one unit more never lowers any score. The choice is then twice as sharp. By default
        it is not supposed.

    Returns
    -------
    int
        Number of the chosen candidate, 0 to m - 1.

    Raises
    ------
    ParameterError
        If there is no candidate, scores are not integers, or an argument is out of range.

    Notes
    -----
    The expected score is at least that of the best candidate minus ln(m) / rate, and the score is
    below it by (ln(m) + t) / rate or more with probability exp(-t) at most. The rate is
    epsilon / sensitivity for monotone scores, and half of that for others.

    References
    ----------
    .. [1] R. McKenna, D. Sheldon, "Permute-and-Flip: A new mechanism for differentially private
       selection", NeurIPS 2020, arXiv:2010.12603.
    .. [2] F. McSherry, K. Talwar, "Mechanism Design via Differential Privacy", FOCS 2007.

    Examples
    --------
    Visits within reach of three sites, where one person is one visit:

    >>> select([120, 80, 95], epsilon=2, sensitivity=1, is_monotone=True)
    0
    """
    # A refusal shows none of the scores.
    try:
        numbers = np.asarray(scores)
    except ValueError:  # lists of several lengths
        numbers = np.empty((0, 0))
    if numbers.ndim != 1 or not len(numbers):
        raise ParameterError(
            "scores must be one list of at least one number, got none or several lists",
            name="scores",
        )
    if numbers.dtype.kind not in "iu" or not np.can_cast(numbers.dtype, np.int64):
        raise ParameterError(
            "scores must be integers of at most 64 bits; round other numbers to whole steps, and "
            "state the sensitivity in these steps",
            name="scores",
        )
    numbers = numbers.astype(np.int64)
    nano = parse_epsilon(epsilon)
    unit = integer_between(1, MAX_SENSITIVITY)("sensitivity", sensitivity)
    if not isinstance(is_monotone, bool):
        raise ParameterError("is_monotone must be True or False", name="is_monotone")
    choice = PermuteAndFlip(scores=numbers, epsilon=nano, sensitivity=unit, is_monotone=is_monotone)
    return int(choice.sample()[0])
