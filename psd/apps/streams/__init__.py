"""Streams: series that grow by one time slice at a time, paid for once. Private side."""
