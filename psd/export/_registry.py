"""A release as an entry of the public registry of deployments of differential privacy.

References
----------
.. [1] Dwork, Kohli and Mulligan. "Differential Privacy in Practice: Expose your Epsilons!" Journal
   of Privacy and Confidentiality 9(2), 2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from psd.export._catalogue import Described
from psd.privacy.budget import BUDGET_STATEMENTS

__all__ = ["entry"]

_MODELS = {
    "curator": "central: a trusted curator holds the records",
    "local": "local: each device randomises its own answer, and no one holds the records",
    "given": "not known: the counts were given to the library",
}

_COMPOSITION = {
    True: "basic composition along each path of the tree, parallel composition across its cells",
    False: "rho adds up along each path of the tree; its largest sum is converted to epsilon and "
    "delta",
}

_PRODUCT = ("publisher", "description", "contact", "licence", "reference_date", "language")


def entry(described: Described) -> dict[str, Any]:
    """Fields of the registry; what the release does not state is null."""
    record, metadata = described.record, described.metadata
    about = {} if record.about is None else record.about.texts
    product = {name: about.get(name) for name in _PRODUCT}
    return {
        "product": {"title": described.title, **product, "digest": metadata.get("digest")},
        "unit": {
            "protects": record.unit.kind,
            "neighbours": "add or remove one",
            "max_contributions": record.unit.max_contributions,
            "counts": metadata["counts"],
        },
        "flavour": _flavour(metadata),
        "epsilon": metadata["epsilon"],
        "guarantee": described.guarantee,
        "model": _MODELS[record.source],
        "accounting": _accounting(described),
        "implementation": {
            "library": metadata["library"],
            "mechanism": _mechanism(described),
            "method": record.method,
            "parameters": dict(record.parameters),
            "post_processing": asdict(record.post_processing),
        },
        "justification": about.get("justification"),
    }


def _flavour(metadata: Mapping[str, str]) -> dict[str, str]:
    """Name of the definition of privacy, with its delta."""
    if "rho" not in metadata:
        return {"name": "pure differential privacy", "delta": "0"}
    name = "zero-concentrated differential privacy"
    return {"name": name, "delta": metadata["delta"], "rho": metadata["rho"]}


def _mechanism(described: Described) -> str:
    """Name of what draws the noise."""
    local = described.record.local
    if local is not None:
        return "randomised response: " + ", ".join(sorted({each.protocol for each in local.levels}))
    return f"{described.record.tree.noise.law.replace('_', ' ')} noise on integer counts"


def _accounting(described: Described) -> str:
    """How epsilon adds up, and which charge of which ledger paid for it."""
    record = described.record
    if record.source == "given":
        return "epsilon is stated by the publisher; the library did not draw the counts"
    if record.local is not None:
        return "each device sends one report, of one level, so epsilon is that of a report"
    parts = [_COMPOSITION[record.tree.noise.measure.is_pure]]
    spent = [name for name in record.parameters if name in BUDGET_STATEMENTS]
    if any(name.endswith(("epsilon", "rho")) for name in spent):
        name = record.tree.noise.measure.name
        parts.append(f"{name} includes what was spent before the method began")
    if described.slices is not None:
        parts.append(f"epsilon is that of all {len(described.slices):,} time slices together")
    ledger, charge = (record.parameters.get(name) for name in ("ledger", "charge"))
    if charge is not None:
        parts.append(f"paid for by charge {charge} of ledger {ledger}")
    return "; ".join(parts)
