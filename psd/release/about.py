"""What a publisher states about a release: title, licence, reference date. Public texts.

They are never derived from records. Lines are printable and limited, so that a file cannot control
a terminal or fill a catalogue.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from psd._util.instances import check_names, type_text
from psd.errors import ParameterError

# Longest text of each field.
_LENGTHS: Final = {
    "title": 200,
    "publisher": 200,
    "description": 4000,
    "licence": 300,
    "contact": 300,
    "reference_date": 21,
    "language": 35,
    "justification": 4000,
}

_SHOWN = 60
_DATE = re.compile(r"\d{4}(-\d{2}){0,2}", re.ASCII)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Statements of the publisher about a release; each may be left out, but not all.

    Guarantees
    ----------
    - Every text is one printable line of limited length, without control characters.

    Parameters
    ----------
    title, publisher, description : str, optional
        Name of the release, who publishes it, and what it shows.
    licence : str, optional
        SPDX identifier such as ``CC-BY-4.0``, an address, or a text.
    contact : str, optional
        Address of mail or of a page, or a text.
    reference_date : str, optional
        What time the counts are about: ``2024``, ``2024-06``, ``2024-06-15``, or an interval
        ``2024-01/2024-06``, both ends included.
    language : str, optional
        Language of these texts by BCP 47, such as ``en`` or ``ko``.
    justification : str, optional
        Why epsilon and the unit of privacy were chosen, for a registry of deployments.

    Raises
    ------
    ParameterError
        If a text is empty, too long, or not one line of printable characters; if the date or the
        language has another form; or if there is no text at all.

    Examples
    --------
    >>> About(title="Visits", reference_date="2024-01/2024-06").period
    (datetime.date(2024, 1, 1), datetime.date(2024, 6, 30))
    """

    title: str | None = None
    publisher: str | None = None
    description: str | None = None
    licence: str | None = None
    contact: str | None = None
    reference_date: str | None = None
    language: str | None = None
    justification: str | None = None

    def __post_init__(self) -> None:
        for name, text in self.texts.items():
            limit = _LENGTHS[name]
            if not isinstance(text, str):
                raise ParameterError(
                    f"about {name} must be a text, got {type_text(text)}", name="about"
                )
            if not text.strip() or len(text) > limit:
                raise ParameterError(
                    f"about {name} must have 1 to {limit:,} characters, got {len(text):,}"
                    + ("; it is blank" if text and not text.strip() else ""),
                    name="about",
                )
            if not text.isprintable():
                shown = next(letter for letter in text if not letter.isprintable())
                raise ParameterError(
                    f"about {name} must be one line of printable characters, got {shown!r} in it",
                    name="about",
                )
        if not self.texts:
            raise ParameterError("about must have at least one key, got none", name="about")
        _ = self.period
        if self.language is not None and not _LANGUAGE.fullmatch(self.language):
            raise ParameterError(
                "about language must be a tag of BCP 47, such as en or ko, got "
                f"{self.language[:_SHOWN]!r}",
                name="about",
            )

    @property
    def texts(self) -> dict[str, str]:
        """The texts that are stated, by key."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: text for name, text in values.items() if text is not None}

    @property
    def period(self) -> tuple[datetime.date, datetime.date] | None:
        """First and last day of the reference date; None without one."""
        if self.reference_date is None:
            return None
        start, sign, end = self.reference_date.partition("/")
        days = _days_of(start), _days_of(end if sign else start)
        if days[0] is None or days[1] is None or days[0][0] > days[1][1]:
            raise ParameterError(
                "about reference_date must be a year, a month, a day, or START/END of these, such "
                f"as 2024-06 or 2024-01/2024-06, got {self.reference_date[:_SHOWN]!r}",
                name="about",
            )
        return days[0][0], days[1][1]


ABOUT_KEYS: Final = tuple(field.name for field in fields(About))
"""Keys of the statements."""


def about_from_mapping(value: object) -> About | None:
    """Statements of a mapping, such as one of TOML with dates and years; None without texts."""
    if value is None or isinstance(value, About):
        return value
    if not isinstance(value, Mapping):
        raise ParameterError(
            f"about must be a mapping of texts, such as {{'title': 'Visits'}}, got "
            f"{type_text(value)}",
            name="about",
        )
    if "license" in value and "licence" not in value:
        value = {"licence" if name == "license" else name: each for name, each in value.items()}
    check_names("key of about", value, ABOUT_KEYS)
    texts: dict[str, Any] = {name: each for name, each in value.items() if each is not None}
    date = texts.get("reference_date")
    if type(date) in (datetime.date, int):  # a date of TOML, or a year
        texts["reference_date"] = str(date)
    return About(**texts) if texts else None


def is_about(value: object) -> bool:
    """Whether a JSON value is null, or statements that are valid."""
    if value is None:
        return True
    if not isinstance(value, dict) or not value.keys() <= set(ABOUT_KEYS):
        return False
    try:
        return About(**value).texts == value
    except ParameterError:
        return False


def _days_of(text: str) -> tuple[datetime.date, datetime.date] | None:
    """First and last day of a year, a month or a day; None for other texts."""
    if not _DATE.fullmatch(text):
        return None
    try:
        parts = [int(part) for part in text.split("-")]
        first = datetime.date(*[*parts, 1, 1][:3])
        if len(parts) == 3:
            return first, first
        is_last = len(parts) == 1 or first.month == 12  # the next month is of the next year
        year, month = (first.year + 1, 1) if is_last else (first.year, first.month + 1)
        if year > datetime.MAXYEAR:
            return first, datetime.date.max
        return first, datetime.date(year, month, 1) - datetime.timedelta(days=1)
    except ValueError:
        return None
