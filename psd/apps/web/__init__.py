"""Pages that are made of a release file alone. Public."""
