"""What to ask an API server: paths, queries, bodies and content types, as plain values.

Pure. Each function returns a `Request` that any transport can send; nothing here opens a socket,
reads a clock or knows credentials. Path segments come from users' documents, so every one of them
is checked: a name with a slash must be an error and not another path.

Source: Kubernetes API concepts (resource paths, server-side apply, deletion, paging, watch).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from aicr.errors import invalid, nearest
from aicr.kube.kinds import Resource

JSON: Final = "application/json"

#: Our word → media type.
PATCH_TYPES: Final = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
#: JSON is YAML, and servers before 1.33 take server-side apply only under this name.
APPLY_TYPE: Final = "application/apply-patch+yaml"
PROPAGATION: Final = ("Background", "Foreground", "Orphan")

Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `verb` is the Kubernetes verb (what RBAC is asked), `method` the HTTP one."""

    verb: str
    method: str
    path: str
    query: Query = ()
    body: bytes = field(default=b"", repr=False)  # a Secret must not reach a log through a repr
    content_type: str = ""
    accept: str = JSON
    resource: Resource | None = None
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def target(self) -> str:
        """Path and query as sent."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    @property
    def subject(self) -> str:
        """What the request is about, for messages: ``pods/exec "x" in namespace "y"``."""
        if self.resource is None:
            return self.path
        text = self.resource.qualified + (f"/{self.subresource}" if self.subresource else "")
        if self.name:
            text += f' "{self.name}"'
        return text + (f' in namespace "{self.namespace}"' if self.namespace else "")


def segment(value: str, what: str) -> str:
    """*value* as one path segment; INVALID_REQUEST if it cannot be one."""
    if not isinstance(value, str) or not value:
        raise invalid(f"{what} is missing")
    if value in {".", ".."} or "/" in value or "%" in value:
        raise invalid(f'{what} "{value}" must not contain "/" or "%" or be "." or ".."')
    return quote(value, safe=":@!$&'()*+,;=~")


def path_of(
    resource: Resource, *, namespace: str = "", name: str = "", subresource: str = ""
) -> str:
    """The path of a collection, an object or a subresource.

    A namespace given for a kind that has none is ignored, as kubectl does: callers pass the namespace
    of their run for every document. INVALID_REQUEST for an object of a namespaced kind without one.
    """
    root = f"/apis/{segment(resource.group, 'API group')}" if resource.group else "/api"
    path = f"{root}/{segment(resource.version, 'API version')}"
    if resource.namespaced and namespace:
        path += f"/namespaces/{segment(namespace, 'namespace')}"
    elif resource.namespaced and name:
        raise invalid(
            f'{resource.kind} "{name}" needs a namespace',
            hint="set metadata.namespace, or pass the namespace",
        )
    path += f"/{segment(resource.plural, 'resource')}"
    if name:
        path += f"/{segment(name, f'name of {resource.kind}')}"
    if subresource:
        if not name:
            raise invalid(f"subresource {subresource} of {resource.qualified} needs a name")
        # A subresource may have levels: nodes/NAME/proxy/metrics.
        path += "".join(f"/{segment(part, 'subresource')}" for part in subresource.split("/"))
    return path


def label_selector(selector: str | Mapping[str, Any] | None) -> str:
    """A label selector as the query wants it.

    Text is passed on; a mapping of strings means equality with each; a LabelSelector
    (``matchLabels``, ``matchExpressions``) is written out. INVALID_REQUEST for other shapes.
    """
    if not selector:
        return ""
    if isinstance(selector, str):
        return selector
    if selector.keys() <= {"matchLabels", "matchExpressions"}:
        labels = selector.get("matchLabels") or {}
        terms = [f"{key}={value}" for key, value in sorted(labels.items())]
        terms += [_expression(term) for term in selector.get("matchExpressions") or []]
        return ",".join(terms)
    for key, value in selector.items():
        if not isinstance(value, str):
            raise invalid(f"label {key} of a selector must be text, not {value!r}")
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))


def _expression(term: Mapping[str, Any]) -> str:
    key, operator, values = term.get("key"), term.get("operator"), term.get("values") or []
    if not key:
        raise invalid("a matchExpressions entry has no key")
    if operator in {"In", "NotIn"}:
        if not values:
            raise invalid(f'matchExpressions for "{key}": {operator} needs values')
        return f"{key} {'in' if operator == 'In' else 'notin'} ({','.join(sorted(values))})"
    if operator in {"Exists", "DoesNotExist"}:
        if values:
            raise invalid(f'matchExpressions for "{key}": {operator} takes no values')
        return str(key) if operator == "Exists" else f"!{key}"
    known = ["In", "NotIn", "Exists", "DoesNotExist"]
    raise invalid(
        f'matchExpressions for "{key}": unknown operator {operator!r}',
        hint=f"one of {', '.join(known)}",
    )


def field_selector(selector: str | Mapping[str, str] | None) -> str:
    """A field selector as the query wants it: text as is, a mapping as escaped equalities."""
    if not selector:
        return ""
    if isinstance(selector, str):
        return selector
    escape = str.maketrans({"\\": "\\\\", ",": "\\,", "=": "\\="})
    return ",".join(f"{key}={value.translate(escape)}" for key, value in sorted(selector.items()))


def _query(**parameters: str | int | bool | None) -> Query:
    """Those parameters that are set; False, 0, None and "" count as not set."""
    shown = []
    for name, value in parameters.items():
        if value:
            shown.append((name, "true" if value is True else str(value)))
    return tuple(shown)


def get(resource: Resource, name: str, *, namespace: str = "", subresource: str = "") -> Request:
    """Read one object or subresource."""
    if not name:
        raise invalid(f"name of {resource.kind} is missing")
    path = path_of(resource, namespace=namespace, name=name, subresource=subresource)
    return Request("get", "GET", path, **_about(resource, namespace, name, subresource))


def list_page(
    resource: Resource,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    limit: int = 0,
    continue_token: str = "",
    resource_version: str = "",
) -> Request:
    """One page of a list. A continue token fixes the version, so both cannot be given."""
    if continue_token and resource_version:
        raise invalid("a continued list takes no resourceVersion")
    query = _query(
        labelSelector=labels,
        fieldSelector=fields,
        limit=limit,
        resourceVersion=resource_version,
        **{"continue": continue_token},
    )
    path = path_of(resource, namespace=namespace)
    return Request("list", "GET", path, query, **_about(resource, namespace))


def watch(
    resource: Resource,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    resource_version: str = "",
    timeout_seconds: int = 0,
    initial_events: bool = False,
) -> Request:
    """A watch with bookmarks; with *initial_events* the server sends what exists first (WatchList)."""
    query = _query(
        watch=True,
        allowWatchBookmarks=True,
        labelSelector=labels,
        fieldSelector=fields,
        resourceVersion=resource_version,
        timeoutSeconds=timeout_seconds,
        sendInitialEvents=initial_events,
        resourceVersionMatch="NotOlderThan" if initial_events else "",
    )
    path = path_of(resource, namespace=namespace)
    return Request("watch", "GET", path, query, **_about(resource, namespace))


def create(
    resource: Resource,
    document: Mapping[str, Any],
    *,
    namespace: str = "",
    name: str = "",
    subresource: str = "",
    field_manager: str = "",
    dry_run: bool = False,
    validation: str = "",
) -> Request:
    """Create *document*; *name* and *subresource* for the likes of ``pods/NAME/eviction``."""
    if subresource and not name:
        raise invalid(f"subresource {subresource} of {resource.qualified} needs a name")
    if resource.namespaced and not namespace:
        raise invalid(
            f"creating a {resource.kind} needs a namespace",
            hint="set metadata.namespace, or pass the namespace",
        )
    path = path_of(resource, namespace=namespace, name=name, subresource=subresource)
    query = _writing(field_manager, dry_run, validation)
    body, about = encode(document), _about(resource, namespace, name, subresource)
    return Request("create", "POST", path, query, body, JSON, **about)


def update(
    resource: Resource,
    document: Mapping[str, Any],
    *,
    namespace: str = "",
    subresource: str = "",
    field_manager: str = "",
    dry_run: bool = False,
) -> Request:
    """Replace an object; ``metadata.resourceVersion`` in it makes a concurrent change a CONFLICT."""
    name = str((document.get("metadata") or {}).get("name") or "")
    if not name:
        raise invalid(f"metadata.name of {resource.kind} is missing")
    path = path_of(resource, namespace=namespace, name=name, subresource=subresource)
    query, about = _writing(field_manager, dry_run), _about(resource, namespace, name, subresource)
    return Request("update", "PUT", path, query, encode(document), JSON, **about)


def apply(
    resource: Resource,
    document: Mapping[str, Any],
    *,
    field_manager: str,
    namespace: str = "",
    subresource: str = "",
    force: bool = False,
    dry_run: bool = False,
    validation: str = "",
) -> Request:
    """Server-side apply. ``managedFields`` is left out, as the server refuses it there."""
    if not field_manager:
        raise invalid("server-side apply needs a field manager")
    metadata = dict(document.get("metadata") or {})
    name = str(metadata.get("name") or "")
    if not name:
        raise invalid(
            f"metadata.name of {resource.kind} is missing",
            hint="server-side apply takes no generateName; use create",
        )
    metadata.pop("managedFields", None)
    path = path_of(resource, namespace=namespace, name=name, subresource=subresource)
    query = (*_writing(field_manager, dry_run, validation), *_query(force=force))
    body, about = (
        encode({**document, "metadata": metadata}),
        _about(resource, namespace, name, subresource),
    )
    return Request("patch", "PATCH", path, query, body, APPLY_TYPE, **about)


def patch(
    resource: Resource,
    name: str,
    change: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    form: str = "merge",
    namespace: str = "",
    subresource: str = "",
    field_manager: str = "",
    dry_run: bool = False,
) -> Request:
    """Patch an object; *form* is ``merge``, ``json`` (a list of operations) or ``strategic``."""
    if form not in PATCH_TYPES:
        close = nearest(form, list(PATCH_TYPES))
        raise invalid(
            f'unknown kind of patch "{form}"',
            hint=f'did you mean "{close}"?' if close else f"one of {', '.join(PATCH_TYPES)}",
        )
    if (form == "json") == isinstance(change, Mapping):
        raise invalid(f"a {form} patch is a {'list' if form == 'json' else 'mapping'}")
    if not name:
        raise invalid(f"name of {resource.kind} is missing")
    path = path_of(resource, namespace=namespace, name=name, subresource=subresource)
    query, about = _writing(field_manager, dry_run), _about(resource, namespace, name, subresource)
    return Request("patch", "PATCH", path, query, encode(change), PATCH_TYPES[form], **about)


def delete(
    resource: Resource,
    name: str,
    *,
    namespace: str = "",
    uid: str = "",
    resource_version: str = "",
    propagation: str = "",
    grace_seconds: int | None = None,
    dry_run: bool = False,
) -> Request:
    """Delete an object. With *uid* only that very object: another of the same name is a CONFLICT."""
    if not name:
        raise invalid(f"name of {resource.kind} is missing")
    path = path_of(resource, namespace=namespace, name=name)
    body = delete_options(uid, resource_version, propagation, grace_seconds, dry_run)
    about = _about(resource, namespace, name)
    return Request("delete", "DELETE", path, (), encode(body), JSON, **about)


def delete_options(
    uid: str, resource_version: str, propagation: str, grace_seconds: int | None, dry_run: bool
) -> dict[str, Any]:
    """The DeleteOptions document; INVALID_REQUEST for an unknown propagation or a negative grace."""
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    expected = {"uid": uid, "resourceVersion": resource_version}
    preconditions = {key: value for key, value in expected.items() if value}
    if preconditions:
        options["preconditions"] = preconditions
    if propagation:
        if propagation not in PROPAGATION:
            raise invalid(
                f'unknown propagation policy "{propagation}"',
                hint=f"one of {', '.join(PROPAGATION)}",
            )
        options["propagationPolicy"] = propagation
    if grace_seconds is not None:
        if grace_seconds < 0:
            raise invalid(f"grace period {grace_seconds} is negative")
        options["gracePeriodSeconds"] = grace_seconds
    if dry_run:
        options["dryRun"] = ["All"]
    return options


def raw(path: str, *, accept: str = JSON, verb: str = "get") -> Request:
    """A GET of a path that is no resource: ``/version``, ``/apis``, ``/readyz``."""
    return Request(verb, "GET", path, accept=accept)


def encode(document: object) -> bytes:
    """JSON bytes; INVALID_REQUEST if the document has values that JSON does not."""
    try:
        return msgspec.json.encode(document)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise invalid(f"the document cannot be written as JSON: {error}") from error


def _writing(field_manager: str, dry_run: bool, validation: str = "") -> Query:
    dry = "All" if dry_run else ""
    return _query(fieldManager=field_manager, dryRun=dry, fieldValidation=validation)


def _about(
    resource: Resource, namespace: str = "", name: str = "", subresource: str = ""
) -> dict[str, Any]:
    return {
        "resource": resource,
        "namespace": namespace if resource.namespaced else "",
        "name": name,
        "subresource": subresource,
    }
