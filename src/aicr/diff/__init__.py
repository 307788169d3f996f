"""Comparison of two snapshots, recipes or bundles by what they mean, not by their text.

```
two documents --recipes|bundles|snapshots--> Comparison([Change …]) --text--> tables for people
                                                                    --document--> JSON, YAML
```
Everything here is a pure function from plain documents (for a bundle: its files) to changes; reading
files and choosing what to compare is the command's business. Source: decisions 30 and 59, bundler
spec 9.4.
"""
