"""Draw the trees of the Seoul sample: `python docs/assets/pictures.py OUTPUT.png`.

It needs matplotlib, the extra `plot`. The noise is fresh in every run, so the picture changes a
little each time; the picture of the README is docs/assets/trees.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure
except ModuleNotFoundError:
    sys.exit("pictures.py needs matplotlib; install it with pip install '.[plot]'")

import psd
from psd.decompositions import Grid, Quadtree

HERE = Path(__file__).resolve().parent
DOMAIN = psd.Domain(bounds=(126.40, 37.00, 127.60, 38.00))
METHODS = (
    Grid(),
    Quadtree(height=6),
    psd.decompositions.method("kd-standard", {"height": "10"}),
    psd.decompositions.method("htree", {}),
    psd.decompositions.method("privtree", {}),
    psd.decompositions.method("cascade", {}),
)


def draw(axes: Axes, release: psd.Release) -> PolyCollection:
    """Draw the leaves of a release, shaded by the logarithm of their density."""
    cells = release.to_geopandas()
    west, south, east, north = cells.geometry.bounds.to_numpy().T
    corners = np.stack([[west, south], [east, south], [east, north], [west, north]])
    density = np.maximum(cells["density"].to_numpy(), 0.1)
    shown = PolyCollection(
        corners.transpose(2, 0, 1),
        array=density,
        norm=mpl.colors.LogNorm(0.1, 300),
        cmap="YlGnBu",
        edgecolors="#55555566",
        linewidths=0.25,
    )
    axes.add_collection(shown)
    axes.set(xlim=(126.40, 127.60), ylim=(37.00, 38.00), aspect=1.25, xticks=[], yticks=[])
    axes.set_title(f"{release.method}: {len(cells):,} cells", fontsize=10)
    return shown


def main() -> None:
    """Build the releases and draw them side by side."""
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/assets/pictures.py OUTPUT.png")
    figure = Figure(figsize=(10, 16.2), layout="constrained")
    figure.suptitle(
        "Cells of the Seoul sample: epsilon 1 per user, at most K = 4 records of each user"
    )
    panels = figure.subplots(3, 2)
    for axes, method in zip(panels.flat, METHODS, strict=True):
        release = psd.build(
            HERE.parents[1] / "data" / "seoul" / "visits.csv",
            domain=DOMAIN,
            epsilon=1,
            method=method,
            user="user_id",
            max_contributions=4,
        )
        shown = draw(axes, release)
    legend = figure.colorbar(
        shown, ax=panels, location="bottom", aspect=50, shrink=0.6, extend="both", pad=0.01
    )
    legend.set_label("estimated records per km²; lines: edges of the published cells")
    legend.ax.xaxis.set_major_formatter("{x:g}")
    output = Path(sys.argv[1])
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=80)


if __name__ == "__main__":
    main()
