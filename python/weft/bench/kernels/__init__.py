"""Table T: kernels of networks and a training step, beside other libraries."""
