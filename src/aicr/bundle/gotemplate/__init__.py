"""Go ``text/template``, the part that component manifests are written in.

The manifests of the catalogue are Go templates, and they are rendered while a bundle is made, so
that the bundle holds plain YAML. This package reads the language of Go's own package with the
functions that the manifests may call, in three steps:

```
lexer      text            -> pieces: literal text, or the tokens of one {{ action }}
parser     pieces          -> a tree of plain tuples; every mistake of form is found here
evaluate   tree            -> closures, kept per text; every mistake of data is found there
functions  what a pipeline may call
```

Two choices depart from Go on purpose. A value that is not there is an error where Go would print
``<no value>`` into the manifest, and templates that call templates (``define``, ``template``,
``block``) are refused, because one manifest is one file.

It must not know what a manifest, a component or Kubernetes is.
Source of the rule: bundler spec 2.7.
"""

from __future__ import annotations

from aicr.bundle.gotemplate.evaluate import render

__all__ = ["render"]
