"""Apache Spark: a standalone cluster, Spark in this process, or Spark Connect. Private side.

Records stay on the cluster. One expression, see `psd.apps.spark.expression`, is compiled to SQL;
only cells with their counts are returned, and coordinates that SQL cannot decide about.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from psd.apps.spark.counts import tally_table
from psd.apps.spark.expression import to_sql
from psd.apps.spark.session import check_url, explain_error, open_session, spark_errors
from psd.apps.spark.tables import SparkTable, read_rows, register_view, shared_tables
from psd.errors import PsdError

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Area, Strata, Tally
    from psd.privacy.unit import PrivacyUnit
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = ["SparkTable"]


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
        """Check the address."""
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
