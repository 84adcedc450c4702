"""Draw the tree of a release over the map: `python docs/assets/regions_picture.py RELEASE FILE`.

Two districts, their wards, and the cells of the cascade, which are clipped to their ward. The
release is that of `docs/guide/regions.md`; matplotlib is needed, the extra `plot`.
"""

from __future__ import annotations

import sys

import geopandas as gpd
import matplotlib as mpl
import numpy as np
import shapely

import psd

WINDOW = (126.92, 37.47, 127.095, 37.615)


def main() -> None:
    """Draw the picture."""
    if len(sys.argv) != 3:
        sys.exit("usage: python docs/assets/regions_picture.py RELEASE FILE")
    mpl.use("agg")
    from matplotlib import pyplot as plt

    release = psd.load(sys.argv[1])
    if not release.levels:
        sys.exit("regions_picture.py draws a release with regions")
    tree, domain = release.tree, release.domain
    wards, districts = (release.to_geopandas(level=name) for name in ("ward", "district"))
    wards, districts = (t[t["id"] != "elsewhere"] for t in (wards, districts))
    leaf = np.flatnonzero(tree.is_leaf & np.isin(tree.region, wards.index))
    low, high = np.array(domain.bounds[:2] * 2), np.array(domain.bounds[2:] * 2)
    sides = low + tree.boxes[leaf] * (high - low) / np.array(domain.lattice * 2)
    inside = shapely.box(*sides.T)
    cells = shapely.intersection(inside, wards.geometry.loc[tree.region[leaf]].to_numpy())
    figure, axes = plt.subplots(figsize=(7, 7))
    gpd.GeoSeries(cells).boundary.plot(ax=axes, color="#999", linewidth=0.4)
    wards.boundary.plot(ax=axes, color="#1b6ca8", linewidth=1.2)
    districts.boundary.plot(ax=axes, color="#b03a2e", linewidth=2.4)
    for name, point in zip(wards["id"], wards.representative_point(), strict=True):
        axes.annotate(
            name, (point.x, point.y), ha="center", fontsize=7, clip_on=True, annotation_clip=True
        )
    west, south, east, north = WINDOW
    axes.set(xlim=(west, east), ylim=(south, north), aspect=1.26)
    axes.set_axis_off()
    figure.savefig(sys.argv[2], dpi=80, bbox_inches="tight")


if __name__ == "__main__":
    main()
