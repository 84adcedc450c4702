"""A plan in words and in the cells of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas

    from psd.planning.plan import Plan

__all__ = ["GOOD", "percent", "range_columns", "setting", "size_text", "words"]

GOOD = 0.1
"""A mean relative error that most uses can live with."""


def setting(found: Plan) -> str:
    """What is planned for: records, what one unit of privacy is, and the area."""
    k = found.max_contributions
    unit = "each protected by itself" if k == 1 else f"all protected of a user, at most {k:,}"
    return f"{found.count:,} records, {unit}, in {size_text(found.area_km2)}"


def words(found: Plan) -> list[str]:
    """One sentence per epsilon and method: from which size on queries can be trusted."""
    ranges = found.ranges
    people = ranges[ranges["centres"] == "on data"].sort_values("size_share")
    groups = people.groupby(["epsilon", "method"])
    asked = ranges[["epsilon", "method"]].drop_duplicates().to_numpy().tolist()
    return [_sentence(e, m, groups.get_group((e, m))) for e, m in asked]


def _sentence(epsilon: str, method: str, rows: pandas.DataFrame) -> str:
    """The least size from which on the mean error stays small under every assumed density."""
    small = (rows["mean_error_high"] <= GOOD)[::-1].cummin()[::-1]
    start = f"at epsilon {epsilon}, {method}: where people are, "
    if not small.any():
        last = rows.iloc[-1]
        return (
            f"{start}no size asked about keeps the mean relative error under {percent(GOOD)}; "
            f"at {size_text(last['size_km2'])} it is up to {percent(last['mean_error_high'])}"
        )
    first = rows[small].iloc[0]
    return (
        f"{start}queries of {size_text(first['size_km2'])} ({percent(first['size_share'])} of the "
        f"area) and up have a mean relative error under {percent(GOOD)}"
    )


def size_text(km2: float) -> str:
    """An area for people: three digits, small ones in square metres.

    Examples
    --------
    >>> size_text(605.2), size_text(0.00025), size_text(12_345.6)
    ('605 km2', '250 m2', '12,346 km2')
    """
    return f"{_three(km2)} km2" if km2 >= 0.001 else f"{_three(km2 * 1e6)} m2"


def _three(value: float) -> str:
    """Three digits, all of them before the point."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share in percent with two digits.

    Examples
    --------
    >>> percent(0.1234), percent(0.00034), percent(1.5)
    ('12 %', '0.034 %', '150 %')
    """
    value = 100 * share
    return f"{value:,.0f} %" if value >= 100 else f"{float(f'{value:.2g}'):g} %"


def range_columns(found: Plan) -> dict[str, list[str]]:
    """Columns of a table of ranges, the words of a heading separated by underscores."""
    keys = ["epsilon", "method", "size_km2", "size_share"]
    ranges = found.ranges
    on_data = ranges[ranges["centres"] == "on data"].set_index(keys)
    anywhere = ranges[ranges["centres"] == "anywhere"].set_index(keys).loc[on_data.index]
    index = on_data.index.to_frame()
    return {
        "epsilon": index["epsilon"].tolist(),
        "method": index["method"].tolist(),
        "query_size": [size_text(size) for size in index["size_km2"]],
        "% of_area": [percent(share) for share in index["size_share"]],
        "mean_error": _span(on_data, "mean_error"),
        "half_under": _span(on_data, "median_error"),
        "9 in 10_under": _span(on_data, "error_90"),
        "records_off": _span(on_data, "mean_records_off", "{:,.0f}"),
        "anywhere:_mean": _span(anywhere, "mean_error"),
    }


def _span(rows: pandas.DataFrame, name: str, form: str | None = None) -> list[str]:
    """Least to most of a measure."""
    show = percent if form is None else form.format
    pairs = zip(rows[f"{name}_low"], rows[f"{name}_high"], strict=True)
    return [_dash(show(low), show(high)) for low, high in pairs]


def _dash(low: str, high: str) -> str:
    """Two numbers with a dash, one where they are alike; a unit stands once."""
    return low if low == high else f"{low.removesuffix(' %')} - {high}"
