"""Generators of pages: each module has a function ``page`` that gives the text of one page."""
