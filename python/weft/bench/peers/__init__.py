"""Python's own alternatives: an engine of an afternoon's work, and a pool's map."""
