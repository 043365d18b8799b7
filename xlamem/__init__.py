"""xlamem reads whatever XLA says about memory and says who holds the bytes, and how many are padding.

The public names are exactly those in ``__all__``; what needs jax or pandas loads on first use.
"""

from __future__ import annotations

__all__: list[str] = []
__version__ = "0.1.0"
