"""NumPy's protocols on NDArray, and hints for the names of other libraries."""
