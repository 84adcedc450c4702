"""One counting question, answered once and charged to a ledger. Private side.

A release answers any number of questions for one epsilon; a single count answers one. It suits few
boxes that cells must not cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from psd._util.file_endings import file_of
from psd.errors import ParameterError
from psd.ingest.input_paths import is_path
from psd.publish.area import bounds_from_text, with_stated_crs
from psd.publish.charging import own_account
from psd.publish.counting import RecordInput, check_public_files, inputs_of, points_of
from psd.publish.drawing import draw_counts
from psd.publish.fields import FIELDS, answer_guesses
from psd.publish.observer import SILENT, Observer
from psd.publish.pipeline import run_build
from psd.publish.request_values import request_from_values
from psd.publish.request_warnings import warn_of_columns, warn_of_request

if TYPE_CHECKING:
    import os
    from decimal import Decimal

    from psd.curator.contribution_choice import ContributionChoice
    from psd.decompositions import Curator
    from psd.ledger.account import Account
    from psd.ledger.ledger import Ledger
    from psd.mechanisms.base import Sampler
    from psd.space.box_tree import Tree

__all__ = ["Answer", "SingleCount", "ask"]

_READING = tuple(
    field.name
    for field in FIELDS
    if field.group in ("Input", "Unit of privacy", "Time")
    and not field.private
    and field.name != "slices"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A noisy count with its error. Public.

    Parameters
    ----------
    estimate : float
        True count plus exact discrete Laplace noise; may be negative.
    error : float
        Standard deviation of the noise.
    lower, upper : float
        Interval that contains the true count with at least the requested probability.
    """

    estimate: float
    error: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleCount:
    """The method of a single count: the domain is the only cell."""

    name: ClassVar[str] = "single-count"
    paper: ClassVar[str] = "Dwork, McSherry, Nissim, Smith, TCC 2006"
    charge_text: ClassVar[str] = "ask"

    def build(self, curator: Curator) -> Tree:
        """Count the domain with all of epsilon."""
        curator.count(curator.root(), curator.loss)
        return curator.tree()


