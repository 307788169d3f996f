"""Judge a data tree: everything that the product would refuse, and everything that will surprise.

```
files      a directory, every file of it, problems of the file system collected
collect    each document decoded by the loader's own decoder, which here goes on after a problem
ground     both trees put together: sources by name, and a catalogue of what is sound
trial      every selectable overlay composed, its manifests rendered, problems collected
*_rules    one small function a rule; the table of all of them is ``rules.RULES``
run        the rules over a ground, as sorted findings
```

Two severities, and the line between them is a fact, not a taste: an *error* is refused by the loader,
the resolver, the bundler or the validator, now or when the document at fault is used; a *warning* is
accepted, and does something else than its author probably meant.

This package must not know the command line. Source: decision 29.
"""
