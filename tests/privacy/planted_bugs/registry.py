"""All planted bugs, theme by theme."""

from __future__ import annotations

from privacy.planted_bugs import (
    budget,
    curator,
    domain,
    ledger,
    metadata,
    noise,
    release_file,
    selection,
    shape,
    slices,
    tallies,
    units,
)
from privacy.planted_bugs.mutant import Mutant

THEMES = {
    "Noise": noise.MUTANTS,
    "Selections": selection.MUTANTS,
    "Questions and shapes": (*curator.MUTANTS, *shape.MUTANTS),
    "Budget": budget.MUTANTS,
    "Domain and rows": domain.MUTANTS,
    "Units and bounding": units.MUTANTS,
    "Tallies and merging": tallies.MUTANTS,
    "Time slices": slices.MUTANTS,
    "Ledger": ledger.MUTANTS,
    "Metadata and messages": metadata.MUTANTS,
    "Release file": release_file.MUTANTS,
}

MUTANTS: tuple[Mutant, ...] = tuple(mutant for theme in THEMES.values() for mutant in theme)
