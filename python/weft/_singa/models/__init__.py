"""The parts of `weft.tensor`, `weft.device` and `weft.model`."""
