"""Planted bugs: the package broken on purpose, one way at a time, so that tests show power."""
