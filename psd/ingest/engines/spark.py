"""Apache Spark: a standalone cluster, Spark in this process, or Spark Connect. Private side.

The rows stay where they lie. One expression, see `psd.ingest.engines._expression`, is compiled to
SQL, and cells with their counts come back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psd.errors import InputDataError
from psd.ingest.engines._counts import tally_of
from psd.ingest.engines._expression import sql_of
from psd.ingest.engines._spark_session import check_url, faults, sentence, session
from psd.ingest.engines._spark_tables import SparkTable, rows_of, viewed

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Tally
    from psd.privacy.unit import PrivacyUnit
    from psd.space.domain import Domain

__all__ = ["Spark", "SparkTable", "open_engine"]

_VIEW = "psd_rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """Count on Spark, with the same result as without, cell by cell.

    Guarantees
    ----------
    - Nothing but counts of cells and of refused rows comes back, and errors of Spark, which quote
      rows, are not passed on.
    - The key of the hash that chooses kept rows stands in the query, and so in Spark's logs; it is
      there for unbiasedness, and privacy does not rest on it.

    Parameters
    ----------
    url : str, optional
        ``spark://host:7077``, ``sc://host:15002``, ``local[2]`` or another master. The active
        session of this process where not given. Public.

    Raises
    ------
    ParameterError
        If the address is none.

    Examples
    --------
    >>> Spark(url="spark://node1:7077")
    Spark(url='spark://node1:7077')
    """

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
    ) -> Tally:
        """Counts of kept rows per occupied cell.

        Parameters
        ----------
        data : str, SparkTable or list of them
            Paths of CSV and Parquet files as the cluster sees them, and names of tables. Private.
        columns, domain, unit, key, step
            As `psd.ingest.tally_builder.tally_batches` takes them.

        Raises
        ------
        InputDataError
            If Spark or the input cannot be reached, or a row is refused.
        DomainError
            If rows do not lie where the domain says.
        MissingExtraError
            If Ibis or PySpark is not installed.
        """
        fault = None
        with session(self.url) as spark:
            try:
                with viewed(rows_of(spark, data, columns), _VIEW, columns.time_zone) as table:
                    return tally_of(
                        table,
                        lambda query: spark.sql(sql_of(query, "pyspark")).toArrow(),
                        columns,
                        domain,
                        unit=unit,
                        key=key,
                        step=step,
                    )
            except faults() as error:
                fault = sentence(error)
        # Raised here, where no context carries a message that quotes rows.
        raise InputDataError(fault)


def open_engine(url: str | None) -> Spark:
    """Spark at an address, or that of this process."""
    return Spark(url=url)
