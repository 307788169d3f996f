"""Where the control plane's programs come from, and the agent's pure parts; needs no control plane."""

from __future__ import annotations

import hashlib
import http.client
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane import build
from tests.controlplane.agent import container as container_module
from tests.controlplane.agent import environment, registration
from tests.controlplane.agent.container import Container
from tests.controlplane.agent.handlers import Place
from tests.controlplane.agent.launch import Launch, Mount
from tests.controlplane.agent.logs import Log, LogClock
from tests.controlplane.agent.settings import Image
from tests.controlplane.agent.volumes import swap_files
from tests.controlplane.client import Client, Document, eventually
from tests.controlplane.nodes import Node, read_images


def make_programs(folder: Path) -> None:
    """A folder that looks like a finished build."""
    lines = []
    for name in build.PACKAGES:
        (folder / name).write_bytes(name.encode())
        (folder / name).chmod(0o755)
        lines.append(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n")
    (folder / build.SUMS).write_text("".join(lines))


def test_the_folder_that_the_environment_names_wins(tmp_path: Path) -> None:
    """KUBEBUILDER_ASSETS is used as it is, without Go."""
    make_programs(tmp_path)
    assert build.binaries({"KUBEBUILDER_ASSETS": str(tmp_path), "PATH": ""}) == tmp_path


def test_a_named_folder_without_all_programs_is_refused(tmp_path: Path) -> None:
    """Half a control plane of another release would be worse than none."""
    make_programs(tmp_path)
    (tmp_path / "kube-scheduler").unlink()
    with pytest.raises(build.BuildError, match="has no kube-scheduler; put the programs of one"):
        build.binaries({"KUBEBUILDER_ASSETS": str(tmp_path)})


def test_without_go_it_says_what_to_do(tmp_path: Path) -> None:
    """Install Go, or name a folder."""
    with pytest.raises(build.BuildError, match="install it or set KUBEBUILDER_ASSETS"):
        build.binaries({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})


def test_an_old_go_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    """With both versions in the message."""
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho go1.21.0\n")
    go.chmod(0o755)
    with pytest.raises(build.BuildError, match=r"needs Go 1\.26\.0 or newer; .* is go1\.21\.0"):
        build.binaries({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})


def test_a_cached_build_is_used_and_a_damaged_one_is_built_again(tmp_path: Path) -> None:
    """Every program is compared with its checksum; a build that fails tells Go's own words."""
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\n[ $1 = env ] && echo go1.26.9 && exit\necho no network >&2\nexit 1\n")
    go.chmod(0o755)
    cache = {"PATH": f"{tmp_path}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path)}
    place = tmp_path / "aicr-controlplane" / build.cache_key("go1.26.9")
    place.mkdir(parents=True)
    make_programs(place)
    said: list[str] = []
    assert build.binaries(cache, said.append) == place
    assert said == []
    (place / "etcd").write_bytes(b"half")
    with pytest.raises(build.BuildError, match="go list failed:\nno network"):
        build.binaries(cache, said.append)
    assert "etcd does not match its checksum" in said[0]


def test_the_cache_is_named_after_the_pins_and_the_compiler() -> None:
    """Another Go version, another folder; the release is readable."""
    one, other = build.cache_key("go1.26.0"), build.cache_key("go1.26.1")
    assert one != other
    assert one.startswith(f"{build.kubernetes_version()}-")


def test_every_staging_module_is_pinned_to_the_release() -> None:
    """A module of another patch would build a control plane that nobody has ever released."""
    text = (build.MODULE / "go.mod").read_text()
    wanted = build.kubernetes_version().replace("v1.", "v0.")
    replaced = [line.split() for line in text.splitlines() if "=>" in line]
    assert replaced
    assert {line[-1] for line in replaced} == {wanted}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)", "x1y$(B)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A ${A}", "$A ${A}"),
        ("$(A", "$(A"),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, expected: str) -> None:
    """Unknown names stay, a doubled dollar is one."""
    assert environment.expand(text, {"A": "1"}) == expected


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ({"resource": "limits.cpu"}, "2"),
        ({"resource": "limits.cpu", "divisor": "1m"}, "1500"),
        ({"resource": "limits.memory"}, "68719476736"),
        ({"resource": "requests.memory", "divisor": "1Mi"}, "128"),
        ({"resource": "requests.cpu"}, "0"),
    ],
)
def test_resource_fields_round_up_and_fall_back_to_the_node(
    reference: Document, expected: str
) -> None:
    """No limit means as much as the node has."""
    resources = {"limits": {"cpu": "1500m"}, "requests": {"memory": "128Mi"}}
    node = Node("n", memory="64Gi").document("10.0.0.1", None)
    one = {"name": "c", "resources": resources}
    assert environment.resource_field({}, one, reference, node) == expected


