"""vLLM's start-up planning, by release: pages, groups, blocks, the fit check and the log lines."""
