"""Small tools without a subject of their own: arrays, files, plugins, processes."""
