"""From the options of `psd build` to a recipe of one release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..options.command import chain_options, options_of
from ..options.ledger import split_dataset
from ..options.values import parse_settings

if TYPE_CHECKING:
    from psd.publish.recipe import Recipe

__all__ = ["domain_keys", "recipe_from_options", "recipe_options"]

_option = options_of("Recipe")

# Options whose name is the key of a recipe.
_RELEASE_KEYS = (
    "output", "epsilon", "delta", "noise", "bounds", "crs", "boundary", "regions", "method", "user",
    "max_contributions", "per", "max_per_slice", "count", "slices",
    "covariate", "about",
)  # fmt: skip


def recipe_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--dry-run`` and ``--save-recipe``."""
    return chain_options(
        _option(
            "--dry-run",
            is_flag=True,
            help="Print the public request; open no input, ledger or key.",
        ),
        _option(
            "--save-recipe",
            type=click.Path(),
            metavar="FILE",
            help="Write these options as a recipe for `psd build`. PRIVATE: it names the inputs.",
        ),
    )(command)


def recipe_from_options(inputs: Sequence[str], options: Mapping[str, Any]) -> Recipe:
    """Recipe of the options of `psd build`.

    Raises
    ------
    ParameterError
        If an option has a value that the key of the recipe refuses.
    """
    from psd.publish.recipe import PRIVATE_READ_KEYS, PlannedRelease, PrivateInputs, Recipe

    read = dict(options["read"])
    engine = read.pop("engine", None)
    private_read = {key: text for key, text in read.items() if key in PRIVATE_READ_KEYS}
    columns = {key: text for key, text in read.items() if key not in PRIVATE_READ_KEYS}
    settings = parse_settings(options["settings"])
    domain = domain_keys(columns, settings)
    release = {key: options[key] for key in _RELEASE_KEYS if options[key] is not None}
    release |= domain
    release |= {"set": settings} if settings else {}
    release |= {"read": columns} if columns else {}
    dataset, analyst = split_dataset(options["dataset"])
    private = {"engine": engine, "dataset": dataset, "analyst": analyst}
    private |= {"ledger": options["ledger"], **options["private_output"]}
    return Recipe(
        private=PrivateInputs.from_table({**private, "inputs": inputs, "read": private_read}),
        releases=(PlannedRelease.from_table(release),),
    )


def domain_keys(columns: dict[str, str], settings: dict[str, str]) -> dict[str, str]:
    """Keys of the domain, taken out of those of ``--read`` and ``--set``."""
    keys = {"coordinate_resolution": columns.pop("coordinate_resolution", None)}
    for spelling in ("min_cell", "min-cell"):
        if spelling in settings:
            keys["min_cell"] = settings.pop(spelling)
    return {key: text for key, text in keys.items() if text is not None}
