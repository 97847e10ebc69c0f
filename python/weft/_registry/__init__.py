"""The registry of ops: records, attributes, abstract values and gradient rules. Knows no call."""
