"""Charts in the bundle: pulled by the real helm from a repository of our own, or at hand."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import tools
from tests.bundle.chart_repository import CRD, DEPLOYMENT, HOOK, helm, packaged, served
from tests.bundle.sample_catalogues import World

from aicr.artifacts import checksums
from aicr.bundle import (
    chart_archive,
    crd_order,
    deployers,
    helm_program,
    info,
    layout,
    output,
    vendor,
)
from aicr.bundle.deployers import helm as helm_deployer
from aicr.bundle.kustomize import run_process
from aicr.bundle.plan import Plan
from aicr.errors import AicrError
from aicr.yamlio import read

FILES = {"templates/d.yaml": DEPLOYMENT, "templates/job.yaml": HOOK, "crds/foo.yaml": CRD}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the chart `app`."""
    folder = tmp_path_factory.mktemp("charts") / "repo"
    packaged(folder, "app", "1.2.3", FILES)
    return folder


@pytest.fixture(scope="module")
def repository(archives: Path) -> Iterator[str]:
    """A repository that serves it to everybody."""
    with served(archives) as address:
        yield address


def world(source: str, *, entry: dict[str, Any] | None = None, **ref: Any) -> World:
    """A recipe with this chart."""
    return World(
        {"name": "app", "source": source, "chart": "app", "version": "1.2.3", **ref},
        entries={"app": entry or {}},
        files={"components/app/values.yaml": "image: example.com/mine:2\n"},
    )


def find_helm(program: str) -> str | None:
    """The helm that the tests use."""
    return tools.helm() if program == "helm" else None


def attached(made: Plan, **ways: Any) -> list[str]:
    """The notes of putting charts into a plan."""
    return vendor.attach(made, **{"find": find_helm, "environment": {}, **ways})


def primary(made: Plan) -> layout.Folder:
    """The folder of the chart."""
    return next(folder for folder in layout.folders(made) if folder.phase == "primary")


def test_a_pulled_chart_lies_in_a_chart_around_it(repository: str, archives: Path) -> None:
    """Wrapper, tarball, nested values; no upstream.env (bundler spec 2.2, 2.3)."""
    made = world(repository).plan(vendor_charts=True, dynamic=["app:secret"])
    attached(made)
    folder = primary(made)
    assert folder.kind == "local-helm"
    assert sorted(folder.files) == [
        "Chart.yaml",
        "charts/app-1.2.3.tgz",
        "cluster-values.yaml",
        "install.sh",
        "templates/empty.yaml",
        "values.yaml",
    ]
    assert folder.files["charts/app-1.2.3.tgz"][0] == (archives / "app-1.2.3.tgz").read_bytes()
    assert read.load(folder.files["Chart.yaml"][0].decode(), source="Chart.yaml") == {
        "apiVersion": "v2",
        "name": "app",
        "version": "0.1.0",
        "dependencies": [{"name": "app", "version": "1.2.3", "repository": ""}],
    }
    assert folder.values == {"app": {"image": "example.com/mine:2"}}
    assert folder.cluster_values == {"app": {"secret": ""}}
    assert (folder.chart, folder.repo, folder.version) == ("", "", "")


def written(made: Plan, target: Path) -> Path:
    """The helm bundle of a plan on disk."""
    files = helm_deployer.generate(made, layout.folders(made))
    output.write_bundle(files, str(target))
    return target


def test_the_bundle_says_where_the_chart_came_from(repository: str, tmp_path: Path) -> None:
    """provenance.yaml, its place in bundle-info.yaml, and checksums over both (bundler spec 2.9)."""
    made = world(repository).plan(vendor_charts=True)
    attached(made)
    bundle = written(made, tmp_path / "out")
    found = read.load((bundle / "provenance.yaml").read_text(), source="provenance")
    assert (found["apiVersion"], found["kind"]) == ("aicr.run/v1alpha2", "BundleProvenance")
    content = (bundle / "001-app" / "charts" / "app-1.2.3.tgz").read_bytes()
    assert found["vendoredCharts"] == [
        {
            "name": "app",
            "chart": "app",
            "version": "1.2.3",
            "repository": repository,
            "sha256": hashlib.sha256(content).hexdigest(),
            "tarballName": "app-1.2.3.tgz",
            "pullerVersion": helm(tmp_path, "version", "--template", "{{.Version}}"),
        }
    ]
    document = info.read((bundle / "bundle-info.yaml").read_text())
    assert document["layout"]["provenance"] == "provenance.yaml"
    assert document["build"]["settings"]["vendorCharts"] is True
    assert checksums.verify_tree(str(bundle)) == []
    readme = (bundle / "README.md").read_text()
    assert "app in this bundle" in readme
    assert "| app | pre-upgrade, post-install | Job | app-migrate | -5 |" in readme


