"""Sessions of Spark without output, and messages for their errors. Private side."""

from __future__ import annotations

import logging
import os
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from psd._util.extras import install_text
from psd.errors import InputDataError, MissingExtraError, ParameterError, ResourceError

_SCHEMES = ("spark://", "sc://", "local", "yarn", "k8s://")
_PORTS = {"sc": 15002, "spark": 7077}
_WAIT = 20.0

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
    """Open a session and close it afterwards; without an address, use the active session.

    Raises
    ------
    InputDataError
        If Spark cannot be reached or started.
    MissingExtraError
        If a package is not installed.
    """
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
    """Replace an error, whose message may quote records, by one that explains its kind.

    An error that is no known fault of the input may be a lack of memory, so it is a
    `ResourceError`.
    """
    message = f"{getattr(error, 'getCondition', lambda: None)()} {error}"
    for pattern, explanation in _FAULTS.items():
        if pattern.lower() in message.lower():
            return InputDataError(f"Spark {explanation}")
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
    """Start a session."""
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
    """Stop a session; ignore errors."""
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