def test_files_of_a_volume_change_all_at_once(tmp_path: Path) -> None:
    """Through one link; what is gone is gone, and nothing happens when nothing has changed."""
    swap_files(tmp_path, {"a": (b"1", 0o644), "d/b": (b"2", 0o600)})
    assert (tmp_path / "a").read_bytes() == b"1"
    assert (tmp_path / "d" / "b").stat().st_mode & 0o777 == 0o600
    first = (tmp_path / "..data").resolve()
    swap_files(tmp_path, {"a": (b"1", 0o644), "d/b": (b"2", 0o600)})
    assert (tmp_path / "..data").resolve() == first
    swap_files(tmp_path, {"a": (b"3", 0o644)})
    assert (tmp_path / "a").read_bytes() == b"3"
    assert not (tmp_path / "d").exists()
    assert not first.exists()


def test_an_image_entry_of_another_form_is_refused(tmp_path: Path) -> None:
    """With the file and the image in the message."""
    file = tmp_path / "images.yaml"
    file.write_text("some/image: {run: this}\n")
    with pytest.raises(ValueError, match="some/image: give a list of words, or entrypoint"):
        read_images(file)


def test_an_answer_that_breaks_off_is_asked_for_again() -> None:
    """A server that is killed in the middle of an answer raises what is no OSError."""
    broken = [http.client.BadStatusLine(""), http.client.IncompleteRead(b"half")]

    def ask() -> bool:
        if broken:
            raise broken.pop()
        return True

    assert eventually("an answer", ask, pause=0) is True


def test_an_agent_goes_on_watching_when_a_list_of_pods_breaks_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else its node would never hear of a pod again."""
    monkeypatch.setattr(registration, "RETRY_SECONDS", 0)
    stopped = threading.Event()

    class Breaks(Client):
        def __init__(self) -> None:
            self.asked = 0

        def call(self, *_: object, **__: object) -> Document:
            self.asked += 1
            if self.asked == 1:
                raise http.client.IncompleteRead(b"half")
            stopped.set()
            return {"items": [{"metadata": {"uid": "1"}}], "metadata": {"resourceVersion": "1"}}

    seen: list[str] = []
    registration.follow_pods(
        Breaks(), "", lambda kind, _: seen.append(kind), lambda _: None, stopped
    )
    assert seen == ["MODIFIED"]


class Asks(LogClock):
    """Asks for the log of a container at the moment at which its program has been started."""

    def __init__(self) -> None:
        self.container: Container | None = None
        self.seen: list[str] = []

    def add(self, log: Log) -> None:
        """Its file is there, and the run is not yet."""
        assert self.container is not None
        try:
            _, over = self.container.log(previous=False)
            self.seen.append("over" if over() else "goes on")
        except LookupError as error:
            self.seen.append(str(error))

    def remove(self, log: Log) -> None:
        """The run has ended."""


class Around:
    """What a container needs from its pod."""

    def __init__(self) -> None:
        self.clock, self.ended = Asks(), threading.Event()

    def post(self, _: object) -> None:
        """Its end is told."""
        self.ended.set()

    def event(self, *_: str) -> None:
        """Not looked at."""

    def image(self, _: str) -> Image:
        """Any."""
        return Image(["true"], [], {}, "/")

    def environment(self, *_: object) -> dict[str, str]:
        """None."""
        return {}

    def mounts(self, *_: object) -> list[Mount]:
        """None."""
        return []

    def launch(self, *, spec: Document, **own: Any) -> Launch:
        """In its folder."""
        (own["folder"] / "setup").touch()
        return Launch(own["folder"], None, spec["name"], ["true"], "/", [], [])

    def place(self, pid: int, variables: dict[str, str], _: Launch) -> Place:
        """Here."""
        return Place(pid, "127.0.0.1", {}, variables)


def test_a_log_that_is_asked_for_while_its_container_starts_has_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever follows it would else be told the end of a log that has only begun."""
    monkeypatch.setattr(container_module, "command", lambda _: ["/bin/true"])
    around = Around()
    one = Container({"name": "c", "image": "i"}, "main", around, tmp_path / "c", "Never")
    around.clock.container = one
    one.ensure()
    assert around.ended.wait(60)
    assert around.clock.seen == ['container "c" is waiting to start: PodInitializing']
