"""Random attacks on weft, seeded and resumable: each generator makes cases, each case says what is wrong.

``python -m tests.fuzz --seconds 3600 --seed 5`` runs all generators for an hour, beside whatever weft is installed; pytest runs a few
thousand cases of one seed. A case follows from the seed, its generator's name and its number alone.

| module | attacks |
|---|---|
| `expressions` | array functions against NumPy: values, dtypes, strided operands and results |
| `keys` | reads and writes by keys against NumPy |
| `statements` | statements on arrays that share memory, against NumPy and between engines |
| `programs` | recorded programs against eager code |
| `symbols` | symbols, as they are and read back from files, against eager code |
| `gradients` | gradients against central differences, and against torch where it is installed |
| `control` | `scan`, `while_loop` and `cond` against Python's loops and branches |
| `dunders` | objects whose methods raise or return odd values |
| `sizes` | sizes, counts, axes and strides at the ends of integer types |
| `damage` | damaged files: .npz, .safetensors, MXNet's parameters, symbols as JSON; truncated files and maps |
| `interrupts` | KeyboardInterrupt at random |
| `forks` | forks while ops, recordings and gradients are under way |
| `ranks` | collectives of several processes against NumPy |
"""
