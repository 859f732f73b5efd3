"""`python -m openclaw`: the same door as the `openclaw` command."""

from openclaw.cli.main import main

if __name__ == "__main__":
    main()
