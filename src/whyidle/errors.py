"""The errors a user can meet: what is wrong, what puts it right, and the exit code.

WhyidleError
├── UsageError          2   a wrong command line
├── UnreadableInput     4   a file or folder that is not what it should be
├── MissingHere         5   something this machine lacks
└── Interrupted       130   Ctrl-C
"""

from __future__ import annotations

EXIT_FINDINGS = 3
EXIT_DEFECT = 70


class WhyidleError(Exception):
    """A failure the user can mend. `message` says what and where, `hint` the way out."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(WhyidleError):
    """The command line asks for something impossible."""

    exit_code = 2


class UnreadableInput(WhyidleError):
    """The input is missing, foreign, empty or damaged beyond use."""

    exit_code = 4


class MissingHere(WhyidleError):
    """A program, driver or library is not on this machine."""

    exit_code = 5


class Interrupted(WhyidleError):
    """The user pressed Ctrl-C."""

    exit_code = 130
