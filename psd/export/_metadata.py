"""What an exported file states about its release: the guarantee, the method and the digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd.privacy.loss import RHO, delta_text, epsilon_text
from psd.release.record import guarantee_note

if TYPE_CHECKING:
    from psd.release.record import ReleaseRecord

__all__ = ["describe", "release_metadata"]


def release_metadata(record: ReleaseRecord, digest: str = "") -> dict[str, str]:
    """Facts about a release that its exports carry, in every format that has room for them.

    All exports, reports and `Release.metadata` read this function: a new public field of a release
    is added to its exports by an entry of this mapping. What the publisher states comes first. The
    SHA-256 of the content of the release file is left out if it is empty.
    """
    return {
        **({} if record.about is None else record.about.texts),
        "epsilon": epsilon_text(record.epsilon),
        **_concentrated(record),
        "unit_of_privacy": record.unit_text,
        "source": record.source + guarantee_note(record.source),
        "counts": record.counted_text,
        "method": record.method,
        "library": f"psd {record.library}",
        **({"digest": digest} if digest else {}),
    }


def _concentrated(record: ReleaseRecord) -> dict[str, str]:
    """Delta and rho; nothing of a release in epsilon alone."""
    if record.rho is None or record.delta is None:
        return {}
    return {"delta": delta_text(record.delta), "rho": RHO.text(record.rho)}


def describe(metadata: dict[str, str]) -> str:
    """Metadata as a text of one line, for formats whose only room is a description."""
    return "; ".join(f"{key.replace('_', ' ')} {value}" for key, value in metadata.items())
