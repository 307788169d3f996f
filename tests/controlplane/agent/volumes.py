"""A pod's volumes: folders of the agent's that its containers see.

Files from the API (ConfigMaps, Secrets, tokens, downward fields) are laid out as the real kubelet
does it: a dated folder, a link `..data` to it that is swapped as a whole, and links to the files
through it. So a program that watches for a change sees what it would see in production.

A hostPath is a path on the *node's* disk, which is a folder of the agent's and not this machine's.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tests.controlplane.agent import environment
from tests.controlplane.agent.environment import ConfigError, Lookup, expand
from tests.controlplane.agent.launch import Mount
from tests.controlplane.client import Document

#: Audience, lifetime in seconds → token of the pod's service account, bound to the pod.
Token = Callable[[str, int], str]
Files = dict[str, tuple[bytes, int]]
#: Paths of this machine that a hostPath may name as they are.
REAL_HOST_PATHS: Final = ("/dev", "/proc", "/sys")
TOKEN_SECONDS: Final = 3600


class Volumes:
    """The volumes of one pod, below *folder*."""

    def __init__(
        self, folder: Path, disk: Path, node: Document, lookup: Lookup, token: Token
    ) -> None:
        self._folder, self._disk, self._node = folder, disk, node
        self._lookup, self._token = lookup, token
        self._tokens: dict[tuple[str, int], tuple[str, float]] = {}
        self._places: dict[str, Path] = {}

    def prepare(self, pod: Document) -> None:
        """Make every volume, or bring its files up to date.

        Raises:
            ConfigError: something a volume needs is not there, or its type is not supported.
        """
        for volume in pod["spec"].get("volumes", []):
            name = volume["name"]
            self._places[name] = self._prepared(pod, volume, self._folder / name)

    def changing(self, pod: Document) -> bool:
        """Whether any volume has files that can change while the pod runs."""
        kinds = ("configMap", "secret", "projected", "downwardAPI")
        return any(kind in volume for volume in pod["spec"].get("volumes", []) for kind in kinds)

    def mounts(self, container: Document, variables: dict[str, str]) -> list[Mount]:
        """Where a container sees the volumes."""
        result = []
        for one in container.get("volumeMounts", []):
            source = self._places[one["name"]]
            below = one.get("subPath") or expand(one.get("subPathExpr", ""), variables)
            if below:
                if ".." in Path(below).parts or below.startswith("/"):
                    raise ConfigError(f"subPath {below!r} leaves its volume")
                source = source / below
                if not source.exists():
                    source.mkdir(parents=True)
                source = source.resolve()
            result.append(Mount(source, one["mountPath"], bool(one.get("readOnly"))))
        return result

    def _prepared(self, pod: Document, volume: Document, place: Path) -> Path:
        if "emptyDir" in volume:
            if not place.exists():
                place.mkdir(parents=True)
                place.chmod(0o777)
            return place
        if path := volume.get("hostPath"):
            return self._host_path(path["path"], path.get("type", ""))
        place.mkdir(parents=True, exist_ok=True)
        swap_files(place, self._files(pod, volume))
        return place

    def _host_path(self, path: str, kind: str) -> Path:
        normal = os.path.normpath(path)
        if any(normal == real or normal.startswith(f"{real}/") for real in REAL_HOST_PATHS):
            return Path(normal)
        place = self._disk / normal.lstrip("/")
        if kind == "FileOrCreate":
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        elif kind in {"", "DirectoryOrCreate"}:
            if not place.exists():
                place.mkdir(parents=True)
        elif kind == "Directory" and not place.is_dir():
            raise ConfigError(f"hostPath type check failed: {path} is not a directory")
        elif kind == "File" and not place.is_file():
            raise ConfigError(f"hostPath type check failed: {path} is not a file")
        elif not place.exists():
            raise ConfigError(f"the test node agent supports no hostPath of type {kind}")
        return place

    def _files(self, pod: Document, volume: Document) -> Files:
        if "projected" in volume:
            source = volume["projected"]
            result: Files = {}
            for one in source.get("sources", []):
                result.update(self._source(pod, one, source.get("defaultMode", 0o644)))
            return result
        if source := volume.get("secret"):
            source = {**source, "name": source["secretName"]}
            return self._source(pod, {"secret": source}, source.get("defaultMode", 0o644))
        known: Document = {
            key: volume[key] for key in ("configMap", "downwardAPI") if key in volume
        }
        if not known:
            kinds = ", ".join(key for key in volume if key != "name")
            raise ConfigError(
                f'volume "{volume["name"]}": the test node agent has no {kinds} volumes'
            )
        return self._source(pod, known, next(iter(known.values())).get("defaultMode", 0o644))

    def _source(self, pod: Document, source: Document, mode: int) -> Files:
        for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
            if reference := source.get(field):
                return self._object_files(kind, reference, mode)
        if reference := source.get("downwardAPI"):
            return {
                item["path"]: (self._downward(pod, item).encode(), item.get("mode", mode))
                for item in reference.get("items", [])
            }
        if reference := source.get("serviceAccountToken"):
            seconds = reference.get("expirationSeconds", TOKEN_SECONDS)
            token = self._current_token(reference.get("audience", ""), seconds)
            return {reference["path"]: (token.encode(), mode)}
        raise ConfigError(f"the test node agent projects no {', '.join(source)}")

    def _object_files(self, kind: str, reference: Document, mode: int) -> Files:
        data = environment.object_data(kind, reference, self._lookup)
        items = reference.get("items")
        if items is None:
            return {key: (content, mode) for key, content in data.items()}
        result: Files = {}
        for item in items:
            if item["key"] in data:
                result[item["path"]] = (data[item["key"]], item.get("mode", mode))
            elif not reference.get("optional"):
                raise ConfigError(f"{kind} {reference['name']} has no key {item['key']}")
        return result

    def _downward(self, pod: Document, item: Document) -> str:
        if field := item.get("fieldRef"):
            return environment.pod_field(pod, field["fieldPath"])
        return environment.resource_field(pod, {}, item["resourceFieldRef"], self._node)

    def _current_token(self, audience: str, seconds: int) -> str:
        token, renew_at = self._tokens.get((audience, seconds), ("", 0.0))
        if time.monotonic() >= renew_at:
            token = self._token(audience, seconds)
            self._tokens[audience, seconds] = (token, time.monotonic() + seconds * 0.8)
        return token


def swap_files(place: Path, files: Files) -> None:
    """Make *place* hold *files*, all at once; nothing happens when it does already."""
    data = place / "..data"
    if data.exists() and _present(data) == files:
        return
    fresh = place / f"..{time.time_ns()}"
    for name, (content, mode) in files.items():
        path = fresh / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
    fresh.mkdir(exist_ok=True)
    old = data.resolve() if data.exists() else None
    link = place / "..data_tmp"
    link.symlink_to(fresh.name)
    link.replace(data)
    _link_names(place, {Path(name).parts[0] for name in files})
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _link_names(place: Path, wanted: Iterable[str]) -> None:
    names = set(wanted)
    for name in names:
        if not (place / name).is_symlink():
            (place / name).symlink_to(Path("..data") / name)
    for entry in place.iterdir():
        if not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()


def _present(data: Path) -> Files:
    root = data.resolve()
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in root.rglob("*")
        if path.is_file()
    }
