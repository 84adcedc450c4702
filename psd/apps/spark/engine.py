"""Apache Spark: a standalone cluster, Spark in this process, or Spark Connect. Private side.

Only cells with their counts leave the cluster, and coordinates that SQL cannot decide about.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import numpy as np

from psd._util.extras import install_text
from psd.apps.spark.expression import (
    Run,
    Share,
    add_slices,
    count_cells,
    count_faults,
    count_placed,
    parse_rows,
    place,
    to_sql,
)
from psd.apps.spark.tables import SparkTable, read_rows, register_view, shared_tables
from psd.errors import InputDataError, MissingExtraError, ParameterError, PsdError, ResourceError
from psd.ingest.points import FINITE_RULE, column_projection, number_rule, same_points, srid_of
from psd.ingest.tally_builder import check_counting, tally_of_codes

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Area, Strata, Tally
    from psd.privacy.unit import PrivacyUnit
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = ["SparkTable"]


_SCHEMES = ("spark://", "sc://", "local", "yarn", "k8s://")
_PORTS = {"sc": 15002, "spark": 7077}
_WAIT = 20  # seconds

# Write nothing about records to a console, and serve no page that shows queries.
_SETTINGS = {
    "spark.app.name": "psd",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

# Loggers that write errors of a query with values.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

_FAULTS = {
    "PATH_NOT_FOUND": "cannot find an input at its path; paths are those of the cluster",
    "TABLE_OR_VIEW_NOT_FOUND": "has no such table",
    "MALFORMED_RECORD_IN_PARSING": "met a malformed row; each row of a CSV file needs as many "
    "comma-separated fields as the first line, and closed quotes",
    "UNABLE_TO_INFER_SCHEMA": "finds no column in an input; is it empty, or not Parquet?",
    "FAILED_READ_FILE": "cannot read an input; is it damaged, malformed, or of another format?",
    "CSV error": "met a malformed row; each row of a CSV file needs as many "
    "fields as the first line, and closed quotes",
}


def check_url(url: str | None) -> None:
    """Refuse an invalid address of Spark."""
    if url is not None and not (isinstance(url, str) and url.startswith(_SCHEMES)):
        raise ParameterError(
            f"url must be spark://host:7077 for a standalone cluster, sc://host:15002 for Spark "
            f"Connect, or local[2], got {str(url)[:80]!r}"
        )


@contextmanager
def open_session(url: str | None) -> Iterator[Any]:
    """Open a session and close it afterwards; without an address, use the active session."""
    needed = ["ibis", "pyarrow_hotfix", "pyspark"]
    if url is not None:
        needed.append("grpc" if url.startswith("sc://") else "py4j")
    if not all(map(find_spec, needed)):
        raise MissingExtraError(
            f"the engine spark needs Ibis and PySpark; {install_text('spark')}", extra="spark"
        )
    with _silence(), ExitStack() as after:
        if url is None:
            from pyspark.sql import SparkSession

            spark: Any = SparkSession.getActiveSession()
            if spark is None:
                raise ParameterError(
                    "url must be given, since this process has no active Spark session"
                )
        else:
            _check_reachable(url)
            spark = _start(url)
            after.callback(_stop, spark)
        yield spark


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the errors of Spark and of its clients."""
    import pyarrow as pa
    from pyspark.errors import PySparkException

    errors: list[type[Exception]] = [PySparkException, pa.ArrowException, OSError]
    if find_spec("grpc"):
        import grpc

        errors.append(grpc.RpcError)
    if find_spec("py4j"):
        from py4j.protocol import Py4JError

        errors.append(Py4JError)
    return tuple(errors)


def explain_error(error: Exception) -> InputDataError:
    """Replace an error, whose message may quote records, by one that explains its kind."""
    message = f"{getattr(error, 'getCondition', lambda: None)()} {error}"
    for pattern, explanation in _FAULTS.items():
        if pattern.lower() in message.lower():
            return InputDataError(f"Spark {explanation}")
    # No known fault of the input, so it may be a lack of memory.
    return ResourceError("Spark could not count the input; see the logs of Spark")


def _check_reachable(url: str) -> None:
    """Refuse at once if no server listens; Spark itself would retry for minutes."""
    scheme, _, rest = url.partition("://")
    if scheme not in _PORTS:
        return
    hosts = rest.partition("/")[0].split(",")
    for host in hosts:
        with suppress(OSError, ValueError):
            address = urlsplit(f"//{host}")
            place = (address.hostname, address.port or _PORTS[scheme])
            with socket.create_connection(place, timeout=_WAIT):
                return
    raise InputDataError(
        f"Spark does not answer at {scheme}://{','.join(hosts)}; is it running, and is the port "
        "right?"
    )


