"""CUDA measured: launches, copies beside kernels, graphs and streams, beside CuPy by hand and the driver by itself.

Each line of the benchmark has a module: ``overlap``, ``launches``, ``additions``, ``chains``, ``graphs``, ``streams``.
"""
