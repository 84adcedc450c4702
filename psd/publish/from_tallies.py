"""From part of the rows to a tally that is kept, and from these to a release. Private side.

Building from the tallies of parts gives what building from their rows at once would give, so a
data set can be counted piece by piece, where and when its pieces are there.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd.api.release import Release
from psd.api.series import SeriesRelease
from psd.decompositions import Decomposition
from psd.decompositions import method as method_by_name
from psd.errors import ParameterError
from psd.ingest.hash_key import key_fingerprint
from psd.ingest.memory_limit import memory_for_rows, parse_memory
from psd.ingest.partial_tally import EMPTY, CountingRules, PartialTally, PartOrigin, merge
from psd.ingest.sources import Columns, files_of, read
from psd.ingest.sources._paths import STDIN, is_path, unchanged
from psd.ingest.tally import Tally
from psd.ingest.tally_builder import TallyBuilder
from psd.ingest.tally_file import file_digest
from psd.ingest.user_rows import UserRows, keep_user_rows
from psd.ledger.account import Account
from psd.ledger.state import ChargeRequest
from psd.privacy.budget import Budget, spent_before_counting
from psd.privacy.epsilon import epsilon_text, parse_epsilon
from psd.privacy.statements import method_parameters
from psd.privacy.unit import ContributionScope, PrivacyUnit
from psd.publish.build import DEFAULT_METHOD, release_of, step_of
from psd.publish.charging import PendingCharge
from psd.publish.insecure import refuse_paid
from psd.publish.public_inputs import known
from psd.publish.series import counted_unit, series_of

if TYPE_CHECKING:
    from psd.mechanisms.base import Sampler
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = ["TallyRequest", "build_tally", "kept_for", "origin_of", "tally_rows"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TallyRequest:
    """How the rows of a part are counted; the same for all parts of a data set.

    Parameters
    ----------
    domain : Domain
        Public.
    unit : PrivacyUnit
        Of the promise, with its bound for this part. Public.
    columns : Columns
        What to read. Public.
    slices : TimeSlices, optional
        Time slices to count apart. Public.
    bound : {"series", "slice"}
        Whether the bound of a user holds for all slices together, or for each. Public.
    step : tuple of int
        Lattice columns and rows that are counted together. Public.
    key : bytes, optional
        Of the hash that chooses rows; random where not given. Independent of the data.
    carry : bool
        Whether the rows that each user keeps are carried, so that parts of one user join.

    Raises
    ------
    ParameterError
        If these do not go together.
    """

    domain: Domain
    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    columns: Columns = field(default_factory=Columns)
    slices: TimeSlices | None = None
    bound: ContributionScope = "series"
    step: tuple[int, int] = (1, 1)
    key: bytes | None = None
    carry: bool = False

    def __repr__(self) -> str:
        return "<Recipe: private key>"

    def __post_init__(self) -> None:
        """Check that the fields go together."""
        counted_unit(self.unit, self.bound)
        if self.unit.has_user != (self.columns.user is not None):
            raise ParameterError("a column of users goes with a unit that has users, and only then")
        timed = self.columns.time is not None
        if (self.slices is not None or self.unit.kind == "user-day") and not timed:
            raise ParameterError("time slices and days of users need --time, the column of moments")
        if self.slices is not None and self.slices.time_zone != self.columns.time_zone:
            raise ParameterError("the slices are of another time zone than the columns")
        if not self.carry:
            return
        if not self.unit.has_user or self.key is None:
            raise ParameterError(
                "carried rows are of users, so they need --user, and the same --key for all parts"
            )
        if self.unit.weight or self.step != (1, 1):
            raise ParameterError("carried rows are whole rows of the full lattice")

    @property
    def terms(self) -> CountingRules:
        """What tallies have to have in common with its tallies."""
        return CountingRules(
            domain=self.domain,
            step=self.step,
            unit=self.unit,
            slices=self.slices,
            bound=self.bound,
            time_zone=None if self.columns.time is None else self.columns.time_zone,
        )


def tally_rows(
    data: Any,
    recipe: TallyRequest,
    *,
    part: str | None = None,
    memory: str | int | None = None,
    private_report: Callable[[dict[str, int]], None] = lambda report: None,
) -> PartialTally:
    """Count one part of a data set.

    Guarantees
    ----------
    - With a bound, at most k rows of each user are in it, by the user's own rows and the key.
    - It names its files by digests of their content, so that no file is counted twice when
      tallies are merged.

    Parameters
    ----------
    data : object or list of objects
        Points, as in `psd.build`. Private.
    recipe : TallyRequest
        How.
    part : str, optional
        Name of the part, needed where it is no file; the same rows have the same name.
    memory : str or int, optional
        Cap on the memory that reading takes, such as ``"2GB"``; see `psd.ingest.memory_limit`.
    private_report : callable
        Given the private counts of rows read, outside and dropped.

    Returns
    -------
    PartialTally

    Raises
    ------
    ParameterError
        If what is no file has no name.
    InputDataError
        If the input cannot be read.
    DomainError
        If the points do not lie where the domain says.
    """
    items = list(data) if isinstance(data, list | tuple) else [data]
    paths = _files(items, part)
    key = recipe.key or secrets.token_bytes(32)
    left = memory_for_rows(None if memory is None else parse_memory(memory))
    columns = replace(recipe.columns, memory=left and left // 3)
    with unchanged(paths):
        batches = read(data, columns, recipe.domain)
        builder = _taken_in(batches, recipe, left and left * 2 // 3)
        counts: Tally | UserRows
        if recipe.carry:
            how = (recipe.domain, recipe.slices, recipe.unit, recipe.bound)
            counts = keep_user_rows(builder.user_partitions(), *how, key)
        else:
            counts = builder.build(key)
            private_report(counts.report)
        names = _names(paths, part) + (() if len(counts.counts) else (EMPTY,))
    return PartialTally(
        terms=recipe.terms, origins=(origin_of(replace(recipe, key=key), names),), counts=counts
    )


def _taken_in(batches: Iterator[Any], recipe: TallyRequest, memory: int | None) -> TallyBuilder:
    """Read the rows of a part."""
    builder = TallyBuilder(
        recipe.domain,
        unit=counted_unit(recipe.unit, recipe.bound),
        step=recipe.step,
        slices=recipe.slices,
        memory=memory,
    )
    for batch in batches:
        builder.add_batch(batch)
    return builder


def origin_of(recipe: TallyRequest, names: Sequence[str]) -> PartOrigin:
    """Part of a recipe and of the names of what was read."""
    has_user = recipe.unit.has_user
    return PartOrigin(
        run=secrets.token_hex(16),
        names=tuple(names),
        contributions=recipe.unit.max_contributions,
        key=key_fingerprint(recipe.key) if has_user and recipe.key is not None else None,
    )


def _files(items: Sequence[Any], part: str | None) -> list[Path]:
    """Files of an input; what is none needs a name."""
    paths = [path for path in files_of(items) if str(path) != STDIN]
    if part is None and not all(is_path(item) and str(item) != STDIN for item in items):
        raise ParameterError(
            "the input is no file whose content could tell it from others; name it (--part NAME), "
            "the same rows by the same name"
        )
    if part is not None and not (0 < len(part) <= 100 and part.isprintable()):
        raise ParameterError("part is no short name of printable characters")
    return paths


def _names(paths: Sequence[Path], part: str | None) -> tuple[str, ...]:
    """Names of a part: what it is called, and digests of its files."""
    called = () if part is None else (f"part {part}",)
    return (*called, *sorted(f"blake2b {file_digest(path)}" for path in paths))


def build_tally(
    tallies: PartialTally | Sequence[PartialTally],
    *,
    epsilon: str | float | Decimal,
    method: Decomposition | str = DEFAULT_METHOD,
    estimate: str | None = None,
    density: str | None = None,
    covariate: Any = None,
    sampler: Sampler | None = None,
    progress: Callable[[str], None] = lambda stage: None,
    account: Account | None = None,
) -> Release | SeriesRelease:
    """Build the release of rows that were tallied before, in one part or in several.

    Guarantees
    ----------
    - It is the release that the rows themselves would give, wherever
    `psd.ingest.partial_tally.merge` gives the
      tally of all rows together.
    - Epsilon-differentially private for adding or removing one unit in all parts together; with
      bounds that were added up, for at most their sum of rows of each user. What a build has
      spent on a bound or bounds that it found is part of it.
    - Of several releases of the same tallies the epsilons add up.

    Parameters
    ----------
    tallies : PartialTally or sequence of PartialTally
        Of `tally_rows` or `psd.ingest.tally_file.read_tally`. Private.
    epsilon, method, estimate, density, covariate, sampler, progress, account
        As in `psd.build`.

    Returns
    -------
    Release or SeriesRelease
        A series where the tallies were counted by time slices.

    Raises
    ------
    ParameterError
        If a public parameter is wrong, the method divides cells that were counted together, or
        epsilon is no more than what was paid for how they were counted.
    InputDataError
        If the tallies cannot be merged.
    """
    kept = tallies if isinstance(tallies, PartialTally) else merge(list(tallies))
    terms, unit = kept.terms, kept.unit
    method = method_by_name(method) if isinstance(method, str) else method
    given = known(method, terms.domain, estimate=estimate, density=density, covariate=covariate)
    method_parameters(
        method
    )  # a method with a field that nobody declared public is not shown the data
    check_step(method, terms)
    nano = parse_epsilon(epsilon)
    how: dict[str, Any] = {"method": method, "view": given.view, "covariate": given.covariate}
    refuse_paid(sampler, account)
    # Tallies do not say which columns placed their rows, so the claim is on all places.
    claim = ChargeRequest(epsilon=nano, unit=unit, what=f"build {method.name}")
    _check_counting(kept.paid, nano)
    budget = Budget(nano, on_first_spend=PendingCharge(account, claim).charge)
    if kept.paid:
        budget.withhold("counting", kept.paid)
    how |= {"budget": budget, "unit": unit, "sampler": sampler}
    budget.open()
    progress("counting with noise")
    if terms.slices is not None:
        return series_of(kept.tally, terms.domain, terms.slices, bound=terms.bound, **how)
    return release_of(kept.tally, terms.domain, **how)


def _check_counting(counting: int, epsilon: int) -> None:
    """Refuse an epsilon of which counting the tallies left nothing."""
    if counting >= epsilon:
        raise ParameterError(
            f"epsilon {epsilon_text(epsilon)} is not above {epsilon_text(counting)}, which finding "
            "the bounds or the bound per user of this tally took; give more, or count rows by "
            "public ones"
        )


def check_step(method: Decomposition, terms: CountingRules) -> None:
    """Refuse a method that divides lattice cells which a tally counted together.

    Raises
    ------
    ParameterError
        If it does, or might.
    """
    own = step_of(method, terms.domain.lattice)
    if any(width % counted for width, counted in zip(own, terms.step, strict=True)):
        raise ParameterError(
            f"the tally counted {terms.step[0]} x {terms.step[1]} lattice cells together, and "
            f"{method.name} with these parameters divides finer; count it anew without --method"
        )


def kept_for(
    counts: Tally,
    made: Release | SeriesRelease,
    data: Sequence[Any],
    *,
    time_zone: str | None,
    release: Path,
) -> PartialTally:
    """Tally of a build, as it is kept for evaluations of its release.

    Parameters
    ----------
    counts : Tally
        What the build counted. Private.
    made : Release or SeriesRelease
        What it built.
    data : sequence
        What it read.
    time_zone : str, optional
        Zone of the rows' times, where they were read.
    release : Path
        Saved release.
    """
    slices = made.slices if isinstance(made, SeriesRelease) else None
    unit = made.unit
    terms = CountingRules(
        domain=made.domain,
        unit=unit,
        slices=slices,
        bound=made.scope if isinstance(made, SeriesRelease) else "series",
        time_zone=time_zone,
        area=_area(made),
    )
    paths = [path for path in files_of(data) if str(path) != STDIN]
    whole = all(is_path(item) and str(item) != STDIN for item in data)
    origin = PartOrigin(
        run=secrets.token_hex(16),
        names=_names(paths, None) if whole else (),
        contributions=made.unit.max_contributions,
        paid=_spent_before_counting(made),
    )
    return PartialTally(terms=terms, origins=(origin,), counts=counts, release=file_digest(release))


def _spent_before_counting(made: Release | SeriesRelease) -> int:
    """Nano-epsilon that a build has spent before it counted, as its release states."""
    first = made.releases[0] if isinstance(made, SeriesRelease) else made
    return spent_before_counting(first.parameters)


def _area(made: Release | SeriesRelease) -> str | None:
    """Digest of the boundary of a build, outside of which it kept no row."""
    first = made.releases[0] if isinstance(made, SeriesRelease) else made
    if not first.boundary or first.covariate is None:
        return None
    return blake2b(first.covariate.raster.tobytes(), digest_size=32).hexdigest()
