"""`Release` and `Release`, the objects that users work with. Public."""
