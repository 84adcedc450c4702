"""`psd.tally` and `psd.merge`: exact counts of parts of a data set, for a later build.

Private side: a tally holds exact counts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from psd._util.atomic_write import check_targets
from psd._util.suggestions import check_names
from psd.decompositions import as_method, as_region_method
from psd.errors import ParameterError
from psd.ingest.hash_key import load_key
from psd.ingest.partial_tally import PartialTally
from psd.ingest.partial_tally import merge as merge_tallies
from psd.ingest.sources import files_of
from psd.ingest.tally_file import read_tally, write_tally
from psd.publish.drawing import coarsest_step
from psd.publish.public_inputs import check_public_files, regions_of
from psd.publish.request import as_domain
from psd.publish.request_arguments import DomainArgument, ReadArguments, reading_fields
from psd.publish.tally_parts import TallyRequest, tally_rows
from psd.space.domain import Domain

if TYPE_CHECKING:
    from psd.decompositions import Decomposition
    from psd.regions.hierarchy import RegionHierarchy
    from psd.regions.inputs import CellRegions, RegionFiles
    from psd.space.time_slices import TimeSlices

__all__ = ["merge", "tally", "tally_request"]

PathLike: TypeAlias = str | os.PathLike[str]


def tally(
    data: Any,
    output: PathLike | None = None,
    *,
    domain: DomainArgument,
    method: Decomposition | str | None = None,
    slices: TimeSlices | None = None,
    regions: RegionHierarchy | RegionFiles | CellRegions | None = None,
    key: PathLike | bytes | None = None,
    carry_users: bool = False,
    part: str | None = None,
    memory: str | int | None = None,
    overwrite: bool = False,
    **arguments: Unpack[ReadArguments],
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
    domain : Domain or tuple of four numbers
        Bounds, CRS and lattice, the same for all parts. Public.
    method : Decomposition or str, optional
        The tally then holds only the cells that this method divides, and is smaller; by default
        it serves every method.
    slices : TimeSlices, optional
        Hours, days, weeks or months that are counted separately; requires ``time``.
    regions : RegionFiles, CellRegions or RegionHierarchy, optional
        Records are counted by region, for a build with the same ``regions=``. Public.
    key : path-like or bytes, optional
        Key of the hash that chooses the records of a user, or a file with it, which is created if
        it does not exist. By default a random key, which is discarded.
    carry_users : bool
        Whether the tally holds the kept records of each user, so that the bound of a user holds for
        all parts together; requires ``user`` and the same ``key`` for all parts.
    part : str, optional
        Name of the part; needed if the data are not a file. The same records must always get the
        same name.
    memory : str or int, optional
        Limit on the memory that reading takes, such as ``"2GB"``.
    overwrite : bool
        Whether an existing file is replaced.
    **arguments
        Columns and unit of privacy, as in `psd.build`.

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
    check_public_files({**arguments, "regions": regions}, data)
    request = tally_request(
        arguments,
        domain=domain,
        method=method,
        slices=slices,
        regions=regions,
        key=key,
        carry_users=carry_users,
    )
    if output is not None:
        items = list(data) if isinstance(data, list | tuple) else [data]
        keys = [] if key is None or isinstance(key, bytes) else [key]
        check_targets([output], overwrite=overwrite, inputs=[*files_of(items), *keys])
    counted = tally_rows(data, request, part=part, memory=memory)
    if output is not None:
        write_tally(counted, output, overwrite=overwrite)
    return counted


def tally_request(
    arguments: Mapping[str, Any],
    *,
    domain: DomainArgument,
    method: Decomposition | str | None = None,
    slices: TimeSlices | None = None,
    regions: RegionHierarchy | RegionFiles | CellRegions | None = None,
    key: PathLike | bytes | None = None,
    carry_users: bool = False,
) -> TallyRequest:
    """Return the rules of counting for the arguments of `tally`.

    Raises
    ------
    ParameterError
        If an argument is wrong, or does not exist.
    InputDataError
        If the key cannot be read.
    """
    check_names("argument", arguments, ReadArguments.__annotations__)
    area = as_domain(domain)
    if not isinstance(area, Domain):
        raise ParameterError(
            "domain must be a psd.Domain or four numbers for a tally, got private bounds or none; "
            "all parts must have the same public bounds"
        )
    if arguments.get("max_contributions") is not None and not isinstance(
        arguments["max_contributions"], int
    ):
        raise ParameterError("max_contributions must be a number for a tally; auto needs a build")
    fields = reading_fields(arguments, slices)
    if key is not None and not fields["unit"].has_user:
        raise ParameterError(
            "key must be left out without user; only the records of a user are selected by a key"
        )
    return TallyRequest(
        domain=area,
        unit=fields["unit"],
        columns=fields["columns"],
        slices=slices,
        contribution_scope=fields["contribution_scope"],
        step=(1, 1) if method is None else coarsest_step(_method(method, regions), area),
        regions=None if regions is None else regions_of(regions, area),
        carry=carry_users,
        key=key if key is None or isinstance(key, bytes) else load_key(key),
    )


def _method(value: Decomposition | str, regions: object) -> Decomposition:
    """Method of the later build, which is another one with regions."""
    return as_method(value) if regions is None else as_region_method(value)


def merge(
    tallies: PartialTally | PathLike | Sequence[PartialTally | PathLike],
    output: PathLike | None = None,
    *,
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
    tallies : PartialTally, path-like or a sequence of them
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
    items = [tallies] if isinstance(tallies, PartialTally | str | os.PathLike) else list(tallies)
    if not items:
        raise ParameterError("tallies must be at least one tally, got none")
    paths = [item for item in items if isinstance(item, str | os.PathLike)]
    if output is not None:
        check_targets([output], overwrite=overwrite, inputs=paths)
    merged = merge_tallies([_tally_of(item) for item in items])
    if output is not None:
        write_tally(merged, output, overwrite=overwrite)
    return merged


def _tally_of(item: Any) -> PartialTally:
    """Return a tally, or read it from its file."""
    if isinstance(item, PartialTally):
        return item
    if isinstance(item, str | os.PathLike):
        return read_tally(item)
    raise ParameterError(
        f"tallies must be tallies or paths of their files, got a value of type "
        f"{type(item).__name__}; psd.tally counts records"
    )