@answer_guesses({})
def ask(
    data: Any,
    area: Any,
    *,
    epsilon: str | float | Decimal,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    crs: str | None = None,
    coordinate_resolution: str | float | Decimal | None = None,
    confidence: float = 0.95,
    x: str | None = None,
    y: str | None = None,
    wkt: str | None = None,
    geometry: str | None = None,
    layer: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    skip_rows: int | None = None,
    input_crs: str | None = None,
    where: str | None = None,
    table: str | None = None,
    query: str | None = None,
    memory: str | int | None = None,
    user: str | None = None,
    max_contributions: int | Literal["auto"] | ContributionChoice | None = None,
    choice_share: str | float | Decimal | None = None,
    choice_over: int | None = None,
    choice_limit: int | None = None,
    per: Literal["day", "user-slice", "slice", "record"] | None = None,
    count: Literal["records", "users"] = "records",
    time: str | None = None,
    time_zone: str | None = None,
    max_per_slice: int | None = None,
    account: Account | None = None,
    sampler: Sampler | None = None,
    observer: Observer | Mapping[str, Callable[..., None]] = SILENT,
) -> Answer:
    """Count the records, or users, in one box or polygon, with noise of the whole epsilon.

    Guarantees
    ----------
    - The answer is epsilon-differentially private for adding or removing one unit of
      `psd.build`, and epsilon is charged to the ledger before it is drawn.
    - An area without a record is answered like any other; only what cannot be read is refused.

    Parameters
    ----------
    data : object or list of objects
        As in `psd.build`. Private.
    area : four numbers, str, path-like, GeoDataFrame, GeoSeries or geometry
        West, south, east, north; points on its edges are in it. It is the domain of the question, a
        lattice of one cell, so that no edge is moved. Or polygons, or a file of them: records in
        their union are counted. Never derived from the points. Public.
    epsilon : str, int, float or Decimal
        Cost of the answer. Public.
    ledger, dataset, analyst
        Dataset of a ledger that is charged, as in `psd.build`.
    crs : str, optional
        Of the answer, a box and the columns, as in `psd.build`. Public.
    coordinate_resolution : str, int, float or Decimal, optional
        Step to which the coordinates are rounded, as in `psd.Domain`. It does not change the answer
        of a box; state the one that the dataset registers, so that charges for disjoint boxes do
        not add up. Public.
    confidence : float
        Of the interval, in (0, 1). Public.
    x, y, wkt, geometry, layer, delimiter, decimal, encoding, skip_rows, input_crs, where, table,
    query
        How records are read, as in `psd.build`.
    memory : str or int, optional
        As in `psd.build`.
    user, max_contributions, choice_share, choice_over, choice_limit, per, count, max_per_slice
        Unit of privacy, as in `psd.build`. Records of a user are bounded among those in the area.
        Public.
    time, time_zone : str, optional
        Column of times, for days of users, and their zone. Public.
    account : Account, optional
        Open account, in place of ``ledger``, ``dataset`` and ``analyst``; its `finish` notes that
        the answer was given.
    sampler, observer
        As in `psd.build`.

    Returns
    -------
    Answer

    Raises
    ------
    ParameterError, DomainError
        If a public parameter is wrong.
    InputDataError
        If the input cannot be read. The sentence is fixed: the reason goes to the observer. It
        costs nothing, unless memory or disk gave out.
    BudgetError, LedgerError
        If the account cannot be charged.

    Examples
    --------
    >>> import tempfile, pandas as pd, psd
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = psd.Ledger.create(folder.name + "/city.ledger")
    >>> ledger.register("visits", budget=1)
    >>> points = pd.DataFrame({"lon": [126.98, 127.03], "lat": [37.57, 37.50]})
    >>> box = (126.9, 37.5, 127, 37.6)
    >>> answer = psd.ask(points, box, epsilon="0.5", ledger=ledger, dataset="visits")
    >>> round(answer.error, 2), ledger.remaining("visits")
    (2.8, Decimal('0.5'))
    >>> folder.cleanup()

    Notes
    -----
    The question is `psd.curator.curator.Curator.count` of one cell, which has the proof. The
    error and the interval follow from the noise of the count, `psd.privacy.count_noise`.
    """
    stated = locals()
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must be between 0 and 1, got {confidence}")
    data = points_of(data)
    values = with_stated_crs(
        {
            **{name: stated[name] for name in (*_READING, "crs", "coordinate_resolution")},
            **_area_of(area),
            "lattice": (1, 1) if coordinate_resolution is None else None,
            "min_cell": None if coordinate_resolution is None else "0",
            "epsilon": epsilon,
            "method": SingleCount(),
        },
        data,
    )
    inputs = inputs_of(data, table, query)
    check_public_files(values, inputs)
    own = own_account(ledger, dataset, analyst, account, values)
    if own is None and account is None:
        raise ParameterError(
            "ledger and dataset must be given, since each answer costs its epsilon; "
            'psd.Ledger.create("city.ledger").register("visits", budget=1) makes them'
        )
    request = request_from_values(values)
    warn_of_request(request)
    warn_of_columns(inputs, request, per=per, has_ledger=True)
    release = run_build(
        request,
        RecordInput(data=inputs, memory=memory),
        draw_counts,
        account=own or account,
        sampler=sampler,
        observer=Observer.of(observer),
    )
    if own is not None:
        own.finish()
    noisy, paid = int(release.tree.count[0]), int(release.tree.loss[0])
    noise, scale = release.tree.noise, release.unit.scale  # of one record, or of one user
    reach = noise.tail_bound(paid, 1 - confidence)
    return Answer(
        estimate=noisy / scale,
        error=math.sqrt(noise.variance(np.array([paid]))[0]) / scale,
        lower=(noisy - reach) / scale,
        upper=(noisy + reach) / scale,
    )


def _area_of(area: Any) -> dict[str, Any]:
    """Bounds of an area, and its boundary unless it is a box."""
    is_geometry = hasattr(area, "geom_type") and not hasattr(area, "geometry")
    is_box = is_geometry and not area.is_empty and area.equals(area.envelope)
    is_text = isinstance(area, str) and bounds_from_text(area) is not None
    if isinstance(area, str) and not is_text and not Path(file_of(area)).exists():
        raise ParameterError(
            "area must be west, south, east and north, polygons or a file of them, got "
            f"{area[:80]!r}",
            name="area",
        )
    if is_text or is_box or not (is_path(area) or is_geometry or hasattr(area, "geometry")):
        return {"bounds": area}
    return {"bounds": area, "boundary": area}
