"""Errors and slow habits of a script: behind `weft.doctor` and the command ``weft doctor``.

Method
------
A *check* run tells the hook of the core (`weft._core._watch`) of every push of a callable or a native function. Before the
push and after it everything that was pushed is waited for, so ops run one at a time, in the order of their pushes, on
any engine. Around the op, the memory that the engine knows, that the
callable reaches by name or that the pushing module names is fingerprinted: bytes that changed and are not declared are an undeclared write. Array ops of
weft's own look at their results in the core (`crates/array/src/access/watched.rs`), for the first NaN or infinity. Of programs some calls run op by op,
and the others as ever: these run again op by op if they give such a value (`programs`).

*Order* runs repeat the script in an order drawn from those that the declared accesses allow, and compare: the first op with the
declared inputs of the check run, and with other outputs, has read something else. An *advice* run is traced and
nothing else: where waits, pushes and conversions cost time.

Guarantees
----------
An undeclared write is found if the op runs in the check run, the memory is known or reached, and its bytes change. An
undeclared read is found where a name that the callable closes over is an array that other ops write, or where an order
that was drawn shows it. A value that is not finite is found at any call of a program, if its results or the
memory that it writes to hold it at the end. One that vanishes before is found in calls that run op by op, the first ones among them. Nothing is said of memory that was not looked at; the last line of the report counts it.

Costs and bounds
----------------
Each line's first ops are checked around all known memory, and their names are read; later ones are checked as long as all checks take
at most two and a half times as long as the script itself, and else at doubling distances. All counts as taken that is not known to be the
script's own (`budget`). Replays with their looks are; where these take less than one and a half times the script's own time, more calls run op by op. Traces pause where ops are so short that they take more than
a small part of the run. At most `memory.REGIONS` regions, `orders.OPS` logged ops and `findings.MOST` findings are kept.

| file | home of |
|---|---|
| `findings` | a finding, the report, how it is shown |
| `guards` | questions about classes of values |
| `sources` | lines of files: where a name is assigned, loops, functions |
| `frames` | names and arrays of the frames that push |
| `code`, `uses` | names that code refers to; the arrays that a callable is certain to use |
| `reach` | the arrays that a callable reaches by name |
| `memory` | regions of memory and their fingerprints |
| `pushes` | one push as the hook sees it: its declared accesses |
| `accesses`, `finite` | undeclared accesses of ops, and the words to write; values that are not finite |
| `budget` | the time that checks may take |
| `programs` | calls of programs: op by op, or replayed and looked at |
| `check`, `orders` | the hooks of the two kinds of runs; the comparison of runs |
| `glance` | the habits that a trace can show at all, and from which size on they are habits |
| `run`, `advice` | a trace, and its facts about slow habits |
| `repetitions`, `replayed` | sequences that are pushed again and again; the savings of a program, measured |
| `blas` | threads of BLAS in ops side by side |
| `habits` | conversions and recordings, as they happen |
| `traces` | traces of all engines of a run |
| `session` | `weft.doctor` |
"""
