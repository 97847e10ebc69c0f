"""What is wrong with a script: behind `weft.doctor` and the command ``weft doctor``.

Method
------
A *check* run tells the hook of the core (`weft._core._watch`) of every push of a callable or a native function. Before the
push and after it everything that was pushed is waited for, so ops run one at a time, in the order of their pushes, on
whatever engine they are; programs run op by op. Around the op, the memory that the engine knows, that the
callable reaches by name or that the pushing module names is fingerprinted: bytes that changed and are not declared are an undeclared write. Array ops of
weft's own look at their results in the core (`crates/array/src/access/watched.rs`), for the first NaN or infinity.

*Order* runs repeat the script in an order that is drawn from what the declared accesses allow, and compare: the first op whose
declared inputs agree with the check run, and whose outputs do not, has read something else. An *advice* run is traced and
nothing else: where waits, pushes and conversions cost time.

Guarantees
----------
An undeclared write is found if the op runs in the check run, the memory is known or reached, and its bytes change. An
undeclared read is found where a name that the callable closes over is an array that other ops write, or where an order
that was drawn shows it. Nothing is said of memory that was not looked at; the last line of the report counts it.

Costs and bounds
----------------
Each line's first ops are checked around all known memory, and their names are read; later ones are checked as long as all checks take
at most three times as long as the script itself, and else at doubling distances. Traces pause where ops are so short that they take more than
a small part of the run. At most `memory.REGIONS` regions, `orders.OPS` logged ops and `findings.MOST` findings are kept.

| file | home of |
|---|---|
| `findings` | a finding, the report, how it is shown |
| `guards` | questions about classes of values |
| `sources` | lines of files: where a name is assigned, loops, functions |
| `frames` | names and arrays of the frames that push |
| `code`, `uses` | what code refers to; the arrays whose values a callable is certain to use |
| `reach` | the arrays that a callable reaches by name |
| `memory` | regions of memory and their fingerprints |
| `pushes` | one push as the hook sees it: what it declares |
| `accesses`, `finite` | what ops touch without a word, and what to write; values that are not finite |
| `check`, `orders` | the hooks of the two kinds of runs; the comparison of runs |
| `run`, `advice` | a trace, and what it tells of slow habits |
| `repetitions`, `replayed` | sequences that are pushed again and again; what a program saves, measured |
| `blas` | threads of BLAS in ops side by side |
| `habits` | conversions and recordings, as they happen |
| `traces` | traces of all engines of a run |
| `session` | `weft.doctor` |
"""
