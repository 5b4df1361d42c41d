"""``python -m ansatz`` and the command ``ansatz``: signals first, then all that it imports."""

from ansatz.cli.signals import enter


def main() -> None:
    """Runs the command on the process's own arguments, then exits."""
    enter()
    from ansatz.cli.main import main

    main()


if __name__ == "__main__":
    main()
