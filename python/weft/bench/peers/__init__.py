"""What Python offers beside weft: an engine as one writes it in an afternoon, and a pool's map."""
