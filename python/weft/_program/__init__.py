"""Programs: functions whose calls are recorded once and replayed.

| module | home of |
|---|---|
| `entry` | `weft.program`, as a decorator and as a function |
| `function` | a function with its programs: calls that were not seen before, `lower`, `why`, `clear`, methods |
| `record` | one recording: arguments replaced, the function run once, results described |
| `trees` | nested arguments and results |
| `names` | what a function reads elsewhere: closure cells, globals, attributes of `self` |
| `history` | why a call was recorded, and which argument makes too many programs |
| `program` | a recorded program: figures, `replay`, `summary`, `profile`, pictures |
| `block` | `weft.capture` |
| `eagerly` | `weft.eager` |
| `verify` | calls that are checked against eager ones |
| `control` | `weft.scan`, `weft.cond` |

Which program a call belongs to is found in the core (`weft._core.Signatures`), without running any line of this package.
"""
