"""What ops say of themselves for graphs, and how passes reach Python's rules."""
