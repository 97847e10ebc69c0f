"""What an op is: its record, attributes, abstract values and gradient rules. Knows no call."""
