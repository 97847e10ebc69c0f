"""Tables C, D, F and R: array libraries, each in a process of its own."""
