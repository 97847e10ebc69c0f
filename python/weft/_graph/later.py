"""The functions behind methods of symbols; they know symbols themselves. `weft._graph.attach` gives them."""

from __future__ import annotations

from weft._registry.hooks import Hook

indexed = Hook()
gradient_symbol = Hook()
evaluate = Hook()
bind = Hook()
simple_bind = Hook()
summarize = Hook()
described = Hook()
