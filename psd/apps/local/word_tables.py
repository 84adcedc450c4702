"""From the reports of words to a table: which words there are, and how many devices have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scipy.stats import norm

from psd.apps.local.answer_tables import QUANTILE
from psd.apps.local.campaigns import load_campaign
from psd.apps.local.counting import count_support
from psd.apps.local.protocols.rappor import Rappor
from psd.apps.local.word_decoding import decode_words
from psd.errors import InputDataError, ParameterError

__all__ = ["MAX_WORDS", "WordRow", "tabulate_words"]

MAX_WORDS: Final = 4_096
"""Words of a list; the time grows with the cube of their number."""

NO_WORD: Final = "no word"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordRow:
    """One word.

    Parameters
    ----------
    word : str
        The word; the last row is that of devices without a word.
    estimate : float
        Devices that have it, by non-negative least squares: the smaller error.
    unbiased : float
        The same by least squares, which may be negative: for sums.
    error : float
        Standard error of the latter.
    low, high : float
        Interval of 95 %, of the latter.
    present : bool
        Whether the word is there: at the level of the table, no word that no device has is called
        so, over all words together (Bonferroni).
    """

    word: str
    estimate: float
    unbiased: float
    error: float
    low: float
    high: float
    present: bool


def tabulate_words(
    campaign: str, folder: str, words: Sequence[str], *, level: float = 0.05
) -> list[WordRow]:
    """Estimates of the words of a list, from the parts of a campaign that asks for words.

    Guarantees
    ----------
    - It reads reports alone, so it costs no epsilon.
    - With probability ``1 - level``, about, no word is called present that no device has, if all
      words of the devices are in the list. Words that are not in it count for those with which
      they share bits; errors grow with what the list leaves unexplained.

    Parameters
    ----------
    campaign : str
        File of the campaign.
    folder : str
        Folder of its parts, which `psd.apps.local.collection` wrote.
    words : sequence of str
        Words that devices may have. Public, never derived from their answers.
    level : float
        Probability of calling a word present that is not, over all words.

    Raises
    ------
    ParameterError
        If the campaign does not ask for words, or the words or the level are not valid.
    InputDataError
        If parts are missing, damaged or of another campaign, or there is no report.
    """
    loaded = load_campaign(campaign)
    if loaded.question != "words":
        raise ParameterError(f"campaign must ask for words, got {loaded.question}")
    if not 0 < level < 1:
        raise ParameterError(f"level must be above 0 and below 1, got {level}", name="level")
    listed = [*_check_words(words), ""]
    [counts] = count_support(loaded, Path(folder)).groups
    if not counts.reports:
        raise InputDataError("campaign must have reports; collect more lines")
    assert isinstance(counts.protocol, Rappor)
    decoded = decode_words(counts.protocol, counts.support, listed)
    least = float(norm.isf(level / len(listed)))
    columns = (decoded.shares, decoded.unbiased, decoded.errors)
    values = zip(*((column * counts.reports).tolist() for column in columns), strict=True)
    return [_row(word, *row, least=least) for word, row in zip(listed, values, strict=True)]


def _row(word: str, estimate: float, unbiased: float, error: float, *, least: float) -> WordRow:
    """Row of a word."""
    margin = QUANTILE * error
    return WordRow(
        word=word or NO_WORD,
        estimate=estimate,
        unbiased=unbiased,
        error=error,
        low=unbiased - margin,
        high=unbiased + margin,
        present=unbiased > least * error,
    )


def _check_words(words: Sequence[str]) -> Sequence[str]:
    """Words of a list, each once and none empty."""
    if not 1 <= len(words) <= MAX_WORDS:
        raise ParameterError(f"words must be 1 to {MAX_WORDS:,}, got {len(words):,}", name="words")
    if not all(words) or len(set(words)) < len(words):
        raise ParameterError(
            "words must be stated once each, got an empty one or one that comes twice",
            name="words",
        )
    return words
