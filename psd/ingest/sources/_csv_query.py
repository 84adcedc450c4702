"""SQL that reads the fields of a CSV file in DuckDB. Private side."""

from __future__ import annotations

from dataclasses import dataclass

from psd.ingest.sources._csv_file import CsvContent
from psd.ingest.sources._csv_header import Header

__all__ = ["CsvQuery"]


@dataclass(frozen=True, slots=True)
class CsvQuery:
    """How a file is parsed.

    Parameters
    ----------
    header : Header
        Names of its columns, and those to read.
    compression : str
        Its compression.
    content : CsvContent
        What one scan of it has shown.
    """

    header: Header
    compression: str
    content: CsvContent

    @property
    def has_numbers(self) -> bool:
        """Whether `numbers` reads the file: each coordinate is a field, and each row is a line.

        So it is known whether rows are left out.
        """
        columns, content = self.header.columns, self.content
        is_text = {columns.x, columns.y} & set(columns.filtered)  # a filter reads them as text
        is_plain = columns.decimal == "." and not is_text
        return is_plain and not content.quotes and not content.line_ends

    def points(self) -> str:
        """SQL of the texts of points."""
        columns = self.header.columns
        assert columns.wkt is not None  # else the file is read by `numbers`
        return f"SELECT {self._field(columns.wkt)} AS point {self._others()} FROM {self._table()}"

    def numbers(self) -> str:
        """SQL of coordinates that the parser itself converts, which is less work.

        Rows that are malformed or have other text are left out; `left_out` reads them. Then fewer
        rows are read than there are lines below the header.
        """
        columns = self.header.columns
        missing = "'nan'::DOUBLE"
        x, y = (f"coalesce({self._field(name)}, {missing})" for name in (columns.x, columns.y))
        table = self._table(numbers=(columns.x, columns.y))
        return f"SELECT {x} AS x, {y} AS y {self._others()} FROM {table}"

    def left_out(self) -> str:
        """SQL of the rows that `numbers` leaves out; malformed ones are refused."""
        odd = (f"text_{a} IS NOT NULL AND TRY_CAST(text_{a} AS DOUBLE) IS NULL" for a in "xy")
        return f"{self.text(with_texts=True)} WHERE {' OR '.join(odd)}"

    def size(self) -> str:
        """SQL of the number of rows."""
        return f"SELECT count(*) FROM {self._table()}"

    def text(self, *, with_texts: bool) -> str:
        """SQL that reads numbers strictly: NaN or infinite if a field is not a plain number.

        Parameters
        ----------
        with_texts : bool
            Whether it also gives the texts of such fields, which is more work.
        """
        columns = self.header.columns
        x, y = self._field(columns.x), self._field(columns.y)
        comma = columns.decimal == ","
        numbers = f"{_number(x, comma=comma)} AS x, {_number(y, comma=comma)} AS y {self._others()}"
        if not with_texts:
            return f"SELECT {numbers} FROM {self._table()}"
        has_underscore = self.content.has_underscore
        odd = ", ".join(_odd(axis, has_underscore=has_underscore) for axis in ("x", "y"))
        return f"""
            SELECT * EXCLUDE (text_x, text_y), {odd}
            FROM (SELECT {x} AS text_x, {y} AS text_y, {numbers} FROM {self._table()})
        """

    def _others(self) -> str:
        """SQL of the other columns."""
        columns = self.header.columns
        others = "".join(
            f", {self._field(name)} AS {kind}"
            for kind, name in (("user", columns.user), ("time", columns.time))
            if name
        )
        others += "".join(
            f", {self._field(name)} AS f{index}" for index, name in enumerate(columns.filtered)
        )
        return others + (f", {self._bid(columns.bid)} AS bid" if columns.bid else "")

    def _bid(self, name: str) -> str:
        """SQL of a bid: NaN unless it is a plain number."""
        field = self._field(name)
        number = _number(field, comma=self.header.columns.decimal == ",")
        return f"CASE WHEN contains({field}, '_') THEN 'nan'::DOUBLE ELSE {number} END"

    def _field(self, name: str) -> str:
        """SQL of the text of a field."""
        return f"c{self.header.names.index(name)}"

    def _table(self, numbers: tuple[str, ...] = ()) -> str:
        """SQL of the fields, some of which are numbers; rows with other text are left out.

        A file with quotes is parsed by one thread. Several threads would have to guess whether
        their start positions are inside quotes, and whether a guess fails would depend on other
        records. Without quotes there is nothing to guess.
        """
        fields = (
            f"{_quoted(f'c{index}')}: '{'DOUBLE' if name in numbers else 'VARCHAR'}'"
            for index, name in enumerate(self.header.names)
        )
        schema, quotes = ", ".join(fields), "quote = '', escape = ''"
        if self.content.quotes:
            quotes = """quote = '"', escape = '"', parallel = false"""
        return f"""read_csv($1, columns = {{{schema}}}, auto_detect = false, header = true,
            compression = '{self.compression}', delim = {_quoted(self.header.delimiter)}, {quotes},
            strict_mode = true{", ignore_errors = true" if numbers else ""})"""


def _quoted(text: str) -> str:
    """Quote a text literal for SQL."""
    return "'" + text.replace("'", "''") + "'"


def _number(column: str, *, comma: bool) -> str:
    """SQL of the number in a text, NaN if it is not a number.

    A bare TRY_CAST would become the type of the column, and stop the parser at other text.
    """
    number = f"TRY_CAST({column} AS DOUBLE)"
    if comma:
        number = f"TRY_CAST(replace({column}, ',', '.') AS DOUBLE)"
        number = f"CASE WHEN contains({column}, '.') THEN NULL ELSE {number} END"
    return f"coalesce({number}, 'nan'::DOUBLE)"


def _odd(axis: str, *, has_underscore: bool) -> str:
    """SQL of the text of a field unless it is a plain decimal number.

    A text that DuckDB parses as a finite number is a plain decimal number, unless it has
    underscores between digits. DuckDB sorts NaN above infinity.
    """
    is_plain = f"{axis} < 'infinity'::DOUBLE"
    is_plain += f" AND NOT contains(text_{axis}, '_')" * has_underscore
    return f"CASE WHEN {is_plain} THEN NULL ELSE text_{axis} END AS odd_{axis}"
