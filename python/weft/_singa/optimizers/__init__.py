"""The parts of `weft.opt`: schedules, and the rules for updating parameters."""
