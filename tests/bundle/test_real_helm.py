"""What helm itself makes of a generated bundle: lint, rendering, and values byte for byte."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests import tools
from tests.bundle import chart_repository
from tests.bundle.sample_plans import CONFIG_MAP, chart, component, namespace_manifest, plan_of

from aicr.bundle import charts, layout, output, scripts
from aicr.bundle.deployers import helm
from aicr.bundle.plan import Component
from aicr.yamlio import read, write

#: Texts that some template language of some deployer would change (field case F2).
EATEN = {
    "rule": "GPU {{ $labels.gpu }} hot, value {{ $value }}",
    "s3": "s3://${ACCESS_KEY}:$${X}@bucket",
    "hcl": '100%{if}% done %% ${upper("x")}',
    "sh": 'for i in $(seq 1 3); do echo "${i:-none}" $NODE_NAME; done\n',
    "k8s": "$(POD_IP):29500",
    "backtick": "a `b` ${`c`}",
    "heredoc": "EOT\nEOF",
    "braces": "{{{ }}} {{`{{ x }}`}} {{- /* gone? */ -}} {{",
    "blank": "  lead and trail  ",
    "number": "24.10",
    "word": "on",
    "quote": 'it\'s "quoted" \\ and a tab\t',
    "unicode": "é 日本 🙂",
}


def run_helm(*args: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run the real helm with a home of its own and no cluster."""
    folders = {f"HELM_{kind}_HOME": str(home / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    return subprocess.run(
        [tools.helm(), *args],
        env={"PATH": os.environ["PATH"], "HOME": str(home), **folders},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def config_map(data: dict[str, str]) -> str:
    """A ConfigMap manifest of these texts."""
    metadata = {"name": "texts"}
    return write.dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def components() -> list[Component]:
    """Components that make every kind of local chart."""
    return [
        chart(
            "up",
            values={"texts": EATEN},
            manifests=[("a.yaml", config_map(EATEN)), ("b.yaml", CONFIG_MAP)],
            pre_manifests=[("ns.yaml", namespace_manifest("up"))],
        ),
        component("only", manifests=[("m.yaml", config_map(EATEN))], values={"k": "v"}),
        component("empty", manifests=[("none.yaml", "# nothing\n")]),
        component("k", type="Kustomize", path="deploy"),
    ]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A written bundle with every kind of local chart."""
    plan = plan_of(*components())
    built = config_map(EATEN).encode()
    folders = layout.folders(plan, run=lambda _command, _seconds: (0, built, b""))
    target = tmp_path_factory.mktemp("real-helm") / "out"
    output.write_bundle(helm.generate(plan, folders), str(target))
    return target


LOCAL = ["001-up-pre", "003-up-post", "004-only", "005-empty", "006-k"]


def test_the_local_charts_are_those_with_a_chart_file(bundle: Path) -> None:
    """The presence of Chart.yaml is what tells the kinds apart (bundler spec 2.3)."""
    assert sorted(path.parent.name for path in bundle.glob("*/Chart.yaml")) == LOCAL


@pytest.mark.parametrize("folder", LOCAL)
def test_every_local_chart_passes_lint(bundle: Path, tmp_path: Path, folder: str) -> None:
    """helm lint --strict finds no error and no warning."""
    done = run_helm("lint", "--strict", str(bundle / folder), home=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout + done.stderr
    assert "[ERROR]" not in done.stdout + done.stderr


def rendered(bundle: Path, folder: str, home: Path) -> list[dict[str, Any]]:
    """The objects that helm renders of a local chart with its own values files."""
    place = bundle / folder
    values = [
        arg for name in ("values", "cluster-values") for arg in ("-f", f"{place}/{name}.yaml")
    ]
    done = run_helm("template", folder[4:], str(place), *values, "--namespace", "ns", home=home)
    assert done.returncode == 0, done.stderr
    documents: list[dict[str, Any]] = read.load_all(done.stdout, source="helm")
    return documents


@pytest.mark.parametrize(
    ("folder", "kinds"),
    [
        ("001-up-pre", ["Namespace"]),
        ("003-up-post", ["ConfigMap", "ConfigMap"]),
        ("004-only", ["ConfigMap"]),
        ("005-empty", []),
        ("006-k", ["ConfigMap"]),
    ],
)
def test_helm_renders_every_object(
    bundle: Path, tmp_path: Path, folder: str, kinds: list[str]
) -> None:
    """What went in comes out, no more and no less."""
    objects = rendered(bundle, folder, tmp_path)
    assert [item["kind"] for item in objects] == kinds


@pytest.mark.covers("F2")
@pytest.mark.parametrize("folder", ["003-up-post", "004-only", "006-k"])
def test_texts_in_manifests_survive_helm_byte_for_byte(
    bundle: Path, tmp_path: Path, folder: str
) -> None:
    """Helm's templating over an already rendered manifest changes nothing (F2)."""
    objects = rendered(bundle, folder, tmp_path)
    assert EATEN in [item["data"] for item in objects]


@pytest.mark.covers("F2")
def test_texts_in_values_survive_helm_byte_for_byte(bundle: Path, tmp_path: Path) -> None:
    """A chart that prints its values shows exactly the planned texts (F2)."""
    place = tmp_path / "chart"
    (place / "templates").mkdir(parents=True)
    (place / "Chart.yaml").write_bytes(charts.chart_yaml("echo"))
    (place / "values.yaml").write_text("{}\n")
    (place / "templates" / "echo.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: echo\n"
        "data:\n  {{- range $key, $text := .Values.texts }}\n"
        "  {{ $key }}: {{ $text | b64enc | quote }}\n  {{- end }}\n"
    )
    values = str(bundle / "002-up" / "values.yaml")
    done = run_helm("template", "echo", str(place), "-f", values, home=tmp_path)
    assert done.returncode == 0, done.stderr
    import base64

    [document] = read.load_all(done.stdout, source="helm")
    decoded = {key: base64.b64decode(text).decode() for key, text in document["data"].items()}
    assert decoded == EATEN


@pytest.mark.parametrize("number", ["012", "1e3", "0x10", "1_000", "12:30:45", "~", "null", "yes"])
def test_texts_that_look_like_something_else_stay_text(tmp_path: Path, number: str) -> None:
    """Helm reads the values file as text where text was planned."""
    place = tmp_path / "chart"
    (place / "templates").mkdir(parents=True)
    (place / "Chart.yaml").write_bytes(charts.chart_yaml("kind"))
    (place / "values.yaml").write_bytes(charts.values_yaml({"text": number}))
    (place / "templates" / "kind.yaml").write_text(
        "kind: {{ kindOf .Values.text }}\ntext: {{ .Values.text | quote }}\n"
    )
    done = run_helm("template", "kind", str(place), home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read.load(done.stdout, source="helm") == {"kind": "string", "text": number}


def test_install_scripts_use_flags_that_helm_knows(bundle: Path, tmp_path: Path) -> None:
    """A client-side dry run of install.sh reaches the chart, and helm 4 takes every flag."""
    tools_folder = tmp_path / "bin"
    tools_folder.mkdir()
    (tools_folder / "helm").symlink_to(tools.helm())
    done = subprocess.run(
        [tools.program("bash", "install bash"), str(bundle / "004-only" / "install.sh")],
        env={
            "PATH": f"{tools_folder}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "KUBECONFIG": str(tmp_path / "none"),
            "DRY_RUN_FLAG": "--dry-run=client",
            "COMPONENT_WAIT_ARGS": "--wait --timeout 10m",
            "HELM_DEBUG_FLAG": "--debug",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "unknown flag" not in done.stderr
    assert "invalid argument" not in done.stderr
    assert "forceConflicts" not in done.stderr


def test_the_crd_step_reads_what_helm_shows(tmp_path: Path) -> None:
    """`helm show crds` of a real chart is what the script hands to kubectl (2.6)."""
    place = tmp_path / "chart"
    (place / "crds").mkdir(parents=True)
    (place / "Chart.yaml").write_bytes(charts.chart_yaml("crds"))
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
    (place / "crds" / "a.yaml").write_text(f"{crd}metadata:\n  name: as.example.com\n")
    (place / "crds" / "b.yaml").write_text(f"---\n{crd}metadata:\n  name: bs.example.com\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "apply-crds.sh").write_bytes(scripts.apply_crds_sh("x", "ns"))
    (folder / "upstream.env").write_text(f"CHART='{place}'\nREPO=''\nVERSION=''\n")
    assert applied_crds(folder, tmp_path) == ["as.example.com", "bs.example.com"]


def applied_crds(folder: Path, scratch: Path) -> list[str]:
    """Names of what apply-crds.sh of a folder hands to kubectl; the release is there already."""
    stub = scratch / "bin"
    for made in (stub, scratch / "scratch"):
        made.mkdir()
    (stub / "helm").write_text(
        f'#!/usr/bin/env bash\n[ "$1" != list ] || {{ echo x; exit 0; }}\nexec {tools.helm()} "$@"\n'
    )
    (stub / "kubectl").write_text(f"#!/usr/bin/env bash\ncat >{scratch}/applied\n")
    for name in ("helm", "kubectl"):
        (stub / name).chmod(0o755)
    done = subprocess.run(
        [tools.program("bash", "install bash"), str(folder / "apply-crds.sh")],
        env={
            "PATH": f"{stub}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(scratch),
            "TMPDIR": str(scratch / "scratch"),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if not (scratch / "applied").exists():
        assert "ships no CRDs" in done.stdout
        return []
    applied = read.load_all((scratch / "applied").read_text(), source="applied")
    return [document["metadata"]["name"] for document in applied]


@pytest.mark.parametrize("vendored", [False, True])
@pytest.mark.parametrize("subcharts", [False, True])
def test_crds_of_subcharts_are_left_alone_where_the_registry_says_so(
    tmp_path: Path, subcharts: bool, vendored: bool
) -> None:
    """ownsCRDsExcludeSubcharts: only what lies in crds/ of the chart itself is applied (2.6)."""
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: "
    archive = chart_repository.packaged(
        tmp_path / "charts",
        "app",
        "1.2.3",
        {
            "crds/deep/a.yaml": f"{crd}as.example.com\n",
            "crds/b.yaml": f"---\n{crd}bs.example.com\n",
            "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 0.1.0\n",
            "charts/sub/crds/c.yaml": f"{crd}cs.example.com\n",
        },
    )
    folder = tmp_path / "folder"
    (folder / "charts").mkdir(parents=True)
    (folder / "Chart.yaml").write_bytes(charts.wrapper_yaml("x", "app", "1.2.3"))
    shutil.copy(archive, folder / "charts")
    script = scripts.apply_crds_sh("x", "ns", local=vendored, subcharts=subcharts)
    (folder / "apply-crds.sh").write_bytes(script)
    with chart_repository.served(tmp_path / "charts") as address:
        (folder / "upstream.env").write_text(f"CHART='app'\nREPO='{address}'\nVERSION='1.2.3'\n")
        found = applied_crds(folder, tmp_path)
    wanted = ["as.example.com", "bs.example.com", *(["cs.example.com"] if subcharts else [])]
    assert sorted(found) == wanted
    assert not list((tmp_path / "scratch").iterdir())


def test_a_chart_without_crds_of_its_own_needs_no_step(tmp_path: Path) -> None:
    """CRDs of a subchart alone are none to apply."""
    files = {
        "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 0.1.0\n",
        "charts/sub/crds/c.yaml": "kind: CustomResourceDefinition\n",
    }
    archive = chart_repository.packaged(tmp_path / "charts", "app", "1.2.3", files)
    folder = tmp_path / "folder"
    (folder / "charts").mkdir(parents=True)
    shutil.copy(archive, folder / "charts")
    script = scripts.apply_crds_sh("x", "ns", local=True, subcharts=False)
    (folder / "apply-crds.sh").write_bytes(script)
    assert applied_crds(folder, tmp_path) == []
