"""Make `visits.csv`, a synthetic sample of visits in the capital region of Korea.

The rows follow from `SEED` alone: run `python data/seoul/generate.py` to make them again.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
import wards
from city import Bools, City, Floats, Ints, to_lonlat, turn
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

SEED = 20260301
USERS = 20_000
VENUES = 9_000
COMPLEXES = 900  # groups of apartment blocks
FAVOURITES = 6
FIRST_DAY, DAYS = "2026-03-01", 31
OUTPUT = Path(__file__).with_name("visits.csv")

HOME, WORK, OUT, WAY = range(4)
WEEKDAY_SHARES = [0.33, 0.28, 0.18, 0.21]
WEEKEND_SHARES = [0.42, 0.05, 0.36, 0.17]
HOURS = np.array([  # how likely each hour is for a visit of each kind
    [4, 2, 1, 1, 1, 3, 8, 9, 5, 3, 2, 2, 3, 2, 2, 3, 4, 6, 10, 13, 14, 13, 11, 7],
    [0, 0, 0, 0, 0, 1, 2, 6, 14, 16, 14, 12, 6, 12, 14, 13, 12, 9, 5, 3, 2, 1, 1, 0],
    [2, 1, 0, 0, 0, 0, 1, 2, 3, 5, 7, 10, 14, 11, 8, 8, 8, 10, 14, 15, 12, 8, 5, 3],
    [1, 0, 0, 0, 1, 4, 9, 16, 14, 7, 4, 4, 5, 5, 4, 5, 7, 12, 16, 12, 7, 5, 4, 2],
], dtype=float)  # fmt: skip


def pick(rng: np.random.Generator, weights: Floats) -> Ints:
    """Draw one column per row, with the weights of that row."""
    upto = weights.cumsum(axis=1)
    return (rng.random(len(weights))[:, None] * upto[:, -1:] >= upto).sum(axis=1)


def complexes(rng: np.random.Generator, city: City) -> tuple[Floats, Ints]:
    """Site the apartment complexes, and tell the centre of each."""
    share = city.centres.people / city.centres.people.sum()
    centre = np.sort(rng.choice(len(share), COMPLEXES, p=share))
    return city.scatter(rng, centre, 1.0), centre


def apartments(rng: np.random.Generator, city: City, site: Floats, centre: Ints) -> Floats:
    """Put each home in one of the five by four parallel slabs of its complex."""
    slab = np.column_stack((rng.integers(-2, 3, len(site)), rng.integers(-2, 2, len(site))))
    offset = slab * [0.075, 0.05] + rng.normal(0, 1, site.shape) * [0.015, 0.003]
    return site + turn(offset, city.centres.angle[centre])


def homes(rng: np.random.Generator, city: City, centre: Ints) -> Floats:
    """House everybody: in apartments, along the streets, along the arterials, in the country."""
    xy = city.scatter(rng, centre, 1.0)
    sites, owner = complexes(rng, city)
    nearby = np.searchsorted(owner, centre) + rng.integers(0, 6, len(centre))
    nearby = np.minimum(nearby, COMPLEXES - 1)
    kind = rng.choice(4, len(centre), p=[0.38, 0.43, 0.16, 0.03])
    kind = np.where((kind == 0) & (owner[nearby] != centre), 1, kind)
    choices = [
        apartments(rng, city, sites[nearby], centre),
        city.to_street(rng, xy, 0.5),
        city.to_road(rng, xy),
        city.countryside(rng, len(centre)),
    ]
    return np.choose(kind[:, None], choices)


def shops_and_offices(rng: np.random.Generator, city: City, centre: Ints) -> Floats:
    """Put most places of business in the blocks of a centre and the others along its roads."""
    core, around = city.scatter(rng, centre, 0.3), city.scatter(rng, centre, 0.9)
    kind = rng.choice(3, len(centre), p=[0.55, 0.25, 0.20])
    choices = [
        city.to_street(rng, core, 0.4),
        city.to_street(rng, around, 0.8),
        city.to_road(rng, around),
    ]
    return np.choose(kind[:, None], choices)


@dataclass(frozen=True)
class Venues:
    """Shops, offices and schools, grouped by centre, the best known of a centre first."""

    xy: Floats
    first: Ints
    count: Ints

    @classmethod
    def draw(cls, rng: np.random.Generator, city: City) -> Self:
        """Share the venues among the centres by their jobs, at least five to each."""
        jobs = city.centres.jobs
        count = 5 + rng.multinomial(VENUES, jobs / jobs.sum())
        centre = np.repeat(np.arange(len(jobs)), count)
        return cls(shops_and_offices(rng, city, centre), count.cumsum() - count, count)

    def choose(self, rng: np.random.Generator, centre: Ints, skew: float) -> Floats:
        """Choose a venue of each centre; a larger skew prefers the well-known ones."""
        rank = self.count[centre] * rng.random(centre.shape) ** skew
        return self.xy[self.first[centre] + rank.astype(int)]


@dataclass(frozen=True)
class People:
    """Where each user lives, works and goes; who does not work has only somewhere to go."""

    home: Floats
    work: Floats
    favourites: Floats
    works: Bools

    @classmethod
    def draw(cls, rng: np.random.Generator, city: City) -> Self:
        """Settle the users; jobs and outings are mostly near."""
        centres, venues = city.centres, Venues.draw(rng, city)
        lives = rng.choice(len(centres.xy), USERS, p=centres.people / centres.people.sum())
        pull = centres.jobs * np.exp(-cdist(centres.xy, centres.xy) / 9.0)
        job, trip = pick(rng, pull[lives]), pick(rng, pull[lives])
        near = rng.choice(3, (USERS, FAVOURITES), p=[0.55, 0.25, 0.20])
        goes = np.take_along_axis(np.column_stack((lives, job, trip)), near, axis=1)
        works = rng.random(USERS) < 0.75
        return cls(
            homes(rng, city, lives),
            venues.choose(rng, job, 1.3),
            venues.choose(rng, goes, 2.5),
            works,
        )


def visits_per_user(rng: np.random.Generator) -> Ints:
    """Draw how often each user is seen: three times for most, over a hundred for a few."""
    return np.clip(np.round(rng.lognormal(np.log(3), 1.01, USERS)), 1, 200).astype(int)


def when(rng: np.random.Generator, size: int) -> tuple[pd.DatetimeIndex, Ints]:
    """Draw the moment of each visit and its kind, by the day of the week."""
    days = pd.date_range(FIRST_DAY, periods=DAYS)
    weekend = days.day_of_week.to_numpy() >= 5
    weight = np.where(weekend, 0.85, 1.0)
    day = rng.choice(DAYS, size, p=weight / weight.sum())
    kind = pick(rng, np.where(weekend[day][:, None], WEEKEND_SHARES, WEEKDAY_SHARES))
    seconds = 3600 * pick(rng, HOURS[kind]) + rng.integers(0, 3600, size)
    return days[day] + pd.to_timedelta(seconds, unit="s"), kind


def on_the_way(rng: np.random.Generator, city: City, start: Floats, end: Floats) -> Floats:
    """Put points between the ends of each trip, on an arterial road or a main street."""
    xy = start + (end - start) * rng.random((len(start), 1)) + rng.normal(0, 0.5, start.shape)
    road, street = city.to_road(rng, xy), city.to_street(rng, xy, 1.0)
    urban = city.terrain.open_land(street) & (KDTree(city.centres.xy).query(street)[0] < 1.8)
    arterial = ~urban | (rng.random(len(xy)) < 0.6)
    return np.where(arterial[:, None], road, street)


def where(rng: np.random.Generator, city: City, user: Ints, kind: Ints) -> Floats:
    """Put each visit at its user's home, work or favourite place, or on the way between them."""
    people = People.draw(rng, city)
    kind = np.where((kind == WORK) & ~people.works[user], OUT, kind)
    liked = pick(rng, np.tile(1 / np.arange(1.0, FAVOURITES + 1), (len(user), 1)))
    home, work, out = people.home[user], people.work[user], people.favourites[user, liked]
    goal = np.where(people.works[user, None], work, out)
    xy = np.choose(kind[:, None], [home, work, out, on_the_way(rng, city, home, goal)])
    return xy + rng.normal(0, 0.006, xy.shape)  # as far off as a telephone places itself


def visits(rng: np.random.Generator) -> pd.DataFrame:
    """Make the whole table, in the order of time."""
    city = City.draw(rng)
    user = np.repeat(np.arange(USERS), visits_per_user(rng))
    time, kind = when(rng, len(user))
    lonlat = to_lonlat(where(rng, city, user, kind))
    names = np.array([f"u{number:05d}" for number in rng.permutation(USERS)])
    table = {"user_id": names[user], "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S+09:00")}
    frame = pd.DataFrame(table | {"lon": lonlat[:, 0], "lat": lonlat[:, 1]})
    return frame.sort_values(["timestamp", "user_id"], kind="stable")


def main() -> None:
    """Write the file in one step, so that nobody ever reads half of it."""
    frame = visits(np.random.default_rng(SEED))
    draft = OUTPUT.with_suffix(".csv.part")
    frame.to_csv(draft, index=False, float_format="%.6f", lineterminator="\n")
    os.replace(draft, OUTPUT)
    wards.main()
    print(f"{OUTPUT.name}: {len(frame):,} visits of {frame['user_id'].nunique():,} users")


if __name__ == "__main__":
    main()
