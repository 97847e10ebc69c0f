"""`weft.vmap`: functions of one example that run for many at once.

| file | home of |
|---|---|
| `examples` | what a function sees of an array: one example, which stands for all |
| `rules` | how a call goes for all examples, by what its op says, or example by example |
| `mapping` | `vmap` itself: axes of arguments and results, calls |
| `control` | loops, choices and operators of the user's inside |
"""
