"""`python -m kvplan` is the same program as `kvplan`."""

from kvplan.cli import main

if __name__ == "__main__":
    main()
