"""The engines weft is timed against: two in Python here, two in C++ beside them."""
