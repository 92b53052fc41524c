"""The serving engines' own KV accounting as pure functions: shapes and settings in, bytes out."""
