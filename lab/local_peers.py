"""Peers of local campaigns: a uniform grid with its guideline, and HDG.

Support counts are drawn by the exact law of the protocol with the least variance.

References
----------
Yang, Wang, Li, Cheng, Su. "Answering Multi-Dimensional Range Queries under Local Differential
Privacy." VLDB 2020 (HDG). Qardaji, Yang, Li. "Differentially Private Grids for Geospatial Data."
ICDE 2013 (the guideline of a grid: a mean cell has two standard deviations of its noise).
"""

from dataclasses import replace

import numpy as np

from psd.api.release import Release
from psd.apps.local.campaign_design import (
    campaign_content,
    grid_cells,
    grid_level,
    open_group,
    sigma,
)
from psd.apps.local.campaigns import campaign_of
from psd.apps.local.device import SHARES
from psd.apps.local.protocols import best_protocol
from psd.apps.planning.local_plan import draw_campaign
from psd.privacy.loss import parse_epsilon
from psd.release.post_processing import PostProcessing

# Constants of the guideline of HDG.
ALPHA_1, ALPHA_2 = 0.7, 0.03
ROUNDS_OF_CONSISTENCY, UPDATES = 3, 100


def noisy_shares(true, epsilon, random):
    """Estimated shares of cells, and the variance of a rare one."""
    law = best_protocol(parse_epsilon(epsilon), max(true.size, 2))
    p, q, n = float(law.p), float(law.q), int(true.sum())
    support = random.binomial(true, p) + random.binomial(n - true, q)
    return (support / n - q) / (p - q), float(law.variance(0)) / n


def to_distribution(shares):
    """Shares that are not negative and sum to 1: the same number is added to all that stay."""
    stays = np.ones(shares.shape, bool)
    while True:
        moved = np.where(stays, shares + (1 - shares[stays].sum()) / stays.sum(), 0.0)
        if (moved >= 0).all():
            return moved
        stays &= moved > 0


def counts_in_grid(u, weight, columns, rows):
    """Devices in each cell of a grid of the unit square, shape (rows, columns)."""
    column = np.minimum((u[:, 0] * columns).astype(int), columns - 1)
    row = np.minimum((u[:, 1] * rows).astype(int), rows - 1)
    flat = np.bincount(row * columns + column, weights=weight, minlength=rows * columns)
    return flat.reshape(rows, columns).astype(np.int64)


def uniform_grid(box, x, y, weight, epsilon, random):
    """Release of a square grid whose mean cell has two standard deviations, with even cells."""
    nano = parse_epsilon(epsilon)
    level = grid_level(2.0, sigma(nano, weight.sum()), 1, 6)
    group = open_group(SHARES, grid_cells(level), nano, None)
    content = campaign_content(box, "EPSG:4326", "", nano, int(weight.sum()), [group])
    release = draw_campaign(campaign_of(content), x, y, weight, random)
    return Release(replace(release.index.record, post_processing=PostProcessing(density="uniform")))


def hdg(u, weight, epsilon, random):
    """Mass on the finest grid of HDG: groups for columns, rows and cells, made consistent."""
    n, growth = int(weight.sum()), np.exp(float(epsilon))
    fine = (n * (growth - 1) ** 2 * ALPHA_1**2 / (6 * growth)) ** (1 / 3)
    coarse = np.sqrt(2 * ALPHA_2 * (growth - 1) * np.sqrt(n / (3 * growth)))
    coarse_level = max(1, power_of_two(coarse))
    fine_level = max(power_of_two(fine), coarse_level)
    lines, cells = 2**fine_level, 2**coarse_level
    groups = random.multinomial(weight, [1 / 3] * 3)
    x, x_noise = noisy_shares(counts_in_grid(u, groups[:, 0], lines, 1).ravel(), epsilon, random)
    y, y_noise = noisy_shares(counts_in_grid(u, groups[:, 1], 1, lines).ravel(), epsilon, random)
    z, z_noise = noisy_shares(counts_in_grid(u, groups[:, 2], cells, cells), epsilon, random)
    x, y, z = map(to_distribution, (x, y, z))
    ratio = lines // cells
    for _ in range(ROUNDS_OF_CONSISTENCY):
        for axis, (line, noise) in enumerate(((x, x_noise), (y, y_noise))):
            of_line, of_cells = line.reshape(cells, ratio).sum(axis=1), z.sum(axis=axis)
            trust = 1 / (ratio * noise) / (1 / (ratio * noise) + 1 / (cells * z_noise))
            target = trust * of_line + (1 - trust) * of_cells
            line += np.repeat((target - of_line) / ratio, ratio)
            change = (target - of_cells) / cells
            z += change[None, :] if axis == 0 else change[:, None]
        x, y, z = map(to_distribution, (x, y, z))
    return fit_marginals(x, y, z, ratio, 1 / n)


def fit_marginals(x, y, z, ratio, precision):
    """Multiplicative updates of a uniform mass until it has all marginals."""
    mass = np.full((len(y), len(x)), 1 / (len(x) * len(y)))
    cells = len(z)
    for _ in range(UPDATES):
        before = mass.copy()
        mass *= quotient(x, mass.sum(axis=0))[None, :]
        mass *= quotient(y, mass.sum(axis=1))[:, None]
        factor = quotient(z, mass.reshape(cells, ratio, cells, ratio).sum(axis=(1, 3)))
        mass *= np.repeat(np.repeat(factor, ratio, axis=0), ratio, axis=1)
        if np.abs(mass - before).sum() < precision:
            break
    return mass


def quotient(wanted_mass, present):
    return np.divide(wanted_mass, present, out=np.zeros_like(wanted_mass), where=present > 0)


def power_of_two(number):
    return int(np.clip(round(np.log2(max(number, 1))), 0, 10))


def answer(mass, boxes):
    """Share in boxes of the unit square, with an even density inside cells."""
    rows, columns = mass.shape
    below = np.zeros((rows + 1, columns + 1))
    below[1:, 1:] = mass.cumsum(axis=0).cumsum(axis=1)

    def up_to(x, y):
        x, y = np.clip(x, 0, 1) * columns, np.clip(y, 0, 1) * rows
        i, j = np.minimum(y.astype(int), rows - 1), np.minimum(x.astype(int), columns - 1)
        a, b = y - i, x - j
        lower = below[i, j] * (1 - b) + below[i, j + 1] * b
        return lower * (1 - a) + (below[i + 1, j] * (1 - b) + below[i + 1, j + 1] * b) * a

    west, south, east, north = boxes.T
    return up_to(east, north) - up_to(west, north) - up_to(east, south) + up_to(west, south)
