"""Public regions that are counted by name: hierarchies, their kinds and their files. Public."""
