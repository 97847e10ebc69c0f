"""Tables M and N: the memory that symbols are planned in, and a long chain built, saved, loaded, inferred and bound."""
