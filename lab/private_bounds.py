"""Where private bounds come out, and how often they are lost in the empty part of the world.

    python lab/private_bounds.py london_stop_search.csv

A side is lost if it lies more than ten standard deviations of the rows from their median.
"""

import sys
from decimal import Decimal

import numpy as np
import pandas as pd

from psd.curator.private_bounds import PrivateBounds, find_bounds
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import tally_batches
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.epsilon import parse_epsilon

BOX = (-0.52, 51.28, 0.34, 51.7)
DRAWS = 200


def main():
    table = pd.read_csv(sys.argv[1])
    table = table[table.lon.between(*BOX[::2]) & table.lat.between(*BOX[1::2])]
    counts = tally_batches(read(table, Columns(), PrivateBounds().outer), PrivateBounds().outer)
    print(f"{len(table)} rows")
    print("| epsilon | share | beyond | median distance of a side, in ranks | sides lost |")
    print("|---|---|---|---|---|")
    for epsilon in ("1", "0.1"):
        for share in map(Decimal, ("0.05", "0.1", "0.2")):
            for beyond in (20, 50, 100):
                how = PrivateBounds(share=share, beyond=beyond)
                print(f"| {epsilon} | {share} | {beyond} | {line(table, counts, how, epsilon)} |")


def line(table, counts, how, epsilon):
    """Ranks that sides are off by, and the part of them that is lost."""
    found = np.array(
        [
            find_bounds(
                counts, how, how.allot(Budget(parse_epsilon(epsilon))), SecureSampler()
            ).bounds
            for _ in range(DRAWS)
        ]
    )
    meant, off = np.array([0, 0, 1, 1]) + np.array([1, 1, -1, -1]) / how.beyond, []
    for side, values in enumerate((table.lon, table.lat) * 2):
        ranks = np.searchsorted(np.sort(values), found[:, side])
        off.append(np.abs(ranks - meant[side] * len(values)))
    spread = np.tile(table[["lon", "lat"]].std().to_numpy(), 2)
    centre = np.tile(table[["lon", "lat"]].median().to_numpy(), 2)
    lost = np.abs(found - centre) > 10 * spread
    return f"{np.median(off):,.0f} | {lost.mean():.1%}"


if __name__ == "__main__":
    main()
