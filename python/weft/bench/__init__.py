"""weft measured beside its peers, on your machine: ``weft bench`` or ``python -m weft.bench``.

Every implementation is verified, then timed in turns with the others in one run, so that ratios count. Peers that are
not installed are named as missing. A checkout has more: ``benches/run.py`` adds the peers in C++, and weft from Rust.

``import weft`` does not import this package.
"""
