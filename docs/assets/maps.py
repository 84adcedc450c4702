"""Draw the maps of the guide: `python docs/assets/maps.py RELEASE FOLDER`.

It writes `plot-density.png` and `plot-quality.png`, as `Release.plot` draws them, and needs
matplotlib, the extra `plot`. The pictures of QGIS beside them are of `qgis_picture.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import geopandas as gpd
import matplotlib as mpl

import psd

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Draw both maps."""
    if len(sys.argv) != 3:
        sys.exit("usage: python docs/assets/maps.py RELEASE FOLDER")
    mpl.use("agg")
    release, folder = psd.load(sys.argv[1]), Path(sys.argv[2])
    if release.slices is not None:
        sys.exit("maps.py draws a single release, not a series")
    districts = gpd.read_file(HERE.parents[1] / "data" / "seoul" / "districts.geojson")
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("density", "quality"):
        axes = release.plot(kind, outline=districts)  # type: ignore[arg-type]
        axes.figure.savefig(folder / f"plot-{kind}.png", dpi=80)


if __name__ == "__main__":
    main()
