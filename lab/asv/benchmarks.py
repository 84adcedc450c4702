"""Eight speeds for asv, which compares revisions of the project.

    pip install -e '.[lab]' && cd lab/asv
    asv run --show-stderr HEAD^!            # this revision
    asv continuous main HEAD                # this branch beside main

Processor seconds of calls of the public API, since revisions differ in the rest.
"""

import time
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

import psd

BOUNDS = (-8, 49, 3, 61)
BOX = [(-1.2, 53.2, -0.7, 53.7)]
warnings.simplefilter("ignore")  # a large epsilon, and users whose records are counted alone


class Speeds:
    """Builds of files, and questions to releases, in the folder that asv makes."""

    timer = time.process_time
    timeout = 600
    rows, boxes, hours = 10**6, 10**5, 24

    def setup_cache(self) -> None:
        """Write all files."""
        random = np.random.default_rng(1)
        towns = random.uniform((-7, 50), (2, 60), (400, 2))
        places = towns[random.integers(0, 400, self.rows)]
        lon, lat = (places + random.normal(0, (0.15, 0.1), places.shape)).round(6).T
        users = np.char.mod("u%07d", random.integers(0, self.rows // 10, self.rows))
        seconds = random.integers(0, 3600 * self.hours, self.rows)
        times = np.datetime64("2024-01-01", "s") + seconds
        table = pa.table({"user_id": users, "time": times, "lon": lon, "lat": lat})
        pc.write_csv(table, "rows.csv")
        pq.write_table(table, "rows.parquet")
        psd.build("rows.csv", bounds=BOUNDS, epsilon=5).save("large.psd.parquet")
        slices = f"2024-01-01T00..2024-01-01T{self.hours - 1:02d}"
        psd.build("rows.csv", bounds=BOUNDS, epsilon=1, time="time", slices=slices).save(
            "series.psd.parquet"
        )

    def setup(self) -> None:
        """Load the release, and work out what is worked out once."""
        self.release = psd.load("large.psd.parquet")
        corner = np.random.default_rng(2).uniform((-8, 49), (2, 60), (self.boxes, 2))
        self.drawn = np.hstack([corner, corner + 0.1])
        self.release.query(self.drawn[:1000]).table  # noqa: B018

    def time_build_csv(self) -> None:
        """The default method."""
        psd.build("rows.csv", bounds=BOUNDS, epsilon=1)

    def time_build_parquet(self) -> None:
        """The same rows."""
        psd.build("rows.parquet", bounds=BOUNDS, epsilon=1)

    def time_build_users(self) -> None:
        """Ten records of each user."""
        psd.build("rows.csv", bounds=BOUNDS, epsilon=1, user="user_id", max_contributions=10)

    def time_build_grid(self) -> None:
        """A grid of one size of cells."""
        psd.build("rows.csv", bounds=BOUNDS, epsilon=1, method="grid")

    def time_many_boxes(self) -> None:
        """Boxes of a release that has answered before."""
        self.release.query(self.drawn).table  # noqa: B018

    def time_first_box(self) -> None:
        """A box of a file."""
        psd.load("large.psd.parquet").query(BOX).table  # noqa: B018

    def time_series_box(self) -> None:
        """A box over all slices of a file."""
        psd.load("series.psd.parquet").query(BOX).table  # noqa: B018

    def time_export(self) -> None:
        """Cells as GeoPackage."""
        self.release.export("cells.gpkg", overwrite=True)
