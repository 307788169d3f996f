"""The page of images: rendered from real charts, gated by pins, and the weekly job that finds drift."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests import tools
from tests.bundle.chart_repository import packaged, served
from tests.bundle.sample_plans import CONFIG_MAP

from aicr.bundle import bom, bom_page
from aicr.bundle.chart_render import Helm
from aicr.bundle.helm_program import Helm as HelmProgram
from aicr.bundle.pinned_charts import PinnedCharts, puller
from aicr.catalog.catalog import Catalog
from aicr.errors import AicrError
from tools import bom_docs, bom_refresh

#: A sidecar that only the template names, and a container that values decide.
DEPLOYMENT: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {{{{ .Release.Name }}}}, namespace: {{{{ .Release.Namespace }}}}}}
spec:
  selector: {{matchLabels: {{app: x}}}}
  template:
    metadata: {{labels: {{app: x}}}}
    spec:
      containers:
        - {{name: x, image: "{{{{ .Values.image }}}}"}}
        - {{name: sidecar, image: "quay.io/acme/sidecar:{tag}"}}
"""
IDENTITY: Final = {
    f"GIT_{who}_{what}": text
    for who in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "Job"), ("EMAIL", "job@example.com"))
}


def chart(folder: Path, tag: str) -> Path:
    """The archive of `app` 1.2.3, whose sidecar has this tag."""
    return packaged(folder, "app", "1.2.3", {"templates/d.yaml": DEPLOYMENT.format(tag=tag)})


