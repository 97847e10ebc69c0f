"""Arrays: the functions and methods of `weft.NDArray`, whose storage and operators are in the core."""
