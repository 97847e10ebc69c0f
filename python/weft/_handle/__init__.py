"""NDArray as a class: methods, operators, conversions."""