@pytest.fixture(autouse=True)
def helm_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The helm of the tests is the one that is found; git has an identity and no settings."""
    monkeypatch.setenv("PATH", str(Path(tools.helm()).parent), prepend=os.pathsep)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name, text in IDENTITY.items():
        monkeypatch.setenv(name, text)


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """A folder with the chart `app`."""
    chart(tmp_path / "repo" / "charts", "v1")
    return tmp_path / "repo" / "charts"


@pytest.fixture
def repository(archives: Path) -> Iterator[str]:
    """A repository that serves it."""
    with served(archives) as address:
        yield address


@pytest.fixture
def tree(tmp_path: Path, repository: str) -> Path:
    """A catalogue with that chart, a Kustomize source and a component of manifests."""
    return catalogue(tmp_path / "tree", repository)


def catalogue(tree: Path, repository: str, *, kustomize: bool = False) -> Path:
    """A data tree whose charts come from *repository*."""
    source = (
        "  - name: kapp\n    displayName: K\n    kustomize:\n"
        "      defaultSource: https://git.example.com/k\n      defaultPath: deploy\n"
        "      defaultTag: v1.0.0\n"
    )
    for path, text in {
        "registry.yaml": "kind: ComponentRegistry\napiVersion: aicr.run/v1beta1\ncomponents:\n"
        "  - name: app\n    displayName: App\n    helm:\n"
        f"      defaultRepository: {repository}\n      defaultChart: acme/app\n"
        '      defaultVersion: "1.2.3"\n      defaultNamespace: app-system\n'
        + (source if kustomize else "")
        + "  - name: own\n    displayName: Own\n    helm: {defaultNamespace: own}\n"
        "    manifestFiles: [components/own/manifests/pod.yaml]\n",
        "overlays/base.yaml": "kind: RecipeMetadata\napiVersion: aicr.run/v1beta1\n"
        "metadata: {name: base}\nspec:\n  componentRefs:\n    - {name: app, type: Helm}\n",
        "components/app/values.yaml": "image: ghcr.io/acme/app:v7\n",
        "components/own/manifests/pod.yaml": "kind: Pod\nmetadata: {name: p}\nspec:\n"
        "  containers:\n    - name: c\n      image: quay.io/acme/own:v3\n",
    }.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return tree


def images(bill: bom.Bom) -> dict[str, list[str]]:
    """Component -> its images."""
    return {entry.name: sorted(map(str, entry.images)) for entry in bill.entries}


# -- rendered from the charts ------------------------------------------------------------------------


@pytest.mark.covers("C-135")
def test_the_bill_of_the_catalogue_lists_what_the_pinned_charts_render(tree: Path) -> None:
    """Pulled, rendered with the base values: an image that only a template names is there."""
    bill = bom_docs.fresh_bill(Catalog.from_dir(str(tree)), pull=True)
    assert images(bill) == {
        "app": ["ghcr.io/acme/app:v7", "quay.io/acme/sidecar:v1"],
        "own": ["quay.io/acme/own:v3"],
    }
    assert bill.unrendered == []
    (entry, _) = bill.entries
    assert entry.images[next(iter(sorted(entry.images)))] == [
        "Deployment app-system/app: spec.template.spec.containers[0].image"
    ]


@pytest.mark.covers("C-135")
def test_a_chart_at_hand_is_rendered_without_a_network(tmp_path: Path, archives: Path) -> None:
    """The repository of the pin answers nobody; the archive in the folder is taken."""
    held = catalogue(tmp_path / "held", "https://charts.invalid")
    bill = bom_docs.fresh_bill(Catalog.from_dir(str(held)), pull=False, chart_dir=str(archives))
    assert "quay.io/acme/sidecar:v1" in images(bill)["app"]
    bill = bom_docs.fresh_bill(Catalog.from_dir(str(held)), pull=False)
    assert images(bill)["app"] == ["ghcr.io/acme/app:v7"]
    assert [(entry.name, entry.rendered) for entry in bill.unrendered] == [
        ("app", "no (not pulled)")
    ]


@pytest.mark.covers("C-135", "C-015")
def test_a_chart_of_a_registry_is_pulled_by_the_last_part_of_its_name(
    tmp_path: Path, archives: Path
) -> None:
    """`acme/app` at oci://…/charts is oci://…/charts/app, as a recipe's ref has it."""
    held = Catalog.from_dir(str(catalogue(tmp_path / "held", "oci://r.example.com/charts")))
    seen: list[list[str]] = []

    def run(command: list[str], _seconds: float) -> tuple[int, bytes, bytes]:
        seen.append(command)
        if command[1] == "version":
            return 0, b"v4.0.0", b""
        into = Path(command[command.index("--destination") + 1])
        (into / "app-1.2.3.tgz").write_bytes((archives / "app-1.2.3.tgz").read_bytes())
        return 0, b"", b""

    (tmp_path / "scratch").mkdir()
    helm = HelmProgram(run, lambda name: f"/bin/{name}", {}, str(tmp_path / "scratch"))
    bill = bom.of_catalog(held, version="x", charts=PinnedCharts(Helm(), {}, helm))
    assert images(bill)["app"] == ["ghcr.io/acme/app:v7", "quay.io/acme/sidecar:v1"]
    assert seen[0][1:3] == ["pull", "oci://r.example.com/charts/app"]


@pytest.mark.covers("C-135", "C-010")
def test_a_kustomize_source_is_built_when_sources_are_fetched(
    tmp_path: Path, archives: Path
) -> None:
    """kustomize build at the pinned tag; without fetching it reads "not pulled"."""
    held = Catalog.from_dir(
        str(catalogue(tmp_path / "held", "https://charts.invalid", kustomize=True))
    )
    seen: list[list[str]] = []

    def run(command: list[str], _seconds: float) -> tuple[int, bytes, bytes]:
        seen.append(command)
        pod = "kind: Pod\nmetadata: {name: k}\nspec: {containers: [{name: c, image: 'a.io/k:1'}]}\n"
        return 0, f"{CONFIG_MAP}---\n{pod}".encode(), b""

    at_hand = {"app-1.2.3.tgz": (archives / "app-1.2.3.tgz").read_bytes()}
    with puller() as helm:
        charts = PinnedCharts(Helm(), at_hand, helm, run=run, find=lambda name: f"/bin/{name}")
        bill = bom.of_catalog(held, version="x", charts=charts)
    assert images(bill)["kapp"] == ["a.io/k:1"]
    assert seen == [["/bin/kubectl", "kustomize", "https://git.example.com/k//deploy?ref=v1.0.0"]]
    bill = bom.of_catalog(held, version="x", charts=PinnedCharts(Helm(), at_hand))
    assert [entry.name for entry in bill.unrendered] == ["kapp"]


