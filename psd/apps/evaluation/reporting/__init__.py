"""Plots and HTML pages of true errors. Private."""
