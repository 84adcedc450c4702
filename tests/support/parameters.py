"""A value with public parameters of each kind."""

import dataclasses
from decimal import Decimal

from psd._util.declared_parameters import check_parameters, choice, integer_between, public_field
from psd.privacy.budget import share


@dataclasses.dataclass(frozen=True, kw_only=True)
class Example:
    """One field of each kind."""

    height: int = public_field(8, integer_between(0, 12), "levels")
    size: int | None = public_field(None, integer_between(1, 9), "cells")
    budget: str = public_field("uniform", choice("uniform", "leaf"), "shares")
    part: Decimal = public_field(Decimal("0.02"), share, "share")

    name = "example"

    def __post_init__(self):
        check_parameters(self)