@pytest.mark.covers("C-135")
@pytest.mark.parametrize(
    ("values", "address", "said"),
    [
        ("image: a:1\n", "http://127.0.0.1:9", "helm pull"),
        ("image: [1]\nnodeSelector: {{\n", None, "values.yaml"),
    ],
    ids=["no repository", "broken values"],
)
def test_what_cannot_be_rendered_is_an_error_and_leaves_the_page_alone(
    tree: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    values: str,
    address: str | None,
    said: str,
) -> None:
    """A page that silently lacked a chart's images would be committed as a change."""
    if address:
        catalogue(tree, address)
    (tree / "components" / "app" / "values.yaml").write_text(values)
    page = tmp_path / "page.md"
    page.write_text("as it was\n")
    flags = ["--pull", "--catalogue", str(tree), "--page", page.name]
    assert bom_docs.main(flags, root=tmp_path) == 1
    assert page.read_text() == "as it was\n"
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("bom: [")
    assert said in err


@pytest.mark.covers("C-135")
def test_a_chart_that_does_not_render_names_its_component(archives: Path, tmp_path: Path) -> None:
    """helm's own words are the cause."""
    packaged(archives, "app", "1.2.3", {"templates/d.yaml": '{{ fail "no licence" }}'})
    held = Catalog.from_dir(str(catalogue(tmp_path / "held", "https://charts.invalid")))
    with pytest.raises(AicrError, match="component 'app' does not render") as caught:
        bom_docs.fresh_bill(held, pull=False, chart_dir=str(archives))
    assert caught.value.code == "SERVICE_UNAVAILABLE"
    assert "helm template failed" in str(caught.value)


# -- the gate, and the full comparison ---------------------------------------------------------------


