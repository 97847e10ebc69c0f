"""``weft bench metg``: the shortest task that still gives half of the machine's peak."""
