"""Plans as sentences and as the cells of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd.apps.planning._constants import GOOD_ERROR
from psd.privacy.loss import delta_text, failure_text
from psd.privacy.values import noise_sentence
from psd.publish.request import MOST_APART
from psd.query.answer_table import relative_text
from psd.space.domain import DEFAULT_MIN_CELL

if TYPE_CHECKING:
    import pandas

    from psd.apps.planning.plan import Plan
    from psd.apps.planning.region_plan import RegionPlan


COLUMNS_NOTE = (
    "Each range is from the smallest to the largest value over the assumed densities. Mean, median "
    "and 90th percentile are for queries centred on people; mean error at random is the mean for "
    "queries at random locations."
)
"""Explanation of the columns of `range_columns`."""

REGIONS_NOTE = (
    "Error is the root mean square over the regions of a level, in records. Mean, median and 90th "
    "percentile are of relative errors, error / population, of regions with a population. Good: up "
    "to 12 %; with care: up to 30 %; poor: above, or no population. Regions are public; no record "
    "was read."
)
"""Explanation of the columns of `region_columns`."""

_MAX_DIGITS = 7
NOISE_NAMES = {"laplace": "Laplace", "gaussian": "Gaussian"}
"""Laws of noise in words."""


def plan_setting(expected: Plan) -> str:
    """Describe the records, the area and the unit of privacy of a plan."""
    k = expected.max_contributions
    unit = (
        "each record is protected"
        if k == 1
        else f"all records of a user are protected (at most {k:,} each)"
    )
    slices, each = expected.series.slices, ""
    if slices > 1:
        each = f" in each of {slices:,} time slices"
        unit = unit.replace(
            " each)", f" each, at most {expected.series.max_per_slice:,} in a slice)"
        )
    return f"{expected.count:,} records in {size_text(expected.area_km2)}{each}; {unit}"


def plan_sentences(expected: Plan) -> list[str]:
    """Say for each epsilon and method from which size on the errors of queries are good."""
    ranges = expected.ranges
    people = ranges[ranges["centres"] == "on data"].sort_values("size_share")
    names = ("epsilon", "method", "noise", "window", "category")
    keys = [key for key in names if key in ranges]
    groups = people.groupby(keys)
    builds = ranges[keys].drop_duplicates().to_numpy().tolist()
    sentences = [
        _size_sentence(groups.get_group((*build,)), **dict(zip(keys, build, strict=True)))
        for build in builds
    ]
    if expected.solved is not None:
        sentences.insert(0, f"epsilon {expected.solved} gives this error")
    sentences += noise_sentences(expected)
    if expected.series.slices > MOST_APART and "window" not in keys and not expected.values:
        sentences.append(
            f"a build of more than {MOST_APART} slices that names no method makes a cube; a plan "
            "that names none is of one"
        )
    if expected.values:
        sentences += [
            noise_sentence(len(expected.values), is_pure=True),
            "off: mean absolute error of means and sums, of queries centred on people, for values "
            "that rise from a quarter between their bounds in the west to three quarters in the "
            "east; near a bound the noise of a mean is up to 1.41 times that in the middle",
        ]
    step = expected.coordinate_resolution
    if step is not None:
        sentences.append(
            f"coordinates are rounded to steps of {step}: no cell is smaller than a step, and a "
            "query counts the records whose rounded coordinates lie in it"
        )
    if expected.min_cell not in (None, DEFAULT_MIN_CELL):
        sentences.append(
            f"no cell of a method that adapts to the data is below {expected.min_cell} m a side"
        )
    return sentences


def noise_sentences(expected: Plan | RegionPlan) -> list[str]:
    """What a build chooses by itself, and what a delta means."""
    delta = expected.series.delta
    if delta is None:
        return []
    chosen = [
        f"{NOISE_NAMES[law]} noise at epsilon {epsilon} with {method}"
        for (epsilon, method), law in expected.chosen.items()
    ]
    return [
        f"by itself a build chooses {', '.join(chosen)}",
        f"Gaussian noise spends delta {delta_text(delta)}: {failure_text(delta)}",
    ]


def _size_sentence(
    rows: pandas.DataFrame,
    epsilon: str,
    method: str,
    noise: str | None = None,
    window: int | None = None,
    category: float | None = None,
) -> str:
    """Smallest size from which on the mean error is good under every assumed density."""
    if noise is not None:
        method = f"{method} with {NOISE_NAMES[noise]} noise"
    good = (rows["mean_error_high"] <= GOOD_ERROR)[::-1].cummin()[::-1]
    start = f"at epsilon {epsilon}, {method}: queries centred on people"
    if window is not None:
        start += " in one slice" if window == 1 else f" in windows of {window:,} slices"
    if category is not None:
        start += f", of a label with {percent_text(category)} of the records,"
    if not good.any():
        last = rows.iloc[-1]
        return (
            f"{start} have a mean relative error above {percent_text(GOOD_ERROR)} even at the "
            f"largest size; at {size_text(last['size_km2'])} it is up to "
            f"{percent_text(last['mean_error_high'])}"
        )
    first = rows[good].iloc[0]
    return (
        f"{start} have a mean relative error of at most {percent_text(GOOD_ERROR)} if they cover "
        f"{size_text(first['size_km2'])} ({percent_text(first['size_share'])} of the area) or more"
    )


def size_text(km2: float) -> str:
    """Write an area with three digits; small areas in square metres.

    >>> size_text(605.2), size_text(0.00025), size_text(12_345.6)
    ('605 km2', '250 m2', '12,346 km2')
    """
    return f"{_three_digits(km2)} km2" if km2 >= 0.001 else f"{_three_digits(km2 * 1e6)} m2"


def _three_digits(value: float) -> str:
    """Three significant digits, or all digits before the decimal point."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def percent_text(share: float) -> str:
    """Write a share in percent with two digits; more just above the error that is called good.

    >>> percent_text(0.1234), percent_text(0.00034), percent_text(1.5), percent_text(369714453.7)
    ('12 %', '0.034 %', '150 %', 'above 1,000 %')
    >>> percent_text(0.0996), percent_text(0.1), percent_text(0.104), percent_text(0.10004)
    ('10 %', '10 %', '10.4 %', '10.004 %')
    """
    value = 100 * share
    if value > 1000:
        return relative_text(share).replace("%", " %")
    if value >= 100:
        return f"{value:,.0f} %"
    rounded = (float(f"{value:.{digits}g}") for digits in range(2, _MAX_DIGITS))
    limit = 100 * GOOD_ERROR
    return f"{next((r for r in rounded if (r <= limit) == (value <= limit)), value):g} %"


