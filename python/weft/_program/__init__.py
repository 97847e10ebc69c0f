"""Programs: functions that are recorded once and replayed.

| module | home of |
|---|---|
| `entry` | `weft.program`, as a decorator and as a function |
| `function` | a function with its programs: new calls, `lower`, `why`, `clear`, methods |
| `record` | one recording: arguments replaced, the function run once, results described |
| `trees` | nested arguments and results |
| `names` | a function's outer names: closure cells, globals, attributes of `self` |
| `history` | the reason for each recording, and the argument that makes too many programs |
| `program` | a recorded program: figures, `replay`, `summary`, `profile`, pictures |
| `block` | `weft.capture` |
| `eagerly` | `weft.eager` |
| `verify` | checks of calls against eager ones |
| `control` | `weft.scan`, `weft.cond` |

The core finds the program of a call (`weft._core.Signatures`), without running any line of this package.
"""
