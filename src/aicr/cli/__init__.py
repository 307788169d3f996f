"""The command line: one module a command; parse, call, print, and no logic of its own."""
