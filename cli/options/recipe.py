"""From the options of `psd build` to a recipe of one release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..options.command import chain_options, options_of

if TYPE_CHECKING:
    from psd.publish.recipe import Recipe

__all__ = ["recipe_from_options", "recipe_options"]

_option = options_of("Recipe")

recipe_options = chain_options(
    _option("--dry-run", is_flag=True, help="Print the public request; open no input, ledger or "
            "key. With --report-private, read the input for its holder; draw and write nothing."),
    _option(
        "--save-recipe",
        metavar="FILE",
        is_everyday=False,
        help="Write these options as a recipe, which `psd build FILE` builds. PRIVATE: it names "
        "the inputs.",
    ),
)  # fmt: skip
"""``--dry-run`` and ``--save-recipe``."""


def recipe_from_options(inputs: Sequence[str], output: str, fields: Mapping[str, Any]) -> Recipe:
    """Recipe of the options of `psd build`, by the names of the fields.

    Raises
    ------
    ParameterError
        If an option has a value that the field refuses.
    """
    from psd.publish.fields import field_names
    from psd.publish.recipe import PlannedRelease, PrivateInputs, Recipe

    private = {name: fields[name] for name in field_names(private=True) if name in fields}
    public = {name: fields[name] for name in field_names(private=False) if name in fields}
    return Recipe(
        private=PrivateInputs.from_table({**private, "inputs": inputs}),
        releases=(PlannedRelease.from_table({**public, "output": output}),),
    )
