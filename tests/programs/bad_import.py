"""Fails while it is loaded."""

import no_such_package
