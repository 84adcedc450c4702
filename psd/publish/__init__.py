"""The front doors: from rows to a release. Private."""
