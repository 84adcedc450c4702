"""Attacks on builds of made-up data."""
