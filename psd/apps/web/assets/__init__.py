"""Files of the map page: its own script and style, and those of others with their licences.

maplibre-gl.js and maplibre-gl.css are MapLibre GL JS 5.24.1 (3-clause BSD) and countries-110m.json
and countries-50m.json are Natural Earth (public domain) as in world-atlas 2.0.2 (ISC), unchanged,
from npm.
"""
