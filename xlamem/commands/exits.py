"""The exit codes of every command."""

OK = 0
ERROR = 1
USAGE = 2
DOES_NOT_FIT = 3
NO_REPORT = 4
INTERRUPTED = 130
