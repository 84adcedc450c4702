"""`Release` and `Answers`, the objects that users work with. Public."""
