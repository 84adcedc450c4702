"""Inputs that need more than a path or a table: a query of DuckDB, a table of PostGIS. Private."""

from psd.ingest.sources.postgis import PostGIS
from psd.ingest.sources.sql import DuckDB

__all__ = ["DuckDB", "PostGIS"]
