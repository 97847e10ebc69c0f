"""The machine of this process: processors, GPUs, libraries. For `weft info` and for comparisons of figures."""
