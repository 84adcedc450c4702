"""Budgets of datasets over many releases. The package stores no records."""
