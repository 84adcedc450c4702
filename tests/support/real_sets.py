"""Public bounds of the real data sets that a folder beside the project may hold."""

BOUNDS = {
    "uk_road_accidents": (-7.6, 49.8, 1.9, 60.9),
    "london_stop_search": (-0.55, 51.25, 0.35, 51.72),
    "osm_andorra_2016": (1.40, 42.42, 1.79, 42.66),
}
