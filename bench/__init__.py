"""How long kvplan takes and how much memory it needs: `make bench` prints one table."""
