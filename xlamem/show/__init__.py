"""One module an output, each a pure function from explanations (most important first) to text or a frame.

Nothing here knows the command line, and nothing imports jax. What came from the input passes through
:mod:`xlamem.show.escape` on its way out.
"""