@pytest.mark.covers("C-136", "C-137", "C-138")
def test_pins_are_gated_and_drifted_images_are_for_the_full_comparison(
    tree: Path, archives: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A chart pushed again under its version: the gate holds, --check shows both lines and fails."""
    flags = ["--pull", "--catalogue", str(tree), "--page", "page.md"]
    page = tmp_path / "page.md"
    page.write_text(f"# Mine\n\n{bom_page.BEGIN}\n{bom_page.END}\n\nKept.\n")
    assert bom_docs.main(flags, root=tmp_path) == 0
    assert page.read_text().startswith("# Mine\n")
    assert page.read_text().endswith("\nKept.\n")
    assert "| `app` | helm | app | 1.2.3 | app-system | yes | 2 |" in page.read_text()
    assert bom_docs.main([*flags, "--check"], root=tmp_path) == 0
    chart(archives, "v2")
    held = Catalog.from_dir(str(tree))
    # What the merge gate compares needs no chart at all.
    assert bom_page.stale(page.read_text(), bom.of_catalog(held, version="x")) == []
    capsys.readouterr()
    before = page.read_text()
    assert bom_docs.main([*flags, "--check"], root=tmp_path) == 1
    out = capsys.readouterr().out
    assert "no longer so: - `quay.io/acme/sidecar:v1`" in out
    assert "now: - `quay.io/acme/sidecar:v2`" in out
    assert page.read_text() == before
    registry = tree / "registry.yaml"
    registry.write_text(registry.read_text().replace('"1.2.3"', '"1.2.4"'))
    moved = bom.of_catalog(Catalog.from_dir(str(tree)), version="x")
    assert bom_page.stale(before, moved) == ["app: the page says version 1.2.3, it is 1.2.4"]


# -- the weekly job ----------------------------------------------------------------------------------


class Forge:
    """A remote with a checkout of it, and a stand-in for gh that writes down what it is told."""

    def __init__(self, folder: Path, tree: Path) -> None:
        self.remote = folder / "remote.git"
        self.checkout = folder / "checkout"
        self.calls = folder / "calls"
        self.gh = folder / "gh"
        self.open = folder / "open"
        self.flags = ["--catalogue", str(tree), "--open-with", str(self.gh)]
        self.gh.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$*" >>{self.calls}\n'
            f'case "$2" in\n  list) cat {self.open} 2>/dev/null || true ;;\n'
            f'  create) [ ! -e {folder}/refuse ] || {{ echo "no permission" >&2; exit 1; }}\n'
            f"    echo 7 >{self.open}; echo https://forge.example.com/7 ;;\nesac\n"
        )
        self.gh.chmod(0o755)
        self.git("init", "--quiet", "--bare", "--initial-branch=main", str(self.remote), at=folder)
        self.git("clone", "--quiet", str(self.remote), str(self.checkout), at=folder)
        self.git("switch", "--quiet", "--orphan", "main")
        page = self.checkout / bom_docs.PAGE
        page.parent.mkdir()
        bill = bom_docs.fresh_bill(Catalog.from_dir(str(tree)), pull=True)
        page.write_text(bom_docs.written(bill, None))
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "page")
        self.git("push", "--quiet", "origin", "main")

    def git(self, *words: str, at: Path | None = None) -> str:
        """The output of git in the checkout."""
        done = subprocess.run(
            ["git", *words], cwd=at or self.checkout, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def run(self, *flags: str) -> int:
        """Run the job."""
        return bom_refresh.main([*self.flags, *flags], root=self.checkout)

    def asked(self, verb: str) -> list[str]:
        """The calls of gh with this verb."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line for line in lines if line.startswith(f"pr {verb}")]

    def branches(self) -> list[str]:
        """The branches of the remote."""
        return self.git("branch", "--format=%(refname:short)", at=self.remote).split()


@pytest.fixture
def forge(tree: Path, tmp_path: Path) -> Forge:
    """The forge, whose main branch has the current page."""
    return Forge(tmp_path, tree)


@pytest.mark.covers("C-139")
def test_a_week_without_drift_proposes_nothing(
    forge: Forge, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page holds: no branch, no request."""
    assert forge.run() == 0
    assert capsys.readouterr().out == "bom: docs/container-images.md: current\n"
    assert forge.branches() == ["main"]
    assert not forge.asked("create")


@pytest.mark.covers("C-139")
@pytest.mark.parametrize("detached", [False, True])
def test_drift_below_an_unmoved_pin_becomes_one_pull_request(
    forge: Forge, archives: Path, capsys: pytest.CaptureFixture[str], detached: bool
) -> None:
    """A branch with the new page and a request that says what drifted; the checkout is as before."""
    if detached:
        forge.git("switch", "--quiet", "--detach")
    head = forge.git("rev-parse", "--abbrev-ref", "HEAD")
    chart(archives, "v2")
    assert forge.run() == 0
    out = capsys.readouterr().out
    assert out == "https://forge.example.com/7\nbom: docs/container-images.md: proposed\n"
    assert forge.branches() == ["bom-refresh", "main"]
    new = forge.git("show", f"bom-refresh:{bom_docs.PAGE}", at=forge.remote)
    assert "quay.io/acme/sidecar:v2" in new
    assert "quay.io/acme/sidecar:v1" not in new
    changed = forge.git("diff", "--name-only", "main", "bom-refresh", at=forge.remote)
    assert changed == bom_docs.PAGE
    (call,) = forge.asked("create")
    assert call.startswith("pr create --base main --head bom-refresh --title Images of the catalog")
    text = forge.calls.read_text()
    assert "- no longer so: - `quay.io/acme/sidecar:v1`" in text
    assert "- now: - `quay.io/acme/sidecar:v2`" in text
    assert forge.git("rev-parse", "--abbrev-ref", "HEAD") == head
    assert forge.git("status", "--porcelain") == ""
    assert "sidecar:v1" in (forge.checkout / bom_docs.PAGE).read_text()


@pytest.mark.covers("C-139")
def test_a_request_that_is_open_is_brought_up_to_date_and_never_doubled(
    forge: Forge, archives: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Week 2 finds the same, week 3 finds more; after the merge the page is current."""
    chart(archives, "v2")
    assert forge.run() == 0
    first = forge.git("rev-parse", "bom-refresh", at=forge.remote)
    capsys.readouterr()
    assert forge.run() == 0
    assert "proposed before, still the same" in capsys.readouterr().out
    assert forge.git("rev-parse", "bom-refresh", at=forge.remote) == first
    chart(archives, "v3")
    assert forge.run() == 0
    assert "proposal brought up to date" in capsys.readouterr().out
    assert "sidecar:v3" in forge.git("show", f"bom-refresh:{bom_docs.PAGE}", at=forge.remote)
    assert len(forge.asked("create")) == 1
    forge.git("push", "--quiet", "origin", "bom-refresh:main")
    forge.git("pull", "--quiet", "origin", "main")
    assert forge.run() == 0
    assert "container-images.md: current" in capsys.readouterr().out


@pytest.mark.covers("C-139")
def test_a_request_that_could_not_be_opened_is_opened_by_the_next_run(
    forge: Forge, archives: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The failure is told with exit status 1, and a pushed branch is not taken for a proposal."""
    chart(archives, "v2")
    (tmp_path / "refuse").touch()
    assert forge.run() == 1
    assert "no permission" in capsys.readouterr().err
    assert forge.git("status", "--porcelain") == ""
    (tmp_path / "refuse").unlink()
    assert forge.run() == 0
    assert "container-images.md: proposed" in capsys.readouterr().out


@pytest.mark.covers("C-139")
@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("dirty", "changes that are not committed"),
        ("ahead", "the checkout is not at main of origin"),
        ("no program", "is not installed"),
        ("no charts", "helm pull"),
        ("no push", "git push --quiet failed"),
    ],
)
def test_what_cannot_be_done_is_told_and_nothing_is_proposed(
    forge: Forge, archives: Path, tree: Path, case: str, said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Exit status 1, no branch, no request, and the checkout as it was."""
    chart(archives, "v2")
    flags: list[str] = []
    if case == "dirty":
        (forge.checkout / "notes").write_text("x")
    elif case == "ahead":
        forge.git("commit", "--quiet", "--allow-empty", "--message", "mine")
    elif case == "no program":
        flags = ["--open-with", "there-is-no-such-program"]
    elif case == "no charts":
        catalogue(tree, "http://127.0.0.1:9")
    else:
        hook = forge.remote / "hooks" / "pre-receive"
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
    assert forge.run(*flags) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert forge.branches() == ["main"]
    assert not forge.asked("create")
    assert forge.git("rev-parse", "--abbrev-ref", "HEAD") == "main"
    if case != "dirty":
        assert forge.git("status", "--porcelain") == ""


@pytest.mark.covers("C-139")
def test_without_a_program_the_branch_is_pushed_for_people_to_open(
    forge: Forge, archives: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--no-open, where there is no forge that a program can ask."""
    chart(archives, "v2")
    assert forge.run("--no-open") == 0
    assert "pushed, to be opened by hand" in capsys.readouterr().out
    assert forge.branches() == ["bom-refresh", "main"]
    assert not forge.asked("create")


def test_a_token_in_an_address_is_not_repeated() -> None:
    """git prints the address that it could not push to."""
    with pytest.raises(bom_refresh.RefreshError) as caught:
        bom_refresh.run(["git", "ls-remote", "http://u:s3cret@127.0.0.1:9/x"], Path.cwd())
    assert "127.0.0.1:9" in str(caught.value)
    assert "s3cret" not in str(caught.value)
