"""Budgets over many releases. Holds no records."""
