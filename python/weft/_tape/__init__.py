"""The tape in Python: what is heard, how gradients walk back, and the functions that ask for them."""
