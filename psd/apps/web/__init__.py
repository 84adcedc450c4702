"""Pages and folders that are made of releases alone, for their readers. Public."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd._util.lazy_names import lazy_names

if TYPE_CHECKING:
    from psd.apps.web.site import write_site

__all__ = ["write_site"]

__getattr__, __dir__ = lazy_names(__name__, __all__)
