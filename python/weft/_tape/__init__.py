"""The tape in Python: the noted calls, the walk of gradients, and the functions that start it."""
