"""The names that `weft.layer` lists."""
