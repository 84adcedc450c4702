"""The public parameters of a build as one frozen value: `BuildTerms`, or a complete `BuildRequest`.

Both hold no path of an input, no key and no count, so they may be printed, hashed and published.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

from psd._util.instances import check_choice, check_instance, type_text
from psd.accounting import rho_of
from psd.curator.private_bounds import ContributionChoice, PrivateBounds
from psd.decompositions import Decomposition, Regions, as_method
from psd.decompositions.cube import Cube
from psd.errors import ParameterError
from psd.ingest.points import column_projection
from psd.ingest.sources import Columns
from psd.privacy.budget import method_parameters
from psd.privacy.loss import Loss, delta_text, epsilon_text, parse_delta, parse_epsilon
from psd.privacy.unit import (
    MAX_CONTRIBUTIONS,
    ContributionScope,
    PrivacyUnit,
    counted_unit,
)
from psd.privacy.values import Value, check_values
from psd.publish.noise_choice import Law, NoisePlan, chosen_law
from psd.publish.public_inputs import (
    BoundaryFile,
    CovariateFile,
    default_density,
    resolve_post_processing,
)
from psd.regions.files import CellRegions, RegionFiles
from psd.regions.hierarchy import RegionHierarchy
from psd.release.about import About, about_from_mapping
from psd.release.post_processing import PostProcessing
from psd.space.axes import REGION
from psd.space.boundary import Boundary
from psd.space.bounds import check_ground
from psd.space.categories import CategoryAxis
from psd.space.covariate import Covariate
from psd.space.domain import Domain
from psd.space.time_slices import TimeSlices

__all__ = ["MOST_APART", "BuildRequest", "BuildTerms"]

NoiseChoice: TypeAlias = Literal["auto", "laplace", "gaussian"]
"""Laws of the noise of counts that a build may have, and the choice between them by a rule."""

MOST_APART = 8
"""Slices that the default method counts separately; more of them are one cube."""

SLICES_EXAMPLE = 'psd.TimeSlices.parse("day", "2024-01-01")'


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """Which records are read, and how many of each unit of privacy are kept. Public."""

    # Names of the columns to read; of tallies, which were read before, the default.
    columns: Columns = Columns()  # noqa: RUF009 - frozen
    is_tallied: bool = False  # whether the counts are those of tallies, so that no record is read
    # Unit of privacy. If the bound is chosen privately, the bound in it is the largest one that can
    # be chosen.
    unit: PrivacyUnit = PrivacyUnit()  # noqa: RUF009 - frozen
    contribution_choice: ContributionChoice | None = None  # how the bound is chosen privately
    # Whether the bound holds for all time slices together, or for each of them.
    contribution_scope: ContributionScope = "series"
    slices: TimeSlices | None = None  # time slices that are counted separately
    values: tuple[Value, ...] = ()  # whose sums are counted; columns name them
    category: CategoryAxis | None = None  # whose labels are cells of an axis; its column is named

    def __post_init__(self) -> None:
        """Check the types, and that the fields are consistent."""
        check_instance("unit", self.unit, PrivacyUnit, 'psd.PrivacyUnit(kind="user")')
        if self.slices is not None:
            check_instance(
                "slices", self.slices, TimeSlices, 'psd.TimeSlices.parse("day", "2024-01-01")'
            )
        check_instance("columns", self.columns, Columns, 'psd.Columns(x="lon")')
        if self.values:
            check_values(self.values)
        if self.category is not None:
            check_instance("category", self.category, CategoryAxis, "a column and labels=")
        if not self.is_tallied:
            # Check that users have ids, and that slices and days have times in one zone.
            columns = self.columns
            if self.unit.has_user != (columns.user is not None):
                raise ParameterError(
                    "user must be a column if and only if the unit of privacy has users, got "
                    f"column {columns.user!r} with unit {self.unit.kind!r}"
                )
            if self.unit.kind == "user-day" and self.unit.time_zone != columns.time_zone:
                raise ParameterError(
                    f"time_zone must be that of the days of the unit, {self.unit.time_zone}, got "
                    f"{columns.time_zone}; times are read in one zone, and days begin in it"
                )
            timed = {"slices=": self.slices is not None, 'per="day"': self.unit.kind == "user-day"}
            for name, needs_time in timed.items():
                if needs_time and columns.time is None:
                    raise ParameterError(
                        f"time must name the column of times, because {name} is given"
                    )
            if self.slices is not None and self.slices.time_zone != columns.time_zone:
                raise ParameterError(
                    f"time_zone must be that of the slices, {self.slices.time_zone}, got "
                    f"{columns.time_zone}"
                )

        # A bound for each slice has slices, users and a number.
        if self.contribution_scope not in get_args(ContributionScope):
            raise ParameterError(
                f"contribution_scope must be series or slice, got {self.contribution_scope!r}"
            )
        limit = self.unit.max_per_slice
        if limit is not None and self.slices is None:
            raise ParameterError("slices must be given with max_per_slice=, which limits each")
        if limit is not None and self.contribution_choice is not None:
            raise ParameterError(
                "max_contributions must be a number with max_per_slice=, got auto; auto chooses "
                "one limit for all slices together"
            )
        if self.unit.kind == "user-slice" and self.slices is None:
            raise ParameterError('slices must be given with per="user-slice"')
        if self.contribution_scope == "series":
            return
        if limit is not None:
            raise ParameterError(
                'max_per_slice must be left out with per="slice", which keeps max_contributions '
                "records in each of the T slices; for at most M in each, write "
                "max_contributions= T x M and max_per_slice= M without per="
            )
        if self.slices is None:
            raise ParameterError('slices must be given with per="slice"')
        counted_unit(self.unit, self.contribution_scope)
        if self.contribution_choice is not None:
            raise ParameterError(
                "max_contributions must be a number with per slice, got auto; auto chooses one "
                "bound for all slices together"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildTerms(ReadRequest):
    """What the caller of a build says. Public. `of_records` or `of_tallies` complete it.

    Tallies state their own bounds, unit and slices, so the terms of a build from tallies do not.
    P1. Terms are consistent: everything that can be checked without data was checked.
    """

    # A `PrivateBounds` says how bounds are estimated. Four numbers are west, south, east, north in
    # degrees. Left out for a build from tallies.
    domain: Domain | PrivateBounds | None = None
    epsilon: Decimal
    method: Decomposition
    # Whether the caller named no method, so that many slices make a cube, see `_default_cube`; and
    # whether slices are to be counted separately. Equal requests have equal methods.
    is_default: bool = field(default=False, compare=False)
    separate_slices: bool = field(default=False, compare=False)
    covariate: Covariate | CovariateFile | None = None
    boundary: Boundary | BoundaryFile | None = None  # polygons; records outside are dropped
    # Regions that are counted by name; records in none of them are dropped. The method is then
    # `psd.decompositions.Regions`.
    regions: RegionHierarchy | None = None
    # What the regions were read from, for a recipe; requests with the same regions are equal
    # without it.
    region_source: RegionFiles | CellRegions | None = field(default=None, compare=False)
    # How estimates are made from the noisy counts; the default is that of the method.
    post_processing: PostProcessing = None  # type: ignore[assignment] # then that of the method
    about: About | None = None  # no part of the charge of a ledger
    # Delta that discrete Gaussian noise may spend, see `psd.privacy.loss.parse_delta`. With
    # discrete Laplace noise no delta is spent, and none is stated.
    delta: Fraction | None = None
    # With Gaussian noise the loss is counted in rho, at most that of epsilon and delta. With "auto"
    # a rule over public parameters chooses, see `law`.
    noise: NoiseChoice = "auto"

    def __post_init__(self) -> None:
        """Normalise and check the fields."""
        object.__setattr__(self, "epsilon", Decimal(epsilon_text(parse_epsilon(self.epsilon))))
        # Check delta and the law of the noise, and that epsilon and delta allow some rho.
        if self.delta is not None and not isinstance(self.delta, Fraction):
            object.__setattr__(self, "delta", parse_delta(self.delta))
        check_choice("noise", self.noise, get_args(NoiseChoice))
        if self.noise == "gaussian" and self.delta is None:
            raise ParameterError(
                'delta must be given with noise="gaussian", got none; with at most this '
                "probability more may be revealed than epsilon allows, such as 1e-6",
                name="delta",
            )
        nano = self.nano_epsilon
        if self.law == "gaussian" and self.delta is not None and rho_of(nano, self.delta) == 0:
            raise ParameterError(
                f"delta must allow a rho of at least 1e-12 with epsilon {epsilon_text(nano)}, got "
                f'{delta_text(self.delta)}; raise one of them, or give noise="laplace"',
                name="delta",
                value=delta_text(self.delta),
            )
        object.__setattr__(self, "domain", as_domain(self.domain))
        if self.about is not None:
            object.__setattr__(self, "about", about_from_mapping(self.about))
        object.__setattr__(self, "method", self._default_cube or as_method(self.method))
        named = tuple(value.name for value in self.values)
        if named != self.columns.values:
            object.__setattr__(self, "columns", replace(self.columns, values=named))
        labelled = None if self.category is None or self.is_tallied else self.category.column
        if labelled != self.columns.category:
            object.__setattr__(self, "columns", replace(self.columns, category=labelled))
        method_parameters(self.method)  # a method with an undeclared field never sees the data
        ReadRequest.__post_init__(self)
        if self.domain is not None and not self.is_tallied:
            column_projection(self.columns, self.domain, "the input")

        # Bounds are no degrees of a plane, and private ones are known too late for what is public.
        if isinstance(self.domain, Domain):
            check_ground(self.domain.bounds, self.domain.crs)
        given = []
        for name, kinds in (
            ("covariate", (Covariate, CovariateFile)),
            ("boundary", (Boundary, BoundaryFile)),
        ):
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, kinds):
                raise ParameterError(
                    f"{name} must be a {kinds[0].__name__} or a {kinds[1].__name__}, got "
                    f"{type_text(value)}"
                )
            given.append(name)
        given += [] if self.slices is None else ["slices"]
        given += [] if self.category is None else ["category"]
        if given and isinstance(self.domain, PrivateBounds):
            raise ParameterError(
                f"bounds must be public with {given[0]}, got private bounds; these are known only "
                "after the first reading"
            )

        # Regions are of the same domain, and counted by their own method, or with time by a cube.
        is_own = isinstance(self.method, Regions)
        is_axis = self.regions is not None and REGION in getattr(self.method, "axes", ())
        if (self.regions is not None) != (is_own or is_axis):
            raise ParameterError(
                "method must be regions, or cube with slices, if and only if regions are given, "
                f"got {self.method.name}; regions= has the public hierarchy"
            )
        if is_axis and self.slices is None:
            raise ParameterError(
                f"slices must be given with regions of method {self.method.name}, got none; other "
                "methods count regions without time",
                name="slices",
            )
        if self.regions is not None:
            check_instance("regions", self.regions, RegionHierarchy, "psd.regions.RegionHierarchy")
            if self.regions.domain != self.domain:
                raise ParameterError("regions must be those of the domain of the release")

        # What does not divide by categories is refused here alone.
        if self.category is not None and not self.is_cube:
            other = f"method {self.method.name}" if self.regions is None else "regions"
            raise ParameterError(
                f"category must be left out with {other}; method cube counts categories, without "
                "regions",
                name="category",
            )
        axis = "slices" if self.category is None else "a category"
        if self.is_cube and self.values:
            raise ParameterError(
                f"values must be left out with {axis} of method {self.method.name}; other methods "
                "have sums and means of each slice",
                name="values",
            )
        if self.is_cube and self.separate_slices:
            raise ParameterError(
                f"separate_slices must be left out with method {self.method.name}, which counts "
                "slices, or categories, together; other methods count each slice separately",
                name="separate_slices",
            )
        if self.is_cube:
            loss, bound = self.loss, self.unit.max_contributions
            # The total, the joint layer, and regions of all time, which are counted in any case.
            least = 2 if self.regions is None else 3
            if min(loss.epsilon, loss.epsilon if loss.is_pure else loss.rho) < least:
                raise ParameterError(
                    f"epsilon must be at least {epsilon_text(least)} with {axis} of method "
                    f"{self.method.name}, which counts two trees, and allow a rho of {least}e-12 "
                    f"if it has a delta, got {epsilon_text(loss.epsilon)}",
                    name="epsilon",
                )
            number = 1 if self.slices is None else len(self.slices)
            if self.contribution_scope == "slice" and bound * number > MAX_CONTRIBUTIONS:
                raise ParameterError(
                    f"max_contributions must be at most {MAX_CONTRIBUTIONS // number:,} "
                    f"in each of {number:,} slices of method {self.method.name}, got "
                    f"{bound:,}; its trees count all slices together",
                    name="max_contributions",
                )

        stated: PostProcessing | None = self.post_processing
        if stated is None:
            object.__setattr__(self, "post_processing", self.default_post_processing)
        check_instance(
            "post_processing", self.post_processing, PostProcessing, "psd.PostProcessing()"
        )
        made: Any = self.post_processing
        if is_axis and made.estimate == "integer":  # refused before the charge
            raise ParameterError(
                f"estimate must not be integer with method {self.method.name}, whose layers are "
                "not rounded together",
                name="estimate",
            )
        if is_axis and made.density == "smooth":
            raise ParameterError(
                "density must be uniform or covariate with regions, got smooth", name="density"
            )

    @property
    def _default_cube(self) -> Cube | None:
        """A cube if no method was named, there are many slices, and a cube refuses nothing."""
        if not self.is_default or self.separate_slices or self.slices is None:
            return None
        number, nano = len(self.slices), self.nano_epsilon
        losses = [nano] if self.delta is None else [nano, rho_of(nano, self.delta)]
        each = self.unit.max_contributions * (number if self.contribution_scope == "slice" else 1)
        takes_all = self.regions is None and not self.values and each <= MAX_CONTRIBUTIONS
        return Cube() if number > MOST_APART and takes_all and min(losses) >= 2 else None

    @property
    def is_cube(self) -> bool:
        """Whether slices, or categories, are cells of an axis that the method divides."""
        axes: tuple[str, ...] = getattr(self.method, "axes", ())
        if self.category is not None:
            return "category" in axes and self.regions is None
        if self.regions is not None and REGION not in axes:
            return False
        return self.slices is not None and "time" in axes

    @property
    def nano_epsilon(self) -> int:
        """Epsilon in units of 1e-9."""
        return parse_epsilon(self.epsilon)

    @property
    def loss(self) -> Loss:
        """Loss of the build: pure epsilon, or rho with epsilon and delta."""
        if self.law == "laplace" or self.delta is None:
            return Loss.pure(self.nano_epsilon)
        return Loss.gaussian(self.nano_epsilon, self.delta)

    @property
    def law(self) -> Law:
        """Law of the noise; that of "auto" by `psd.publish.noise_choice.chosen_law`."""
        if self.noise != "auto":
            return self.noise
        if self.delta is None:
            return "laplace"
        number = 1 if self.slices is None else len(self.slices)
        plan = NoisePlan.of(
            self.nano_epsilon, self.delta, self.unit, self.contribution_scope, number
        )
        return chosen_law(self.method, plan)

    @property
    def noise_text(self) -> str | None:
        """What was decided about a delta that may be spent; None without delta."""
        if self.delta is None:
            return None
        by = " (auto)" if self.noise == "auto" else ""
        if self.law == "laplace":
            return f"noise is discrete Laplace{by}; no delta is spent, and none is stated"
        return f"noise is discrete Gaussian{by}"

    @property
    def default_post_processing(self) -> PostProcessing:
        """Default of the method, and of `psd.publish.public_inputs.default_density`."""
        density = default_density(
            self.domain,
            covariate=self.covariate,
            boundary=self.boundary,
            regions=self.regions,
        )
        return resolve_post_processing(self.method, estimate=None, density=density)

    def of_records(self) -> BuildRequest:
        """Request of a build from records."""
        if self.separate_slices and self.slices is None:
            raise ParameterError(
                "slices must be given with separate_slices, which counts each of them separately",
                name="slices",
            )
        return self if isinstance(self, BuildRequest) else self._completed()

    def of_tallies(
        self,
        domain: Domain,
        unit: PrivacyUnit,
        slices: TimeSlices | None,
        scope: ContributionScope,
        values: tuple[Value, ...] = (),
    ) -> BuildRequest:
        """Request of a build from tallies, with what these state; other bounds are refused."""
        if self.domain not in (None, domain):
            raise ParameterError("bounds must be left out for tallies, which have their own")
        return self._completed(
            domain=domain if self.domain is None else self.domain,
            columns=Columns(),
            is_tallied=True,
            unit=unit,
            contribution_scope=scope,
            slices=slices,
            values=values,
        )

    def _completed(self, **stated: Any) -> BuildRequest:
        """Request with these fields in place of those of the terms."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return BuildRequest(**own | stated)

    @property
    def charge_text(self) -> str:
        """Description of the build in the entry of a ledger."""
        kind = "build" if self.slices is None else "series"
        text: str = getattr(self.method, "charge_text", f"{kind} {self.method.name}")
        return text

    @property
    def guarantee_text(self) -> str:
        """The guarantee in a few words."""
        each = " in each slice" * (self.contribution_scope == "slice")
        unit, loss = self.unit, self.loss
        words = unit.guarantee_text
        if not loss.is_pure:  # a question of a cube sees several slices
            words = unit.summed_text if self.is_cube else unit.concentrated_text
        if self.category is not None:
            words += unit.categories_text
        return f"{loss.text} {words}{each}{loss.failure_note}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest(BuildTerms):
    """All public parameters of a build: what a ledger is charged for and what a release states.

    P2. Every field is public. Equal requests on equal data give releases of the same distribution.
    P3. A request is complete: it has bounds, or how they are estimated privately.
    """

    domain: Domain | PrivateBounds

    def __post_init__(self) -> None:
        """Refuse a request without bounds, which only tallies state."""
        area: Domain | PrivateBounds | None = self.domain
        if area is None:
            raise ParameterError(
                "bounds must be given for records, or a boundary, or regions, got none; they come "
                "from public knowledge, never from the records, and only tallies contain their own"
            )
        BuildTerms.__post_init__(self)


def as_domain(value: Any) -> Domain | PrivateBounds | None:
    """Return a domain; four numbers are bounds in degrees."""
    if value is None or isinstance(value, Domain | PrivateBounds):
        return value
    if isinstance(value, tuple | list):
        return Domain(bounds=tuple(value))
    raise ParameterError(
        f"domain must be a psd.Domain, PrivateBounds or four numbers, got {type_text(value)}; "
        "write psd.Domain(bounds=(west, south, east, north))",
        name="domain",
    )
