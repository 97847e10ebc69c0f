"""What `weft.opt` lists: schedules, and the rules by which parameters are updated."""
