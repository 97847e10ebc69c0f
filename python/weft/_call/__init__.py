"""The one way of a call: from operands to a push."""
