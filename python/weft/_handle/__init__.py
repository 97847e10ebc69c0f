"""What NDArray has as a class: methods, operators, conversions."""
