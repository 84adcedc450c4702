"""`Release` and `SeriesRelease`, the objects that users work with. Public."""