def test_helm_renders_the_same_from_the_wrapper(repository: str, tmp_path: Path) -> None:
    """Names, labels and values of the chart do not change by being inside another (2.3)."""
    made = world(repository).plan(vendor_charts=True, set=["app:nodeSelector.pool=x"])
    attached(made)
    bundle = written(made, tmp_path / "out") / "001-app"
    values = ["-f", f"{bundle}/values.yaml", "-f", f"{bundle}/cluster-values.yaml"]
    wrapped = helm(tmp_path, "template", "app", str(bundle), *values)
    (tmp_path / "v.yaml").write_text("image: example.com/mine:2\nnodeSelector: {pool: x}\n")
    plain = helm(
        *(tmp_path, "template", "app", str(bundle / "charts" / "app-1.2.3.tgz")),
        *("-f", str(tmp_path / "v.yaml")),
    )
    assert read.load_all(wrapped, source="a") == read.load_all(plain, source="b")
    assert "example.com/mine:2" in wrapped
    lint = subprocess.run(
        [tools.helm(), "lint", "--strict", str(bundle)], capture_output=True, text=True, check=False
    )
    assert lint.returncode == 0, lint.stdout


def test_the_crd_step_reads_the_chart_in_the_folder(repository: str, tmp_path: Path) -> None:
    """An audited chart keeps its apply-crds.sh, which looks into ./ with its subcharts (2.6)."""
    entry = {
        "ownsCRDs": True,
        "helm": {
            "defaultRepository": repository,
            "defaultChart": "app",
            "defaultVersion": "1.2.3",
        },
    }
    made = world(repository, entry=entry).plan(vendor_charts=True)
    attached(made)
    folder = primary(made)
    assert folder.crd_owner
    script = folder.files["apply-crds.sh"][0].decode()
    assert "CHART='./'" in script
    assert "upstream.env" not in script
    install = folder.files["install.sh"][0].decode()
    assert install.index("apply-crds.sh") < install.index("exec helm")
    bundle = written(made, tmp_path / "out")
    assert "kind: CustomResourceDefinition" in helm(
        tmp_path, "show", "crds", str(bundle / "001-app")
    )
    checked = subprocess.run(
        [tools.shellcheck(), str(bundle / "001-app" / "apply-crds.sh")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("ref", "code", "words"),
    [
        ({"version": "9.9.9"}, "NOT_FOUND", "chart"),
        ({"chart": "nope"}, "NOT_FOUND", "nope"),
    ],
)
def test_what_the_repository_lacks_is_not_found(
    repository: str, ref: dict[str, Any], code: str, words: str
) -> None:
    """The failure keeps its own code and says which component (bundler spec 2.9)."""
    made = world(repository, **ref).plan(vendor_charts=True)
    with pytest.raises(AicrError) as caught:
        attached(made)
    assert caught.value.code == code
    assert words in caught.value.message
    assert "'app'" in caught.value.message


def test_a_repository_that_is_not_there_is_unavailable() -> None:
    """Port 9 of the loopback interface answers nobody."""
    with pytest.raises(AicrError) as caught:
        attached(world("http://127.0.0.1:9").plan(vendor_charts=True))
    assert caught.value.code == "SERVICE_UNAVAILABLE"


def test_credentials_come_from_the_environment_and_never_from_a_command_line(
    archives: Path,
) -> None:
    """A password on a command line can be read by every user of the machine."""
    seen: list[list[str]] = []

    def run(command: list[str], seconds: float) -> tuple[int, bytes, bytes]:
        seen.append(command)
        return run_process(command, seconds)

    with served(archives, password="s3cret") as address:
        made = world(address).plan(vendor_charts=True)
        with pytest.raises(AicrError) as caught:
            attached(made)
        assert caught.value.code == "UNAUTHORIZED"
        assert helm_program.PASSWORD in caught.value.hint
        environment = {helm_program.USERNAME: "user", helm_program.PASSWORD: "s3cret"}
        attached(made, environment=environment, run=run)
    assert made.components[0].vendored is not None
    assert made.components[0].vendored.repository == address
    assert not any("s3cret" in word for command in seen for word in command)
    wrong = {helm_program.USERNAME: "user", helm_program.PASSWORD: "other"}
    with served(archives, password="s3cret") as address:
        with pytest.raises(AicrError) as caught:
            attached(world(address).plan(vendor_charts=True), environment=wrong)
        assert caught.value.code == "UNAUTHORIZED"
        assert "other" not in str(caught.value).replace("another", "")


def test_oci_credentials_go_into_a_file_of_the_run() -> None:
    """helm reads registries from a file; ours is private and goes away."""
    kept: dict[str, Any] = {}

    def run(command: list[str], seconds: float) -> tuple[int, bytes, bytes]:
        if command[1] == "pull":
            path = command[command.index("--registry-config") + 1]
            kept["mode"] = os.stat(path).st_mode & 0o777
            kept["text"] = Path(path).read_text()
            kept["path"] = path
            kept["command"] = command
        return 1, b"", b"Error: GET https://user:s3cret@r.example.com/v2/: s3cret denied"

    made = world("oci://r.example.com/charts").plan(vendor_charts=True)
    environment = {helm_program.USERNAME: "user", helm_program.PASSWORD: "s3cret"}
    with pytest.raises(AicrError) as caught:
        attached(made, run=run, environment=environment)
    assert caught.value.code == "UNAUTHORIZED"
    assert "s3cret" not in str(caught.value)
    assert kept["mode"] == 0o600
    assert '"r.example.com"' in kept["text"]
    assert kept["command"][1:3] == ["pull", "oci://r.example.com/charts/app"]
    assert "s3cret" not in " ".join(kept["command"])
    assert not os.path.exists(kept["path"])


@pytest.mark.parametrize(
    ("status", "err", "code"),
    [
        (
            1,
            b"Error: failed to do request: dial tcp: lookup x: no such host",
            "SERVICE_UNAVAILABLE",
        ),
        (1, b"Error: context deadline exceeded", "TIMEOUT"),
        (1, b"Error: something else", "INTERNAL"),
        (1, b"", "INTERNAL"),
    ],
)
def test_what_helm_says_decides_the_code(status: int, err: bytes, code: str) -> None:
    """Failures propagate with a code of their own (bundler spec 2.9)."""
    made = world("oci://r.example.com/charts").plan(vendor_charts=True)
    with pytest.raises(AicrError) as caught:
        attached(made, run=lambda _command, _seconds: (status, b"", err))
    assert caught.value.code == code


def test_without_helm_nothing_is_vendored_and_the_error_says_so() -> None:
    """Before anything is written (bundler spec 1.8)."""
    made = world("https://charts.example.com").plan(vendor_charts=True)
    with pytest.raises(AicrError, match="needs helm") as caught:
        attached(made, find=lambda _program: None)
    assert caught.value.code == "INVALID_REQUEST"


@pytest.mark.parametrize("version", ["1.2.3", "v1.2.3"])
def test_a_chart_at_hand_needs_no_repository_and_no_helm(archives: Path, version: str) -> None:
    """What lies in --chart-dir is taken instead of pulled, also on a machine without a network."""
    made = world("https://charts.invalid", version=version).plan(
        vendor_charts=True, chart_dir=str(archives)
    )
    (note,) = attached(made, find=lambda _program: None)
    assert "was not rendered" in note
    chart = made.components[0].vendored
    assert chart is not None
    assert (chart.tarball, chart.puller) == ("app-1.2.3.tgz", "chart-dir")
    assert primary(made).kind == "local-helm"


def test_a_chart_at_hand_is_looked_at_without_being_vendored(archives: Path) -> None:
    """Facts without --vendor-charts: the bundle still refers to the repository (decision 60)."""
    made = world("https://charts.invalid").plan(chart_dir=str(archives))
    attached(made)
    facts = made.components[0].facts
    assert facts is not None
    assert facts.crds == {"example.com/Foo"}
    assert [(hook.kind, hook.phases, hook.weight) for hook in facts.hooks] == [
        ("Job", "pre-upgrade, post-install", "-5")
    ]
    assert 0 < facts.release_bytes < 20_000
    assert primary(made).kind == "upstream-helm"


@pytest.mark.parametrize(
    "deployer", ["argocd", "argocd-helm", "helm", "flux", "terraform", "fleet"]
)
def test_the_page_says_what_becomes_of_hooks(archives: Path, deployer: str) -> None:
    """Helm runs them once a phase; Argo CD at every sync, and some never (field pain 31)."""
    made = world("https://charts.invalid").plan(chart_dir=str(archives), deployer=deployer)
    attached(made)
    files = deployers.load(deployer).generate(made, layout.folders(made))
    page = files["README.md"][0].decode()
    assert "| app | pre-upgrade, post-install | Job |" in page
    argocd = deployer.startswith("argocd")
    assert ("**every** sync" in page) is argocd
    assert ("Helm runs these objects" in page) is not argocd


@pytest.mark.covers("C-075")
def test_paths_that_the_chart_drops_are_warned_about(archives: Path) -> None:
    """The chart renders a node selector, and neither tolerations nor a storage class (decision 60)."""
    entry = {
        "nodeScheduling": {
            "system": {"nodeSelectorPaths": ["nodeSelector"], "tolerationPaths": ["tolerations"]},
            "accelerated": {"nodeSelectorPaths": ["worker.nodeSelector"]},
        },
        "storageClassPaths": ["volume.storageClassName"],
    }
    made = world("https://charts.invalid", entry=entry).plan(chart_dir=str(archives))
    (note,) = attached(made)
    assert note == (
        "app: chart app 1.2.3 renders nothing of what is written there, with the values of this "
        "bundle: tolerations at tolerations; node selector at worker.nodeSelector; storage class at "
        "volume.storageClassName"
    )


@pytest.mark.covers("F5")
def test_a_custom_resource_of_a_vendored_charts_crd_must_come_later(archives: Path) -> None:
    """CRDs in a chart's crds/ count as much as those in a manifest."""
    foo = "apiVersion: example.com/v1\nkind: Foo\nmetadata:\n  name: one\n"
    refs: list[dict[str, Any]] = [
        {"name": "app", "source": "https://charts.invalid", "chart": "app", "version": "1.2.3"},
        {"name": "user", "manifestFiles": ["foo.yaml"]},
    ]
    entries = {"user": {"local": True}}
    for edges, fine in ((None, False), (["app"], True)):
        if edges:
            refs[1]["dependencyRefs"] = edges
        made = World(*refs, entries=entries, files={"foo.yaml": foo}).plan(
            chart_dir=str(archives), deployer="flux"
        )
        attached(made)
        folders = layout.folders(made)
        if fine:
            assert crd_order.check(made, folders) == []
        else:
            with pytest.raises(AicrError, match="whose CRD comes with 001-app"):
                crd_order.check(made, folders)


def test_a_chart_that_does_not_render_is_a_note(tmp_path: Path) -> None:
    """With these values helm would fail to install it; the cluster may know better."""
    packaged(tmp_path / "repo", "app", "1.2.3", {"templates/x.yaml": '{{ fail "no way" }}'})
    made = world("https://charts.invalid").plan(chart_dir=str(tmp_path / "repo"))
    (note,) = attached(made)
    assert "does not render with the values of this bundle" in note
    assert "no way" in note


def test_a_namespace_of_the_chart_keeps_helm_from_making_it(tmp_path: Path) -> None:
    """helm would refuse an object that it has just made (bundler spec 2.2)."""
    text = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: app\n"
    packaged(tmp_path / "repo", "app", "1.2.3", {"templates/ns.yaml": text})
    made = world("https://charts.invalid").plan(
        vendor_charts=True, chart_dir=str(tmp_path / "repo")
    )
    attached(made)
    assert primary(made).create_namespace is False


def tarball(files: dict[str, bytes], *, link: str = "") -> bytes:
    """A gzipped tar of these files, the same bytes at any time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        if link:
            member = tarfile.TarInfo(link)
            member.type = tarfile.SYMTYPE
            member.linkname = "/etc/passwd"
            archive.addfile(member)
    return gzip.compress(buffer.getvalue(), mtime=0)


GOOD = b"apiVersion: v2\nname: app\nversion: 1.2.3\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no gzipped tar"),
        (b"not a tar", "no gzipped tar"),
        (tarball({"app/x": b""}), "no Chart.yaml"),
        (tarball({"app/Chart.yaml": b"name: app\n"}), "with a version"),
        (tarball({"app/Chart.yaml": b"name: ../app\nversion: 1.0.0\n"}), "the name '../app'"),
        (tarball({"app/Chart.yaml": b"a: ["}), "cannot be read"),
        (tarball({"app/Chart.yaml": GOOD, "app/../../x": b""}), "no file of a chart"),
        (tarball({"app/Chart.yaml": GOOD, "/abs/x": b""}), "no file of a chart"),
        (tarball({"app/Chart.yaml": GOOD}, link="app/link"), "no file of a chart"),
        (tarball({"app/Chart.yaml": GOOD})[:60], "no gzipped tar"),
    ],
    ids=[
        *("nothing", "text", "no Chart.yaml", "no version", "name with dots", "broken Chart.yaml"),
        *("path with dots", "absolute path", "link", "cut short"),
    ],
)
def test_an_archive_that_is_no_chart_is_refused(content: bytes, words: str) -> None:
    """It comes from elsewhere, so nothing about it is taken for granted."""
    with pytest.raises(AicrError) as caught:
        chart_archive.read(content, component="app")
    assert caught.value.code == "INVALID_REQUEST"
    assert words in caught.value.message


def test_an_archive_of_another_chart_is_refused(tmp_path: Path) -> None:
    """A file name proves nothing; Chart.yaml decides."""
    (tmp_path / "app-1.2.3.tgz").write_bytes(
        tarball({"app/Chart.yaml": b"apiVersion: v2\nname: app\nversion: 6.6.6\n"})
    )
    made = world("https://charts.invalid").plan(chart_dir=str(tmp_path))
    made.options.vendor_charts = True
    with pytest.raises(AicrError, match=r"pins chart app 1\.2\.3.*app 6\.6\.6"):
        attached(made)


def test_a_chart_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """Naming nothing is a mistake."""
    made = world("https://charts.invalid").plan(chart_dir=str(tmp_path / "none"))
    with pytest.raises(AicrError, match="cannot read the charts") as caught:
        attached(made)
    assert caught.value.code == "NOT_FOUND"


def test_equal_charts_give_equal_bundles(archives: Path) -> None:
    """Nothing of the pull is written down: no time, no path (decision 3)."""
    made = []
    for _ in range(2):
        planned = world("https://charts.invalid").plan(vendor_charts=True, chart_dir=str(archives))
        attached(planned)
        made.append(helm_deployer.generate(planned, layout.folders(planned)))
    assert made[0] == made[1]


@pytest.mark.parametrize("deployer", deployers.names())
def test_every_deployer_takes_vendored_charts_and_gates(archives: Path, deployer: str) -> None:
    """The wrapper is a local chart like any other, so all seven can deploy it (2.2, decision 53)."""
    test = "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nspec: {steps: [{try: [{assert: {}}]}]}\n"
    small = world("https://charts.invalid")
    small.tree.files["components/app/readiness.yaml"] = test
    made = small.plan(
        deployer=deployer, vendor_charts=True, readiness_hooks=True, chart_dir=str(archives)
    )
    attached(made)
    module = deployers.load(deployer)
    files = module.generate(made, layout.folders(made))
    wrapped = [path for path in files if path.endswith("charts/app-1.2.3.tgz")]
    assert len(wrapped) == 1
    assert files[wrapped[0]][0] == (archives / "app-1.2.3.tgz").read_bytes()
    assert any("readiness" in path for path in files)
    document = info.read(files["bundle-info.yaml"][0].decode())
    assert document["layout"]["provenance"] in files
    assert [each["name"] for each in document["layout"]["releases"]] == ["app", "app-readiness"]
