"""What `weft.layer` lists."""
