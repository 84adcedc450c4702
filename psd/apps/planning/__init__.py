"""Expected errors from public assumptions. Public."""
