"""Requests of tests."""

from psd.publish.request_values import request_from_values


def request_of(**values):
    """Request of values by the names of the fields."""
    return request_from_values(values)
