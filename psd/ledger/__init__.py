"""Budgets over many releases. Holds no rows."""
