"""`psd.tally` and `psd.merge`: exact counts of parts of a data set, and builds. Private side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from psd._util.atomic_write import check_targets
from psd.errors import InputDataError, ParameterError
from psd.ingest.input_names import tally_names
from psd.ingest.input_paths import is_path
from psd.ingest.partial_tally import PartialTally
from psd.ingest.partial_tally import merge as merge_tallies
from psd.ingest.row_hash import load_key
from psd.ingest.sources import OnCopy, files_of, resolve_inputs
from psd.ingest.tally_file import is_tally, read_headers, read_tally, write_tally
from psd.ledger.account import Account
from psd.ledger.charges import ChargeRequest
from psd.privacy.loss import Loss
from psd.publish.area import with_stated_crs
from psd.publish.charging import (
    PendingCharge,
    own_account,
    slices_of_tallies,
    tally_charge,
    tally_readings,
)
from psd.publish.counting import check_public_files, coarsest_step, inputs_of, points_of
from psd.publish.fields import answer_guesses, check_known
from psd.publish.observer import Observer
from psd.publish.refusals import mask_errors
from psd.publish.request_values import (
    RequestArguments,
    hierarchy_from_values,
    method_from_values,
    parse_values,
    public_domain_from_values,
    reading_from_values,
    regions_from_values,
    with_gaps,
)
from psd.publish.request_warnings import warn_of_columns, warn_of_degrees
from psd.publish.tally_parts import TallyRequest, tally_rows

if TYPE_CHECKING:
    from decimal import Decimal

    from psd.decompositions import Decomposition
    from psd.ledger.ledger import Ledger
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices


_NO_CATEGORIES = (
    "category must be left out for a tally, which counts no categories; build from the records"
)

# What a build states about a release, and a tally does not need.
_OF_THE_BUILD = (
    "epsilon", "delta", "noise", "estimate", "density", "about", "boundary", "covariate",
    "separate_slices",
)  # fmt: skip
_IN_THE_BUILD = "must be left out for a tally; the build has it"

_ARGUMENTS = (
    "bounds", "crs", "method", "set", "x", "y", "wkt", "geometry", "layer", "delimiter", "decimal",
    "encoding", "skip_rows", "input_crs", "where", "bounds_crs", "lattice", "coordinate_resolution",
    "min_cell", "regions", "region_id", "region_parent", "gaps", "tolerance", "repair", "user",
    "max_contributions", "per", "count", "time", "time_zone", "slices", "max_per_slice", "domain",
    "values",
)  # fmt: skip

PathLike: TypeAlias = str | os.PathLike[str]


@answer_guesses({"category": _NO_CATEGORIES} | {n: f"{n} {_IN_THE_BUILD}" for n in _OF_THE_BUILD})
def tally(
    data: Any,
    output: PathLike | None = None,
    *,
    bounds: Any = None,
    crs: str | None = None,
    method: Decomposition | str | None = None,
    set: Mapping[str, Any] | None = None,
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
    bounds_crs: str | None = None,
    lattice: Sequence[int] | None = None,
    coordinate_resolution: str | float | Decimal | None = None,
    min_cell: str | float | Decimal | None = None,
    regions: Any = None,
    region_id: str | Sequence[str] | None = None,
    region_parent: str | Sequence[str] | None = None,
    gaps: Literal["refuse", "elsewhere", "outside"] | None = None,
    tolerance: float | None = None,
    repair: bool = False,
    user: str | None = None,
    max_contributions: int | None = None,
    per: Literal["day", "slice", "record"] | None = None,
    count: Literal["records", "users"] = "records",
    time: str | None = None,
    time_zone: str | None = None,
    slices: TimeSlices | str | Sequence[str] | None = None,
    max_per_slice: int | None = None,
    values: Mapping[str, Sequence[float]] | None = None,
    ledger: Ledger | PathLike | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    domain: Domain | tuple[float, float, float, float] | None = None,
    key: PathLike | bytes | None = None,
    carry_users: bool = False,
    part: str | None = None,
    overwrite: bool = False,
) -> PartialTally:
    """Count records per lattice cell, exactly, for a later build. Private.

    A release from the tallies of parts is the release that all records together would give, so
    the parts of a data set can be counted when and where they arrive.

    Guarantees
    ----------
    - With a user, at most k records of each are counted, chosen by the user's own records and the
      key.
    - The tally names its files by digests of their content, so that no file counts twice.
    - The file of a tally is readable by its owner only.

    Parameters
    ----------
    data : object or list of objects
        Points, as in `psd.build`. Private.
    output : path-like, optional
        File to write; PRIVATE.
    bounds, crs, bounds_crs, lattice, coordinate_resolution, min_cell, domain
        Study area, as in `psd.build`, the same for all parts. Public.
    method, set
        To hold only the cells that it divides in a smaller tally, which else serves every method.
        Public.
    x, y, wkt, geometry, layer, table, query, where
        Which records are read, as in `psd.build`. Public.
    delimiter, decimal, encoding, skip_rows, input_crs
        How they are read, as in `psd.build`. Public.
    memory : str or int, optional
        Limit on the memory that reading takes, such as ``"2GB"``.
    regions, region_id, region_parent, gaps, tolerance, repair
        As in `psd.build`, for a build with the same. Public.
    user, max_contributions, per, count, max_per_slice
        Unit of privacy, as in `psd.build`, the same for all parts. Public.
    time, time_zone, slices
        As in `psd.build`, the same for all parts. Public.
    values : mapping of str to two floats, optional
        Bounds of values, as in `psd.build`, the same for all parts. Public.
    ledger, dataset, analyst
        Dataset of a ledger that builds will be charged to. A tally costs nothing; whether the
        dataset has its unit, its columns and its inputs is checked before anything is read.
    key : path-like or bytes, optional
        Key of the hash that chooses the records of a user, or a file with it, which is created if
        it does not exist. By default a random key, which is discarded.
    carry_users : bool
        Whether the tally holds the kept records of each user, so that the bound of a user holds for
        all parts together; requires ``user`` and the same ``key`` for all parts.
    part : str, optional
        Name of the part; needed if the data are not a file. The same records must always get the
        same name.
    overwrite : bool
        Whether an existing file is replaced.

    Returns
    -------
    PartialTally
        For `psd.merge` and `psd.build`.

    Raises
    ------
    ParameterError
        If an argument is wrong, or data that are not a file have no name.
    InputDataError
        If the input, or the key, cannot be read.
    LedgerError, BudgetError
        If a build of the tally could not be charged to the dataset.
    WriteError
        If the file exists or cannot be written.

    Examples
    --------
    >>> import pandas as pd, psd
    >>> from psd.decompositions import Quadtree
    >>> bounds = (126.4, 37, 127.6, 38)
    >>> january = pd.DataFrame({"lon": [126.98, 127.03], "lat": [37.57, 37.50]})
    >>> february = pd.DataFrame({"lon": [127.1], "lat": [37.6]})
    >>> parts = [
    ...     psd.tally(january, domain=bounds, part="January"),
    ...     psd.tally(february, domain=bounds, part="February"),
    ... ]
    >>> psd.build(parts, epsilon=1, method=Quadtree(height=2))
    <Release: quadtree, 21 cells, epsilon 1 per record>
    """
    stated = locals()
    data = points_of(data)
    values = with_stated_crs({name: stated[name] for name in _ARGUMENTS}, data)
    inputs = inputs_of(data, table, query)
    check_public_files(values, inputs)
    request = tally_request(values, key=key, carry_users=carry_users)
    if output is not None:
        keys = [] if key is None or isinstance(key, bytes) else [key]
        check_targets([output], overwrite=overwrite, inputs=[*files_of(inputs), *keys])
    own = own_account(ledger, dataset, analyst, None, values)
    if own is not None:
        own.check(tally_charge(request, inputs))
    warn_of_degrees(request.domain)
    warn_of_columns(inputs, request, per=per, has_ledger=own is not None)
    counted = tally_rows(inputs, request, part=part, memory=memory)
    if output is not None:
        write_tally(counted, output, overwrite=overwrite)
    return counted


def tally_request(
    values: Mapping[str, Any],
    *,
    key: PathLike | bytes | None = None,
    carry_users: bool = False,
) -> TallyRequest:
    """Return the rules of counting for the arguments of `tally`."""
    check_known("argument", values, (*RequestArguments.__annotations__,))
    for name in _OF_THE_BUILD:
        if values.get(name) is not None:
            raise ParameterError(f"{name} {_IN_THE_BUILD}")
    if values.get("category"):
        raise ParameterError(_NO_CATEGORIES, name="category")
    given = with_gaps(parse_values(values), values.get("domain"))
    source = regions_from_values(given)
    area = public_domain_from_values(given, values.get("domain"), regions=source)
    if given.get("max_contributions") is not None and not isinstance(
        given["max_contributions"], int
    ):
        raise ParameterError("max_contributions must be a number for a tally; auto needs a build")
    reading = reading_from_values(given)
    if key is not None and not reading["unit"].has_user:
        raise ParameterError(
            "key must be left out without user; only the records of a user are selected by a key"
        )
    if "set" in given and "method" not in given:
        raise ParameterError("set must be given with method", name="set")
    step = (1, 1)
    if "method" in given:
        step = coarsest_step(method_from_values(given, area, has_regions=source is not None), area)
    return TallyRequest(
        domain=area,
        unit=reading["unit"],
        columns=reading["columns"],
        slices=reading["slices"],
        contribution_scope=reading["contribution_scope"],
        step=step,
        regions=None if source is None else hierarchy_from_values(source, given, area),
        carry=carry_users,
        values=reading["values"],
        key=key if key is None or isinstance(key, bytes) else load_key(key),
    )


def merge(
    *tallies: PartialTally | PathLike | Sequence[PartialTally | PathLike],
    output: PathLike | None = None,
    overwrite: bool = False,
) -> PartialTally:
    """Join tallies of parts, or their files, into one. Private.

    Guarantees
    ----------
    - No part counts twice, and the unit of privacy of the result is that of all parts together;
      see `psd.ingest.partial_tally.merge`.
    - The order and the steps of merging have no effect.

    Parameters
    ----------
    *tallies : PartialTally, path-like or one sequence of them
        Tallies by `psd.tally` or ``psd tally``, or their files. Private.
    output : path-like, optional
        File to write; PRIVATE.
    overwrite : bool
        Whether an existing file is replaced.

    Returns
    -------
    PartialTally
        For `psd.build`. It may be merged further.

    Raises
    ------
    ParameterError
        If the list is empty, or an item is not a tally.
    InputDataError
        If a file is not a tally, tallies were counted by different rules, share a part, or their
        contribution limits cannot be combined.
    WriteError
        If the file exists or cannot be written.

    Examples
    --------
    >>> import pandas as pd, psd
    >>> points = pd.DataFrame({"lon": [126.98, 127.03], "lat": [37.57, 37.50]})
    >>> parts = [
    ...     psd.tally(points[:1], domain=(126.4, 37, 127.6, 38), part="first"),
    ...     psd.tally(points[1:], domain=(126.4, 37, 127.6, 38), part="second"),
    ... ]
    >>> psd.merge(parts).unit.guarantee_text
    'per record'
    """
    lists = [isinstance(each, Iterable) and not isinstance(each, str) for each in tallies]
    if any(lists) and len(lists) > 1:
        raise ParameterError(
            'output must be named after a list of tallies: psd.merge(tallies, output="all.tally")'
        )
    items: list[Any] = [*tallies] if not any(lists) else [*tallies[0]]  # type: ignore[misc]
    if not items:
        raise ParameterError("tallies must be at least one tally, got none")
    paths = [item for item in items if isinstance(item, str | os.PathLike)]
    if output is not None:
        check_targets([output], overwrite=overwrite, inputs=paths)
    for item in items:
        if not isinstance(item, PartialTally | str | os.PathLike):
            raise ParameterError(
                f"tallies must be tallies or paths of their files, got a value of type "
                f"{type(item).__name__}; psd.tally counts records"
            )
    merged = merge_tallies(
        [item if isinstance(item, PartialTally) else read_tally(item) for item in items]
    )
    if output is not None:
        write_tally(merged, output, overwrite=overwrite)
    return merged


def tallies_in(
    inputs: Sequence[Any],
    account: Account | None,
    losses_of: Callable[[PartialTally], Sequence[Loss]],
    observer: Observer,
) -> PartialTally | None:
    """Merged tally of the inputs, if the account can pay for it; None if they are records.

    P1. An account that cannot pay is refused before a count is read.
    """
    files = tally_files(inputs)
    if files is None:
        return None
    if account is None:
        return read_tallies(files)

    def ignore_copy(message: str) -> None:
        """Leave the report to the second reading."""

    # What a tally states decides the losses of the releases; headers have no counts.
    stated = mask_errors(lambda: read_headers(files, on_copy=ignore_copy), observer)
    charges = [
        ChargeRequest(
            loss=loss,
            unit=stated.unit,
            what="build",
            slices=slices_of_tallies(stated.rules.slices, stated.origins),
            readings=tally_readings(stated.origins),
            inputs=tally_names(stated.origins),
        )
        for loss in losses_of(stated)
    ]
    account.check_all(charges)
    pending = PendingCharge(account, charges[0])
    return mask_errors(
        lambda: read_tallies(files, on_copy=observer.private_fault),
        observer,
        charge=pending.charge_fault,
    )


def tally_files(inputs: Sequence[Any]) -> list[str | Path] | None:
    """Files, of folders and patterns too, if all are tallies; None of records; never a mixture."""
    if not all(map(is_path, inputs)):
        return None
    try:
        files = resolve_inputs(list(inputs))
    except InputDataError:
        if any(map(is_tally, inputs)):
            raise  # names a repeated file
        return None  # reading the records has the same fault
    which = [is_tally(item) for item in files]
    for file, known in zip(files, which, strict=True):
        if not known and str(file).endswith(".tally"):
            raise InputDataError(
                f"{file} must be a tally, as its name says, and cannot be read as one; it is "
                "damaged or cut short, so copy it again, or tally its records again"
            )
    if any(which) and not all(which):
        raise ParameterError(
            "inputs must be all tallies or all records, got both; tally the records first"
        )
    return files if any(which) else None


def read_tallies(inputs: Sequence[str | Path], *, on_copy: OnCopy | None = None) -> PartialTally:
    """Tally of several files together; files of equal content are refused without ``on_copy``."""
    tallies = [read_tally(item) for item in inputs]
    return merge_tallies(tallies) if on_copy is None else merge_tallies(tallies, on_copy=on_copy)