def _start(url: str) -> Any:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    failed = False
    try:
        if url.startswith("sc://"):
            return builder.remote(url).create()
        from pyspark import SparkContext

        if SparkContext._active_spark_context is None:  # noqa: SLF001
            with _no_console():
                return builder.master(url).config(map=_SETTINGS).getOrCreate()
    except spark_errors():
        failed = True
    if failed:  # raised here, so that the context does not carry the message of Spark
        raise InputDataError(
            "Spark does not start; is Java installed here (Spark Connect needs none), and may this "
            "machine use the cluster?"
        )
    raise ParameterError("Spark already runs in this process; omit url to use its session")


def _stop(spark: Any) -> None:
    try:
        spark.stop()
    except spark_errors():
        pass


@contextmanager
def _silence() -> Iterator[None]:
    """Suppress loggers and warnings of the Spark client."""
    from pyspark.logger import PySparkLogger

    loggers = [logging.getLogger("pyspark"), logging.getLogger("py4j")]
    loggers += [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    with warnings.catch_warnings(action="ignore"):
        for logger in loggers:
            logger.disabled = True
        try:
            yield
        finally:
            for logger, disabled in zip(loggers, before, strict=True):
                logger.disabled = disabled


@contextmanager
def _no_console() -> Iterator[None]:
    """Redirect standard streams while Java starts, since Java keeps the streams it inherits."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    copies = [os.dup(number) for number in (1, 2)]
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(null, number)
        yield
    finally:
        for number, copy in zip((1, 2), copies, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(null)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """Count on Spark, with the same result as in this process, cell by cell.

    Guarantees
    ----------
    - Only counts of cells and of refused records are returned, and coordinates, without users and
      times and each pair once: with regions or a boundary those near an outline, and those of all
      records if regions have no raster or coordinates are transformed. Messages of Spark, which
      quote records, are not passed on.
    - The key of the hash that chooses kept records is in the query, and so in the logs of Spark;
      it keeps the choice unbiased, and privacy does not depend on it.

    Parameters
    ----------
    url : str, optional
        ``spark://host:7077``, ``sc://host:15002``, ``local[2]`` or another master; by default
        the active session of this process. Public.

    Raises
    ------
    ParameterError
        If the address is invalid.

    Examples
    --------
    >>> Spark(url="spark://node1:7077")
    Spark(url='spark://node1:7077')
    """

    filters: ClassVar[bool] = True

    url: str | None = None

    def __post_init__(self) -> None:
        check_url(self.url)

    def tally(
        self,
        data: Any,
        columns: Columns,
        domain: Domain,
        *,
        unit: PrivacyUnit,
        key: bytes | None = None,
        step: tuple[int, int] = (1, 1),
        area: Area | None = None,
        slices: TimeSlices | None = None,
        strata: Strata | None = None,
    ) -> Tally:
        """Count kept records per slice, stratum and occupied cell.

        Parameters
        ----------
        data : str, SparkTable or list of them
            Paths of CSV and Parquet files as the cluster sees them, and names of tables. Private.
        columns : Columns
            With an ``input_crs`` other than that of the domain, the coordinates of all records,
            each pair once, are transformed in this process. Public.
        domain, unit, key, step, area, slices, strata
            As in `psd.ingest.tally_builder.tally_batches`.

        Raises
        ------
        InputDataError
            If Spark or the input cannot be reached, or a record is refused.
        MissingExtraError
            If Ibis or PySpark is not installed.
        """
        view = f"psd_rows_{secrets.token_hex(8)}"  # builds of one session do not share a view
        with open_session(self.url) as spark:
            try:
                with (
                    register_view(
                        read_rows(spark, data, columns), view, columns.time_zone
                    ) as table,
                    shared_tables(spark, view) as share,
                ):
                    return tally_table(
                        table,
                        lambda query: spark.sql(to_sql(query, "pyspark")).toArrow(),
                        share,
                        columns,
                        domain,
                        unit=unit,
                        key=key,
                        step=step,
                        area=area,
                        slices=slices,
                        strata=strata,
                    )
            except PsdError:  # a refusal, some of which are errors of the system too
                raise
            except spark_errors() as error:
                fault = explain_error(error)
        # Raised here, so that the context carries no message that quotes records.
        raise fault


def open_engine(url: str | None) -> Spark:
    """Open Spark at an address, or in this process."""
    return Spark(url=url)


_CHANGED = "the input changed while it was read; nothing was published"
_TIMES = (
    "holds text that is not a time in ISO 8601; times look like 2024-01-31, 2024-01-31 10:00:00 or "
    "2024-01-31T10:00"
)


def tally_table(
    table: Any,
    run: Run,
    share: Share,
    columns: Columns,
    domain: Domain,
    *,
    unit: PrivacyUnit,
    key: bytes | None = None,
    step: tuple[int, int] = (1, 1),
    area: Area | None = None,
    slices: TimeSlices | None = None,
    strata: Strata | None = None,
) -> Tally:
    """Count the records of a table in an engine, as `psd.ingest.tally_builder.tally_batches` does.

    P1. As there: kept records of a unit are a function of its own records and the key.
    P2. Only counts of cells and of refused records leave the engine, and coordinates without their
    users and times, each pair once: with an area or strata those that their rasters leave open, in
    cells near an outline, or all without a raster; with ``columns.input_crs`` those of all.

    table: of Ibis, private, with x and y, and user and time if `columns` names them.
    """
    check_counting(domain, unit, step, slices, strata)
    project = column_projection(columns, domain, "the input")
    is_projected = project is not same_points
    if "time" not in table.columns and (unit.kind == "user-day" or slices is not None):
        raise InputDataError(
            "records have no time, and days and slices need one; name its column with time=NAME"
        )
    rows = parse_rows(table, domain, columns)
    if slices is not None:
        rows = add_slices(rows, slices, domain, share)
    # The table is run for faults and for cells, once for each of a transformation, an area and
    # strata, and once for these together.
    faults = run(count_faults(rows)).to_pylist()[0]
    are_texts = tuple(table[axis].type().is_string() for axis in ("x", "y"))
    _check(faults, columns, domain, are_texts)
    key = secrets.token_bytes(16) if key is None else key
    if is_projected or area is not None or strata is not None:
        to_domain = project if is_projected else None
        rows = place(rows, domain, run, share, project=to_domain, area=area, strata=strata)
        placed = run(count_placed(rows)).to_pylist()[0]
        most = faults["read" if is_projected else "inside"]  # no join adds a record
        if placed["undecided"] or placed["rows"] > most:
            raise ResourceError(_CHANGED)
        faults["inside"] = placed["inside"]
    parts = 1 if strata is None else strata.size
    cells = run(count_cells(rows, domain, unit=unit, key=key, step=step, strata=parts))
    code, number, weight = (
        cells[name].to_numpy().astype(np.int64) for name in ("code", "number", "weight")
    )
    total = int(number.sum())
    if total > faults["inside"] or (not unit.has_user and total < faults["inside"]):
        raise ResourceError(_CHANGED)
    order = np.argsort(code)
    tally = tally_of_codes(code[order], weight[order], domain, step, slices, strata)
    # Counts of the private report.
    read, missing, inside = faults["read"], faults["missing"], faults["inside"]
    others = faults.get("not_selected", 0)
    outside = read - others - missing - inside
    report = {"read": read, "without coordinates": missing, "outside": outside}
    if "not_selected" in faults:
        report["not selected"] = others
    if unit.has_user and not unit.weight:
        report["over the limit"] = inside - total
    report["kept"] = total
    return replace(tally, contributions=unit.contributions, report=report)


def _check(
    faults: dict[str, int], columns: Columns, domain: Domain, are_texts: tuple[bool, ...]
) -> None:
    """Refuse the records that this process would refuse, in the same order."""
    points = (columns.x, columns.y) if columns.wkt is None else (columns.wkt, columns.wkt)
    for axis, name, is_text in zip(("x", "y"), points, are_texts, strict=True):
        if faults[f"bad_{axis}"]:
            srid = srid_of(domain.crs, columns.input_crs)
            rule = number_rule(columns, srid) if is_text else FINITE_RULE
            raise InputDataError(f"column {name!r} {rule}")
    if faults.get("bad_time"):
        raise InputDataError(f"column {columns.time!r} {_TIMES}")
    if faults.get("aware_time"):
        raise InputDataError(
            f"column {columns.time!r} holds times with an offset from UTC, which this engine does "
            "not convert; give a column of timestamps, or local times without offset"
        )
    if faults.get("no_time"):
        raise InputDataError("records have no time; remove them, or build without time=")
    if faults.get("no_user"):
        raise InputDataError(
            "records have no user id, so no limit per user can hold for them; remove these "
            "records, or build without user="
        )
    if faults.get("strange_user"):
        raise InputDataError(
            f"column {columns.user!r} of user ids holds characters that this engine cannot "
            "normalise; write ids in ASCII, Latin, Cyrillic, kana, Chinese characters or Hangul "
            "syllables, or build without engine="
        )
