"""kvplan: capacity plans for LLM serving that can be reviewed."""

__version__ = "0.1.0"
