"""Tables C and D: array libraries, each in a process of its own."""
