"""Constraints: one measured value, or one set of nodes, compared with what a recipe asks for.

``evaluate`` is the door; ``expression``, ``paths`` and ``nodeset`` are the three grammars behind
it, ``addressable`` is the load-time check of paths and ``ranges`` narrows one range by another.
Nothing here reads files, knows overlays, or decides what a failed constraint means.
"""
