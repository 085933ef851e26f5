"""The command as people run it, for tests: in this process, or as one of its own."""

import sys

from pseudomallows.cli import main


def run(*arguments):
    """Exit code of the command with these arguments, in this process."""
    return main([str(argument) for argument in arguments])


def command(*arguments):
    """The command with these arguments, for a process of its own."""
    return [sys.executable, "-m", "pseudomallows", *map(str, arguments)]
