"""What `weft.graph` is made of."""
