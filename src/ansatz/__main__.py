"""``python -m ansatz`` is the command ``ansatz``."""

from ansatz.cli.main import main

if __name__ == "__main__":
    main()
