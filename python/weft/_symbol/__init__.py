"""Symbols: names for them, composition, and what is bound."""
