"""Sessions of Spark that say nothing, and what is said in place of their errors. Private side."""

from __future__ import annotations

import logging
import os
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from psd.errors import InputDataError, MissingExtraError, ParameterError

__all__ = ["check_url", "faults", "sentence", "session"]

_SCHEMES = ("spark://", "sc://", "local", "yarn", "k8s://")
_PORTS = {"sc": 15002, "spark": 7077}
_WAIT = 20.0

# Nothing about rows on a console, and no page that shows queries.
_SETTINGS = {
    "spark.app.name": "psd",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

# Write errors of a query with the values that they are about.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

_FAULTS = {
    "PATH_NOT_FOUND": "does not find an input at its path; paths are those of the cluster",
    "TABLE_OR_VIEW_NOT_FOUND": "has no such table",
    "MALFORMED_RECORD_IN_PARSING": "met a malformed row; each row of a CSV file needs as many "
    "comma-separated fields as the first line, and closed quotes",
    "UNABLE_TO_INFER_SCHEMA": "finds no column in an input; is it empty, or no Parquet?",
    "FAILED_READ_FILE": "cannot read an input; is it damaged, malformed, or of another format?",
    "CSV error": "met a malformed row; each row of a CSV file needs as many comma-separated "
    "fields as the first line, and closed quotes",
}


def check_url(url: str | None) -> None:
    """Refuse what is no address of Spark."""
    if url is not None and not (isinstance(url, str) and url.startswith(_SCHEMES)):
        raise ParameterError(
            f"spark url {str(url)[:80]!r} is none; write spark://host:7077 for a standalone "
            "cluster, sc://host:15002 for Spark Connect, or local[2]"
        )


@contextmanager
def session(url: str | None) -> Iterator[Any]:
    """A session of one's own, ended afterwards; or the active one where no address is given.

    Raises
    ------
    InputDataError
        If Spark cannot be reached or started.
    MissingExtraError
        If what it needs is not installed.
    """
    _check_installed(url)
    with _silence(), ExitStack() as after:
        if url is None:
            spark = _active()
        else:
            _check_reachable(url)
            spark = _started(url)
            after.callback(_stop, spark)
        yield spark


def faults() -> tuple[type[Exception], ...]:
    """Errors of Spark and of the ways to it."""
    import pyarrow as pa
    from pyspark.errors import PySparkException

    found: list[type[Exception]] = [PySparkException, pa.ArrowException, OSError]
    if find_spec("grpc"):
        import grpc

        found.append(grpc.RpcError)
    if find_spec("py4j"):
        from py4j.protocol import Py4JError

        found.append(Py4JError)
    return tuple(found)


def sentence(error: Exception) -> str:
    """What is wrong, from the kind of an error alone; its message may quote rows."""
    message = f"{getattr(error, 'getCondition', lambda: None)()} {error}"
    for mark, said in _FAULTS.items():
        if mark.lower() in message.lower():
            return f"Spark {said}"
    return "Spark could not count the input; its own logs say why"


def _check_installed(url: str | None) -> None:
    """Refuse before anything starts if a package is missing."""
    needed = ["ibis", "pyarrow_hotfix", "pyspark"]
    if url is not None:
        needed.append("grpc" if url.startswith("sc://") else "py4j")
    if not all(map(find_spec, needed)):
        raise MissingExtraError(
            "the engine spark needs Ibis and PySpark; install them with "
            "pip install 'psd-publisher[spark]'"
        )


def _check_reachable(url: str) -> None:
    """Refuse at once where nobody listens; Spark itself would try for minutes."""
    scheme, _, rest = url.partition("://")
    if scheme not in _PORTS:
        return
    hosts = rest.partition("/")[0].split(",")
    if any(_answers(host, _PORTS[scheme]) for host in hosts):
        return
    raise InputDataError(
        f"Spark does not answer at {scheme}://{','.join(hosts)}; is it running, and is the port "
        "right?"
    )


def _answers(host: str, port: int) -> bool:
    """Whether somebody listens at ``host:port``."""
    try:
        place = urlsplit(f"//{host}")
        with socket.create_connection((place.hostname, place.port or port), timeout=_WAIT):
            return True
    except (OSError, ValueError):
        return False


def _active() -> Any:
    """The session that this process has."""
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is None:
        raise ParameterError("spark is given without url, and this process has no active session")
    return found


def _started(url: str) -> Any:
    """A session that was not there before."""
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
    except faults():
        failed = True
    if failed:  # raised here, where no context carries Spark's message
        raise InputDataError(
            "Spark does not start; is Java installed where psd runs (Spark Connect needs none), "
            "and may this machine use the cluster?"
        )
    raise ParameterError("spark runs in this process already; leave url away to use its session")


def _stop(spark: Any) -> None:
    """End a session, whatever has become of it."""
    try:
        spark.stop()
    except faults():
        pass


@contextmanager
def _silence() -> Iterator[None]:
    """Keep the loggers and the warnings of Spark's client from the console."""
    from pyspark.logger import PySparkLogger

    loggers = [logging.getLogger("pyspark"), logging.getLogger("py4j")]
    loggers += [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.disabled = True
        try:
            yield
        finally:
            for logger, disabled in zip(loggers, before, strict=True):
                logger.disabled = disabled


@contextmanager
def _no_console() -> Iterator[None]:
    """No console for what starts meanwhile: Java keeps the streams that it inherits."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    kept = [os.dup(number) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
