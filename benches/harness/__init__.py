"""What ``benches/run.py`` adds to `weft.bench`: programs in C++ and Rust, targets, ``RESULTS.md``."""
