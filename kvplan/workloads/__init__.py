"""Request lengths: distributions with a seed, and lists."""
