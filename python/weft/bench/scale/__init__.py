"""Data-parallel training on more ranks than there are here: links are measured, and the rest is simulated."""