def range_columns(expected: Plan) -> dict[str, list[str]]:
    """Columns of a table of ranges; in headings, underscores separate words."""
    ranges = expected.ranges
    noise = ["noise"] if "noise" in ranges else []
    window = ["window"] if "window" in ranges else []
    category = ["category"] if "category" in ranges else []
    keys = ["epsilon", "method", *noise, *window, *category, "size_km2", "size_share"]
    on_data = ranges[ranges["centres"] == "on data"].set_index(keys)
    anywhere = ranges[ranges["centres"] == "anywhere"].set_index(keys).loc[on_data.index]
    index = on_data.index.to_frame()
    return {
        "epsilon": index["epsilon"].tolist(),
        "method": index["method"].tolist(),
        **{name: index[name].tolist() for name in noise},
        **{name: [f"{size:,}" for size in index[name]] for name in window},
        **{name: [percent_text(part) for part in index[name]] for name in category},
        "query_size": [size_text(size) for size in index["size_km2"]],
        "% of_area": [percent_text(share) for share in index["size_share"]],
        "mean_error": _range_texts(on_data, "mean_error"),
        "median_error": _range_texts(on_data, "median_error"),
        "90th_percentile": _range_texts(on_data, "error_90"),
        "error in_records": _range_texts(on_data, "mean_records_off", "{:,.0f}"),
        "mean error_at random": _range_texts(anywhere, "mean_error"),
        **{
            f"{kind} {each.name}_off": _range_texts(on_data, f"{kind}_{each.name}_off", "{:,.3g}")
            for each in expected.values
            for kind in ("mean", "sum")
        },
    }


def _range_texts(rows: pandas.DataFrame, name: str, form: str | None = None) -> list[str]:
    """Range of a measure in each row."""
    show = percent_text if form is None else form.format
    pairs = zip(map(show, rows[f"{name}_low"]), map(show, rows[f"{name}_high"]), strict=True)
    # Two numbers with a dash, or one if they are equal; the unit follows the last.
    return [low if low == high else f"{low.removesuffix(' %')} - {high}" for low, high in pairs]


def region_setting(expected: RegionPlan) -> str:
    """Describe the records and the unit of privacy of a plan of regions."""
    k, series = expected.max_contributions, expected.series
    if k == 1:
        return f"{expected.count:,.0f} records; each record is protected"
    each, limit = "", ""
    if series.slices > 1:
        each = f" in each of {series.slices:,} time slices"
        limit = f", at most {series.max_per_slice:,} in a slice"
    unit = f"users are protected (at most {k:,} records{limit})"
    return f"{expected.count:,.0f} records{each}; {unit}"


def region_sentences(expected: RegionPlan) -> list[str]:
    """Say what is solved, what sums over slices have, and which law a build chooses."""
    sentences = []
    if expected.solved is not None:
        sentences.append(f"epsilon {expected.solved} gives this error")
    if expected.values:
        sentences += [
            noise_sentence(len(expected.values), is_pure=True),
            "errors of means and sums are root mean squares over regions with a population; those "
            "of means hold near a bound, and are 0.71 times as large in the middle of the bounds",
        ]
    if "window" in expected.table:
        sentences.append(
            "the shares of slices differ from region to region, by up to a factor of about e"
        )
    elif expected.series.slices > 1:
        sentences.append(
            "errors are those of one slice; a sum over n slices has sqrt(n) times the error, and "
            "1 / sqrt(n) of the relative error"
        )
    return sentences + noise_sentences(expected)


def region_columns(expected: RegionPlan) -> dict[str, list[str]]:
    """Columns of a plan of regions, as text for people."""
    table = expected.table
    numbers = {"good": "good", "with_care": "use_with_care", "poor": "poor"}
    errors = {
        **{name: name for name in ("mean_error", "median_error")},
        "90th_percentile": "error_90",
    }
    return {
        "epsilon": table["epsilon"].tolist(),
        **{name: table[name].tolist() for name in ("noise",) if name in table},
        **{name: [f"{v:,}" for v in table[name]] for name in ("window",) if name in table},
        "level": table["level"].tolist(),
        "regions": [f"{value:,.0f}" for value in table["regions"]],
        "mean_population": [f"{value:,.0f}" for value in table["mean_population"]],
        "error": [f"{value:,.1f}" for value in table["error"]],
        **{name: [percent_text(v) for v in table[column]] for name, column in errors.items()},
        **{name: [f"{v:,.0f}" for v in table[column]] for name, column in numbers.items()},
        **{
            f"{kind} {each.name}_error": [f"{v:,.3g}" for v in table[f"{kind}_{each.name}_error"]]
            for each in expected.values
            for kind in ("mean", "sum")
        },
    }
