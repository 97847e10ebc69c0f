"""What stands behind `weft.tensor`, `weft.device` and `weft.model`."""
