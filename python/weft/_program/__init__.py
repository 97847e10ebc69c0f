"""Programs: functions that are recorded once and replayed.

| module | home of |
|---|---|
| `decorator` | `weft.program`, as a decorator and as a function |
| `function` | a function with its programs: new calls, `lower`, `why`, `clear`, methods |
| `record` | one recording: arguments replaced, the function run once, results described |
| `trees` | nested arguments and results |
| `guards` | a function's outer names: closure cells, globals, attributes of `self` |
| `foreign_rng` | random numbers of other libraries, drawn meanwhile |
| `unrecorded` | state that is made during a recording and is no part of it |
| `history` | the reason for each recording, and the argument that makes too many programs |
| `program` | a recorded program: figures, `replay`, `graph`, pictures |
| `summary`, `profile` | a program as a table; the times of its ops |
| `dummies` | arrays of zeros in place of the arguments of a call |
| `capture` | `weft.capture` |
| `switch` | `weft.eager` |
| `verify` | checks of calls against eager ones |
| `backward`, `tape_node` | recordings with the walk back behind them; calls that the tape listens to |
| `control` | `weft.scan` and `weft.cond`: what each does with arrays, in recordings and with symbols |
| `subrecordings`, `loops`, `branches` | parts of a recording that run as one op of it: their base, those of `scan`, those of `cond` |

The core finds the program of a call (`weft._core.Signatures`), without running any line of this package.
"""
