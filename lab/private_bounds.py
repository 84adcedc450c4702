"""Where private bounds come out, and how often they are lost in the empty part of the world.

    python lab/private_bounds.py [--draws 200] [--data FOLDER] [--sets A,B] [-o table.md]

A side is lost if it lies more than ten standard deviations of the rows from their median.
"""

from decimal import Decimal

import numpy as np
import pandas as pd
from common import study, write_table
from data_sets import add_sets, chosen_sets

from psd.curator.private_bounds import PrivateBounds, find_bounds
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import tally_batches
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.loss import parse_epsilon


def rows(one, draws):
    """One row for each epsilon, share and part beyond."""
    table, outer = pd.DataFrame(one.inside, columns=["lon", "lat"]), PrivateBounds().outer
    counts = tally_batches(read(table, Columns(), outer), outer)
    for epsilon in ("1", "0.1"):
        for share in map(Decimal, ("0.05", "0.1", "0.2")):
            for beyond in (20, 50, 100):
                how = PrivateBounds(share=share, beyond=beyond)
                cells = line(table, counts, how, epsilon, draws)
                yield (one.name, f"{len(table):,}", epsilon, share, beyond, *cells)


def line(table, counts, how, epsilon, draws):
    """Ranks that sides are off by, and the part of them that is lost."""
    found = np.array(
        [
            find_bounds(
                counts, how, how.allot(Budget(parse_epsilon(epsilon))), SecureSampler()
            ).bounds
            for _ in range(draws)
        ]
    )
    meant, off = np.array([0, 0, 1, 1]) + np.array([1, 1, -1, -1]) / how.beyond, []
    for side, values in enumerate((table.lon, table.lat) * 2):
        ranks = np.searchsorted(np.sort(values), found[:, side])
        off.append(np.abs(ranks - meant[side] * len(values)))
    spread = np.tile(table[["lon", "lat"]].std().to_numpy(), 2)
    centre = np.tile(table[["lon", "lat"]].median().to_numpy(), 2)
    lost = np.abs(found - centre) > 10 * spread
    return f"{np.median(off):,.0f}", f"{lost.mean():.1%}"


def main():
    parser = study(__doc__)
    add_sets(parser, "seoul,city-streets")
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    header = ("data", "rows", "epsilon", "share", "beyond", "median distance of a side, in ranks")
    every = (row for one in chosen_sets(options) for row in rows(one, options.draws))
    write_table(options.output, (*header, "sides lost"), every)


if __name__ == "__main__":
    main()
