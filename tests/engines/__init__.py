"""The engines' accounting held to what the engines answer."""
