"""MXNet's ops, by its own names, onto weft's functions; its files."""
