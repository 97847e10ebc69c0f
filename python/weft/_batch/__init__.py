"""`weft.vmap`: functions of one example that run for many at once.

| file | home of |
|---|---|
| `examples` | a function's view of an array: one example, which stands for all |
| `rules` | how a call goes for all examples, by its op's attribute, or example by example |
| `mapping` | `vmap` itself: axes of arguments and results, calls |
| `control` | loops, choices and operators of the user's inside |
"""
