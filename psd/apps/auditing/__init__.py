"""Attacks on builds of synthetic data."""
