"""Finds what pods fetch from a network when they start: packages, repositories, files.

Behind an air gap such a pod waits for ever, and no list of images shows it. Every command, argument
and script of a document is read line by line; descriptions and schemas are not. A host inside the
cluster or the pod is no download.

It must not know components. Source: field case L3; air-gap pain 75.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, Final

#: Options of a command before its verb; apt's take a value with "::" in it.
_OPTIONS: Final = r"(?:-\S+\s+(?:\S+::\S+\s+)?)*"
_PATTERNS: Final = (
    ("apt", rf"\bapt(?:-get)?\s+{_OPTIONS}(?:install|update|upgrade|dist-upgrade)\b"),
    ("yum", rf"\b(?:yum|dnf|microdnf|tdnf|zypper)\s+{_OPTIONS}(?:install|update|upgrade)\b"),
    ("apk", rf"\bapk\s+{_OPTIONS}(?:add|update)\b"),
    ("git", r"\bgit\s+(?:-\S+(?:\s+/\S+)?\s+)*(?:clone|fetch|pull|submodule\s+update)\b"),
    (
        "pip",
        rf"\b(?:pip3?|python3?\s+-m\s+pip|uv\s+pip|pipx)\s+{_OPTIONS}(?:install|download)\b"
        r"(?!.*\s--no-index\b)",
    ),
    ("uv", r"\buv\s+(?:sync|add|tool\s+install)\b"),
    ("npm", r"\b(?:npm|yarn|pnpm)\s+(?:ci|install|add)\b"),
    ("conda", r"\b(?:conda|mamba)\s+(?:install|create|update)\b"),
    ("go", r"\bgo\s+(?:install|get|mod\s+download)\b"),
    ("gem", r"\bgem\s+install\b"),
    ("cargo", r"\bcargo\s+(?:install|fetch)\b"),
    ("helm", r"\bhelm\s+(?:repo\s+(?:add|update)|pull|dependency\s+(?:build|update))\b"),
    ("huggingface", r"\b(?:huggingface-cli|hf)\s+download\b"),
    ("ngc", r"\bngc\s+registry\s+(?:model|resource|image)\s+(?:download-version|pull)\b"),
    ("aws", r"\baws\s+s3\s+(?:cp|sync)\s+(?:-\S+\s+)*s3://"),
    ("gsutil", rf"\bgsutil\s+{_OPTIONS}(?:cp|rsync)\s+(?:-\S+\s+)*gs://"),
    ("gcloud", r"\bgcloud\s+storage\s+(?:cp|rsync)\s+(?:-\S+\s+)*gs://"),
    ("azcopy", r"\bazcopy\s+(?:copy|cp|sync)\b"),
    ("image", rf"\b(?:docker|podman|nerdctl|crictl|oras)\s+{_OPTIONS}pull\b"),
    ("image", r"\bctr\s+(?:\S+\s+){0,6}?(?:images?|i)\s+pull\b"),
    ("image", rf"\bskopeo\s+{_OPTIONS}(?:copy|sync)\b"),
)
_COMPILED: Final = tuple((name, re.compile(pattern)) for name, pattern in _PATTERNS)
_FETCHER: Final = re.compile(r"\b(curl|wget|aria2c)\b(.*)")
_APPLY: Final = re.compile(
    r"\b(?:kubectl|helm)\b.*?\s(?:-f|-k|install|upgrade)\b.*?((?:https?|oci)://\S+)"
)
#: curl and wget take an address without its scheme, unless it is the value of such an option.
_BARE: Final = re.compile(
    r"\s(?<!\s-[oOTdHKFbcDPiE] )(?<!--output )(?<!--data )(?<!--cacert )(?<!--cert )(?<!--key )"
    r"[\"']?((?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,})(?::\d+)?/"
)
_URL: Final = re.compile(r"\b(?:https?|ftp|oci)://(\[[0-9a-fA-F:]+\]|[^\s/\"':?#$]*)")
_INSIDE: Final = re.compile(
    r"localhost|127\.\S*|\[::1?\]|0\.0\.0\.0|169\.254\.169\.254|metadata(?:\.google\.internal)?"
    r"|[^.]*|.*\.svc(?:\.cluster\.local)?|.*\.cluster\.local"
)
#: Where a pod finds the API server of its own cluster.
_NOT_API: Final = r"(?!\$\{?KUBERNETES_(?:SERVICE_|PORT))"
_SHELL: Final = re.compile(r"^(?:/\S*/)?(?:ba|da)?sh -\w*c ")
_SKIPPED_KINDS: Final = ("CustomResourceDefinition",)
_SKIPPED_KEYS: Final = ("description", "annotations", "labels", "managedFields")
_LONGEST: Final = 120


@dataclasses.dataclass(frozen=True, order=True, slots=True)
class Download:
    """One command that fetches something.

    Attributes:
        where: the object, ``Kind namespace/name`` or the name of a values file.
        path: path of the text in it.
        tool: what fetches, for example ``apt``.
        line: the line, shortened.
    """

    where: str
    path: str
    tool: str
    line: str


def downloads(document: Any, *, where: str) -> list[Download]:
    """The downloads in one document, in its order, each once."""
    if isinstance(document, dict) and document.get("kind") in _SKIPPED_KINDS:
        return []
    found: list[Download] = []
    for path, text in _texts(document, ()):
        for line in _lines(text):
            tool = tool_of(line)
            if tool:
                found.append(Download(where, path, tool, _short(line)))
    return list(dict.fromkeys(found))


def object_name(document: Any) -> str:
    """How a Kubernetes object is called in a report, "" for what is none."""
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        return ""
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name") or metadata.get("generateName") or "?"
    namespace = metadata.get("namespace")
    return f"{document['kind']} {namespace}/{name}" if namespace else f"{document['kind']} {name}"


def tool_of(line: str) -> str:
    """What fetches in a line of a script, "" when nothing does."""
    code = line.strip()
    if code.startswith(("#", "//")):
        return ""
    for name, pattern in _COMPILED:
        if pattern.search(code):
            return name
    match = _FETCHER.search(code)
    if match is not None:
        hosts = [host.partition(":")[0] for host in _URL.findall(match.group(2))]
        if any(not _INSIDE.fullmatch(host) for host in hosts):
            return match.group(1)
        # An address that is put together at run time, for example from a variable.
        if re.search(rf"(?:https?|ftp)://{_NOT_API}\S*[$]", match.group(2)):
            return match.group(1)
        if not hosts and any(not _INSIDE.fullmatch(host) for host in _BARE.findall(match.group(2))):
            return match.group(1)
        if not hosts and re.search(r"\s[\"']?\$\{?\w*(?:URL|URI|MIRROR)\w*", match.group(2), re.I):
            return match.group(1)
    applied = _APPLY.search(code)
    if applied is not None:
        hosts = _URL.findall(applied.group(1))
        if any(not _INSIDE.fullmatch(host.partition(":")[0]) for host in hosts):
            return "kubectl" if "kubectl" in code else "helm"
    return ""


def _texts(node: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        # ["pip"] with ["install", "x"] is one command, however it is cut.
        words = [*_words(node.get("command")), *_words(node.get("args"))]
        if words:
            yield (
                ".".join((*path, "command" if _words(node.get("command")) else "args")),
                " ".join(words),
            )
        for key, value in node.items():
            if key in _SKIPPED_KEYS or (key in ("command", "args") and _words(value)):
                continue
            yield from _texts(value, (*path, str(key)))
    elif isinstance(node, list):
        for index, item in enumerate(node):
            yield from _texts(item, (*path, str(index)))
    elif isinstance(node, str):
        yield ".".join(path), node


def _words(value: Any) -> list[str]:
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return value
    return []


def _lines(text: str) -> Iterator[str]:
    for line in text.replace("\\\n", " ").splitlines():
        yield from re.split(r"&&|\|\||;", line)


def _short(line: str) -> str:
    line = _SHELL.sub("", " ".join(line.split()))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
