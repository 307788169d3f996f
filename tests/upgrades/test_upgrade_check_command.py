"""`aicr upgrade-check`: verdicts, steps, exit status and wrong input."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.program import EKS, aicr

GKE = (
    *("--service", "gke", "--accelerator", "h100", "--intent", "inference"),
    *("--os", "cos", "--platform", "dynamo"),
)


KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: {address}}}}}]
users: [{{name: u, user: {{}}}}]
"""


@contextlib.contextmanager
def config_map_served(namespace: str, name: str, data: dict[str, str]) -> Iterator[str]:
    """Address of an API server that has one ConfigMap and nothing else."""
    place = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
    held = {"metadata": {"name": name, "namespace": namespace}, "data": data}
    absent = {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found: none"}

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path.partition("?")[0] == place
            body = json.dumps(held if found else absent).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing on stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Today's recipe with grove, and one as it was before."""
    folder = tmp_path_factory.mktemp("upgrade")
    assert aicr("recipe", *GKE, "-o", folder / "now.yaml").status == 0
    assert aicr("recipe", *EKS, "-o", folder / "eks.yaml").status == 0
    document = yaml.safe_load((folder / "now.yaml").read_text())
    write(folder / "before.yaml", document, {"grove": "v0.1.0-alpha.9"})
    return folder


def write(path: Path, document: dict[str, Any], versions: dict[str, str]) -> None:
    """A recipe with other versions."""
    refs = [
        {**ref, "version": versions.get(ref["name"], ref.get("version", ""))}
        for ref in document["componentRefs"]
    ]
    path.write_text(yaml.safe_dump({**document, "componentRefs": refs}, sort_keys=False))


def test_nothing_that_changes_needs_nothing(files: Path) -> None:
    """Exit 0 (decision 46)."""
    done = aicr("upgrade-check", "--from", files / "now.yaml", "--to", files / "now.yaml")
    assert (done.status, done.out) == (0, "no component changes its version\n")


@pytest.mark.parametrize("to", [True, False])
def test_a_manual_transition_shows_its_steps_and_needs_attention(files: Path, to: bool) -> None:
    """Without --to the criteria are resolved again; exit 8 (9.3, decision 46)."""
    target = ("--to", files / "now.yaml") if to else ()
    done = aicr("upgrade-check", "--from", files / "before.yaml", *target)
    assert done.status == 8
    for word in ("grove", "v0.1.0-alpha.9", "manual", "1. kubectl delete crd", "no way back"):
        assert word in done.out
    assert "1 needs attention" in done.err


def test_a_recipe_is_read_from_a_config_map(files: Path, tmp_path: Path) -> None:
    """--from cm://namespace/name, in the cluster that --kubeconfig names (9.3)."""
    text = (files / "before.yaml").read_text()
    with config_map_served("ops", "running", {"recipe.yaml": text, "other": ""}) as address:
        kubeconfig = tmp_path / "config"
        kubeconfig.write_text(KUBECONFIG.format(address=address))
        words = ("--to", files / "now.yaml", "--kubeconfig", kubeconfig)
        done = aicr("upgrade-check", "--from", "cm://ops/running", *words)
        assert done.status == 8, done.err
        assert "v0.1.0-alpha.9" in done.out
        differs = aicr("diff", "cm://ops/running", files / "now.yaml", "-k", kubeconfig)
        assert differs.status == 8, differs.err
        assert "v0.1.0-alpha.9" in differs.out
        made = aicr("bundle", "-r", "cm://ops/running", "-o", tmp_path / "b", "-k", kubeconfig)
        assert made.status == 0, made.err
        missing = aicr("upgrade-check", "--from", "cm://ops/none", *words)
        missing.refused(3, "none")


def test_the_status_can_be_switched_off(files: Path) -> None:
    """--fail-on-error=false says the same and exits 0 (9.3)."""
    words = ("upgrade-check", "-f", files / "before.yaml", "--fail-on-error=false")
    done = aicr(*words)
    assert done.status == 0
    assert "manual" in done.out


def test_a_change_without_a_record_is_unknown(files: Path, tmp_path: Path) -> None:
    """Nobody said that it is safe."""
    document = yaml.safe_load((files / "now.yaml").read_text())
    write(tmp_path / "old.yaml", document, {"cert-manager": "v1.19.0"})
    done = aicr("upgrade-check", "-f", tmp_path / "old.yaml", "--to", files / "now.yaml")
    assert done.status == 8
    assert "unknown" in done.out


@pytest.mark.parametrize("deployer", ["helm", "argocd"])
def test_json_says_everything_for_one_deployer(files: Path, deployer: str) -> None:
    """All components, their verdicts, and the steps of the deployer."""
    words = ("upgrade-check", "-f", files / "before.yaml", "-d", deployer, "--format")
    found = json.loads(aicr(*words, "json").out)
    assert found == yaml.safe_load(aicr(*words, "yaml").out)
    assert (found["deployer"], found["needsAttention"]) == (deployer, True)
    rows = {row["component"]: row for row in found["components"]}
    assert rows["cert-manager"]["verdict"] == "unchanged"
    transition = rows["grove"]["transitions"][0]
    assert transition["verdict"] == "manual"
    assert transition["reversible"] is False
    assert [step["id"] for step in transition["steps"]][-1] == "deploy"


def test_a_bundle_brings_its_deployer(files: Path, tmp_path: Path) -> None:
    """The steps are those of the deployer that made it."""
    place = ("--system-node-selector", "a=b", "--accelerated-node-selector", "a=b")
    words = ("bundle", "-r", files / "now.yaml", "-d", "helmfile", "-o", tmp_path / "b", *place)
    assert aicr(*words, "--storage-class", "x").status == 0
    done = aicr("upgrade-check", "-f", files / "before.yaml", "--to", tmp_path / "b", "-t", "json")
    assert done.status == 8, done.err
    assert json.loads(done.out)["deployer"] == "helmfile"


def test_new_and_removed_components_are_said(files: Path) -> None:
    """They need nobody by themselves."""
    done = aicr("upgrade-check", "-f", files / "eks.yaml", "--to", files / "now.yaml", "-t", "json")
    verdicts = {row["component"]: row["verdict"] for row in json.loads(done.out)["components"]}
    assert verdicts["grove"] == "added"
    assert verdicts["aws-efa"] == "removed"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 2, "flag --from is required"),
        (["-f", "nonesuch.yaml"], 3, "not found"),
        (["-f", "now.yaml", "-d", "helmm"], 2, "helmm"),
        (["-f", "now.yaml", "-t", "text"], 2, "valid formats are: table, json, yaml"),
        (["-f", "now.yaml", "--fail-on-error=no"], 2, "--fail-on-error"),
        (["-f", "snap.yaml"], 2, "is a snapshot"),
        (["-f", "cm://name"], 2, "does not name a ConfigMap"),
        (["-f", "cm://ns/name", "-k", "nonesuch"], 2, "the kubeconfig nonesuch"),
        (["-f", "-", "--to", "-"], 2, "only one side can come from standard input"),
    ],
)
def test_wrong_input_is_refused(
    files: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], status: int, said: str
) -> None:
    """One error, nothing on stdout."""
    (files / "snap.yaml").write_text(
        "kind: Snapshot\napiVersion: aicr.run/v1\nmeasurements: []\n", encoding="utf-8"
    )
    monkeypatch.chdir(files)
    aicr("upgrade-check", *words).refused(status, said)
