"""A snapshot as the user wants to see it: a Jinja2 template over the document.

The original takes Go templates; ours are Jinja2, which the extra `cluster` has. Templates are rendered in
Jinja2's sandbox, with undefined names as errors, because a misspelt reading must not print as nothing.

Source: recipe spec 6.5 (snapshot output), config type SnapshotOutput.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aicr.constraints import paths
from aicr.errors import AicrError, invalid


def render(text: str, snapshot: Mapping[str, Any], source: str) -> str:
    """The rendered template, ending in a newline.

    The template has ``snapshot``, the document, and ``reading("K8s.server.version")``, the text of a
    reading as constraints see it.

    Raises:
        AicrError: INVALID_REQUEST if the template is wrong, asks for a reading that is not there, or
            Jinja2 is not installed.
    """
    try:
        import jinja2
        from jinja2.sandbox import SandboxedEnvironment
    except ImportError as error:
        raise invalid(
            "a template needs the package Jinja2, which is not installed",
            where="--template",
            hint='pip install "aicr[cluster]"',
        ) from error
    environment = SandboxedEnvironment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False
    )

    def reading(path: str) -> str:
        return paths.extract(snapshot, paths.parse(path))

    try:
        rendered = environment.from_string(text).render(snapshot=snapshot, reading=reading)
    except jinja2.TemplateSyntaxError as error:
        raise invalid(
            f"the template is wrong: {error.message}", where=f"{source}:{error.lineno}"
        ) from error
    except jinja2.TemplateError as error:
        raise invalid(f"the template is wrong: {error.message}", where=source) from error
    except AicrError as error:
        raise invalid("the template asks for what is not there", where=source) from error
    except Exception as error:
        # Whatever a template's expressions do wrong is the template's mistake.
        raise invalid(
            f"the template is wrong: {type(error).__name__}: {error}", where=source
        ) from error
    return rendered if rendered.endswith("\n") else f"{rendered}\n"
