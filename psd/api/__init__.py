"""`Release` and `Answers`, the objects that users work with. Public."""

from psd.api import fits as fits  # `psd.api.fits.with_cache` is written so in messages
