"""What this process runs on: processors, GPUs, libraries. For `weft info` and for whoever compares figures."""
