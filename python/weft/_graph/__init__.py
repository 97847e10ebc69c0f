"""Graphs, passes, symbols and executors: the parts of `weft.graph` and `weft.symbol`."""
