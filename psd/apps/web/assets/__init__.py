"""Files of the map page: its own script and style, and those of others with their licences.

maplibre-gl.js and maplibre-gl.css are MapLibre GL JS 5.24.1 (3-clause BSD), unchanged, from npm.
"""
