"""The chart of preflight, rendered by real Helm: objects, switches, and values that it refuses."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from tests import tools

from aicr.preflight.config import load
from aicr.preflight.server_metrics import GangFigures, Metrics

CHART = Path(__file__).parents[2] / "charts" / "preflight"
Objects = dict[tuple[str, str], dict[str, Any]]
Render = Callable[..., Objects]
AUTH = {"enabled": True, "audience": "a", "tokenMountPath": "/t", "tokenExpirationSeconds": 3600}


def helm(values: dict[str, Any], folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """``helm template`` with these values, in the namespace gates."""
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    return subprocess.run(
        [tools.helm(), "template", "pf", str(CHART), "-n", "gates", "-f", str(file), *flags],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def render(tmp_path: Path) -> Render:
    """The objects that the chart renders, by kind and name."""

    def rendered(*flags: str, **values: Any) -> Objects:
        done = helm(values, tmp_path, *flags)
        assert done.returncode == 0, done.stderr
        found = [one for one in yaml.safe_load_all(done.stdout) if one]
        objects = {(one["kind"], one["metadata"]["name"]): one for one in found}
        assert len(objects) == len(found)
        return objects

    return rendered


def config(objects: Objects) -> dict[str, Any]:
    """The webhook's configuration, which the webhook itself accepts."""
    text = objects["ConfigMap", "preflight"]["data"]["config.yaml"]
    load(text, source="config.yaml")
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def rules(objects: Objects) -> list[tuple[str, tuple[str, ...]]]:
    """(resources, verbs) that the webhook's own cluster role grants."""
    role = objects["ClusterRole", "preflight"]
    return [(",".join(rule["resources"]), tuple(rule["verbs"])) for rule in role["rules"]]


def test_helm_lints_the_chart() -> None:
    """Values, schema and templates agree."""
    done = subprocess.run(
        [tools.helm(), "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_chart_renders_with_no_values(render: Render) -> None:
    """Decision 79: a parent needs nothing but its switch; the configuration is one that we accept."""
    objects = render()
    found = config(objects)
    assert load(objects["ConfigMap", "preflight"]["data"]["config.yaml"], source="c")[1] == []
    assert [one["name"] for one in found["initContainers"]] == [
        "preflight-dcgm-diag",
        "preflight-nccl-loopback",
        "preflight-nccl-allreduce",
    ]
    assert [one.get("gangOnly") for one in found["initContainers"]] == [None, None, True]
    assert "connectorTokenAudience" not in found
    assert found["gangCoordination"] == {
        "enabled": True,
        "timeout": "10m",
        "masterPort": 29500,
        "configMapMountPath": "/etc/preflight",
    }


@pytest.mark.covers("P11-121", "P-012", "P-177", "P-178")
def test_selectors_of_the_webhook(render: Render) -> None:
    """The namespace selector is always there; an object selector only if it says something."""
    plain = render()["MutatingWebhookConfiguration", "preflight"]["webhooks"][0]
    assert plain["namespaceSelector"] == {
        "matchLabels": {"nvsentinel.nvidia.com/preflight": "enabled"}
    }
    assert "objectSelector" not in plain
    chosen = {"matchExpressions": [{"key": "team", "operator": "Exists"}]}
    narrowed = render(objectSelector=chosen)["MutatingWebhookConfiguration", "preflight"]
    assert narrowed["webhooks"][0]["objectSelector"] == chosen


@pytest.mark.covers("P-168", "P-169", "P-170")
def test_what_the_api_server_is_told(render: Render) -> None:
    """Names, defaults and promises of the registration."""
    webhook = render()["MutatingWebhookConfiguration", "preflight"]["webhooks"][0]
    assert webhook["name"] == "preflight.nvsentinel.nvidia.com"
    assert webhook["clientConfig"]["service"] == {
        "name": "preflight",
        "namespace": "gates",
        "path": "/mutate",
        "port": 443,
    }
    assert {key: webhook[key] for key in ("failurePolicy", "timeoutSeconds", "sideEffects")} == {
        "failurePolicy": "Fail",
        "timeoutSeconds": 10,
        "sideEffects": "NoneOnDryRun",
    }
    [condition] = webhook["matchConditions"]
    assert "'nvidia.com/gpu' " not in condition["expression"]
    assert "['nvidia.com/gpu'].exists(n, n in c.resources.limits)" in condition["expression"]
    assert "resourceClaims" in condition["expression"]
    ignoring = render(webhook={"failurePolicy": "Ignore", "matchConditions": False})
    ignored = ignoring["MutatingWebhookConfiguration", "preflight"]["webhooks"][0]
    assert ignored["failurePolicy"] == "Ignore"
    assert "matchConditions" not in ignored
    assert config(ignoring)["failurePolicy"] == "Ignore"


@pytest.mark.covers("P11-122")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"enabled": "false"}, "must be a boolean"),
        ({"enabled": None}, "must be a boolean"),
        ({"enabled": 0}, "must be a boolean"),
        ({"audience": ""}, "audience is required"),
        ({"tokenMountPath": None}, "tokenMountPath is required"),
        ({"tokenExpirationSeconds": None}, "tokenExpirationSeconds is required"),
        ({"tokenExpirationSeconds": "3600"}, "must be a number"),
        ({"tokenExpirationSeconds": 3600.5}, "must be a whole number"),
        ({"tokenExpirationSeconds": 599}, "must be at least 600"),
        ({"tokenExpirationSeconds": 4294967297}, "must be at most 4294967296"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_the_token_block_is_judged_strictly(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    """A mistake in the shared block stops the rendering, so no event is sent without its token."""
    done = helm({"global": {"platformConnectorAuth": {**AUTH, **change}}}, tmp_path)
    assert done.returncode != 0
    assert words in done.stderr


def test_the_token_reaches_the_configuration(render: Render) -> None:
    """All three settings, the seconds as a whole number; without auth none of them."""
    found = config(render(**{"global": {"platformConnectorAuth": AUTH}}))
    assert (found["connectorTokenAudience"], found["connectorTokenMountPath"]) == ("a", "/t")
    assert found["connectorTokenExpirationSeconds"] == 3600


@pytest.mark.covers("P11-123", "P-175", "P-005")
def test_openshift_signs_by_its_own_operator(render: Render) -> None:
    """No cert-manager object, and the two annotations of the service CA."""
    objects = render(webhook={"certProvider": "openshift-service-ca"})
    assert not [key for key in objects if key[0] in ("Issuer", "Certificate")]
    service = objects["Service", "preflight"]["metadata"]["annotations"]
    assert service == {
        "service.beta.openshift.io/serving-cert-secret-name": "preflight-webhook-tls"
    }
    registration = objects["MutatingWebhookConfiguration", "preflight"]["metadata"]["annotations"]
    assert registration == {"service.beta.openshift.io/inject-cabundle": "true"}


@pytest.mark.covers("P-172", "P-173")
def test_an_authority_of_its_own_or_one_that_is_named(render: Render) -> None:
    """createIssuer makes two tiers; without it the named issuer signs and the named bundle is trusted."""
    own = render()
    assert [name for kind, name in own if kind == "Certificate"] == [
        "preflight-ca",
        "preflight-webhook-cert",
    ]
    given = render(webhook={"createIssuer": False, "certIssuer": "i", "caCertificateName": "c"})
    assert [name for kind, name in given if kind in ("Certificate", "Issuer")] == [
        "preflight-webhook-cert"
    ]
    leaf = given["Certificate", "preflight-webhook-cert"]["spec"]
    assert leaf["issuerRef"]["name"] == "i"
    notes = given["MutatingWebhookConfiguration", "preflight"]["metadata"]["annotations"]
    assert notes == {"cert-manager.io/inject-ca-from": "gates/c"}


@pytest.mark.covers("P11-124", "P-174")
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"webhook": {"certProvider": "foo"}}, "certProvider"),
        ({"webhook": {"timeoutSeconds": 31}}, "timeoutSeconds"),
        ({"webhook": {"createIssuer": False, "certIssuer": "i"}}, "caCertificateName is required"),
        ({"webhook": {"createIssuer": False, "caCertificateName": "c"}}, "certIssuer is required"),
        ({"webhook": {"url": "http://127.0.0.1"}}, "url"),
        ({"initContainerPlacement": "middle"}, "initContainerPlacement"),
        ({"initContainers": [{"name": "a"}]}, "image"),
        ({"gangCoordination": {"enable": True}}, "enable"),
        ({"gpuResourceNames": []}, "gpuResourceNames"),
        ({"replicaCount": "two"}, "replicaCount"),
    ],
    ids=str,
)
def test_wrong_values_are_refused(tmp_path: Path, values: dict[str, Any], words: str) -> None:
    """By the schema or while rendering, with the name of the value."""
    done = helm(values, tmp_path)
    assert done.returncode != 0
    assert words in done.stderr


@pytest.mark.covers("P11-125", "P-135")
@pytest.mark.parametrize(("shape", "numa", "bridges"), [("ndv4", 4, 1), ("ndv5", 2, 4)])
def test_topology_files_of_azure(render: Render, shape: str, numa: int, bridges: int) -> None:
    """A shape brings its file: 8 GPUs and 8 cards, each under a bridge; every bus once."""
    found = config(render(gangCoordination={"ncclTopoShape": shape}))["gangCoordination"]
    assert found["ncclTopoConfigMap"] == "preflight-nccl-topo"
    root = ElementTree.fromstring(found["ncclTopoData"])
    cpus = root.findall("cpu")
    assert [len(cpu.findall("pci")) for cpu in cpus] == [bridges] * numa
    kinds = [device.get("class") for device in root.iterfind("cpu/pci/pci")]
    assert (kinds.count("0x030200"), kinds.count("0x020700")) == (8, 8)
    buses = [device.get("busid") for device in root.iter("pci")]
    assert len(set(buses)) == len(buses)


def test_a_topology_config_map_may_be_named(render: Render) -> None:
    """A name alone refers to a ConfigMap of the user; with a shape it is the name of the copy."""
    named = config(render(gangCoordination={"ncclTopoConfigMap": "mine"}))["gangCoordination"]
    assert named["ncclTopoConfigMap"] == "mine"
    assert "ncclTopoData" not in named
    both = render(gangCoordination={"ncclTopoConfigMap": "mine", "ncclTopoShape": "ndv5"})
    assert config(both)["gangCoordination"]["ncclTopoConfigMap"] == "mine"


@pytest.mark.covers("P11-125")
def test_an_unknown_topology_stops_the_rendering(tmp_path: Path) -> None:
    """The message names the file that is not there."""
    done = helm({"gangCoordination": {"ncclTopoShape": "ndv9"}}, tmp_path)
    assert done.returncode != 0
    assert (
        "ncclTopoShape 'ndv9' not found: files/ndv9-topo.xml does not exist in chart files/"
        in done.stderr
    )


@pytest.mark.covers("P11-126", "P-152", "P-153", "P-154")
def test_access_is_granted_only_for_what_is_switched_on(render: Render) -> None:
    """Decision 74: with coordination and claims off there is no role and no token at all."""
    nothing = render(gangCoordination={"enabled": False}, gpuDraEnabled=False)
    assert not [key for key in nothing if "Role" in key[0]]
    pod = nothing["Deployment", "preflight"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    claims = render(gangCoordination={"enabled": False}, events=False)
    assert rules(claims) == [
        ("resourceclaims,resourceclaimtemplates", ("get",)),
        ("deviceclasses", ("list",)),
    ]
    assert ("ClusterRole", "pf-gang-discovery") not in claims
    everything = render(
        gangDiscovery={
            "name": "volcano",
            "annotationKeys": ["scheduling.k8s.io/group-name"],
            "podGroupGVR": {
                "group": "scheduling.volcano.sh",
                "version": "v1beta1",
                "resource": "podgroups",
            },
        }
    )
    aggregate = everything["ClusterRole", "pf-gang-discovery"]
    label = {"preflight.nvsentinel.nvidia.com/aggregate-to-gang-discovery": "true"}
    # The control plane owns the rules; a chart that states them cannot be upgraded (server-side apply).
    assert "rules" not in aggregate
    assert aggregate["aggregationRule"]["clusterRoleSelectors"] == [{"matchLabels": label}]
    builtin = everything["ClusterRole", "pf-gang-discovery-builtin"]
    assert label.items() <= builtin["metadata"]["labels"].items()
    assert builtin["rules"][1] == {
        "apiGroups": ["scheduling.volcano.sh"],
        "resources": ["podgroups"],
        "verbs": ["get", "list", "watch"],
    }
    assert ("ClusterRoleBinding", "pf-gang-discovery") in everything


@pytest.mark.covers("P11-127")
@pytest.mark.parametrize(("given", "written"), [(False, False), (True, True), (None, "absent")])
def test_mirroring_claims_is_written_only_if_set(
    render: Render, given: bool | None, written: Any
) -> None:
    """False is a value; null is none."""
    found = config(render(gangCoordination={"mirrorResourceClaims": given}))
    assert found["gangCoordination"].get("mirrorResourceClaims", "absent") == written


@pytest.mark.covers("P11-128", "P-089")
def test_extra_variables_go_to_the_all_reduce_check_only(render: Render) -> None:
    """They come last, so they win over an entry of the same name."""
    extra = {"name": "NCCL_TOPO_FILE", "value": "/etc/nccl/topo.xml"}
    checks = config(render(ncclAllreduceExtraEnv=[extra]))["initContainers"]
    assert [extra in check["env"] for check in checks] == [False, False, True]
    assert checks[2]["env"][-1] == extra


@pytest.mark.covers("P11-129", "P-028", "P-029", "P-030")
def test_the_image_cache_holds_every_check_image(render: Render) -> None:
    """One container an entry, with a selector that the webhook's Service cannot match; off by default."""
    assert ("DaemonSet", "preflight-image-cache") not in render()
    objects = render(
        imageCache={"enabled": True, "podAnnotations": {"a": "b"}},
        nodeSelector={"own": "1"},
        **{"global": {"nodeSelector": {"gpu": "yes"}, "systemNodeSelector": {"pool": "system"}}},
    )
    cache = objects["DaemonSet", "preflight-image-cache"]["spec"]
    pod = cache["template"]["spec"]
    expected = [(one["name"], one["image"]) for one in config(objects)["initContainers"]]
    assert [(one["name"], one["image"]) for one in pod["containers"]] == expected
    assert pod["containers"][0]["resources"] == {
        "requests": {"cpu": "10m", "memory": "16Mi"},
        "limits": {"cpu": "50m", "memory": "64Mi"},
    }
    assert cache["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "100%"
    assert cache["template"]["metadata"]["annotations"]["a"] == "b"
    service = objects["Service", "preflight"]["spec"]["selector"]
    assert not service.items() <= cache["template"]["metadata"]["labels"].items()
    assert pod["nodeSelector"] == {"gpu": "yes"}
    webhook = objects["Deployment", "preflight"]["spec"]["template"]["spec"]
    assert webhook["nodeSelector"] == {"pool": "system"}


@pytest.mark.covers("P11-130")
def test_images_are_text_or_a_repository_with_a_tag(render: Render) -> None:
    """Text stays; an empty tag is the shared one, then the chart's."""
    entries = [
        {"name": "a", "image": "r/a@sha256:0"},
        {"name": "b", "image": {"repository": "r/b", "tag": ""}},
        {"name": "c", "image": {"repository": "r/c", "tag": "v1"}},
    ]
    shared = config(render(initContainers=entries, **{"global": {"image": {"tag": "v9"}}}))
    assert [one["image"] for one in shared["initContainers"]] == [
        "r/a@sha256:0",
        "r/b:v9",
        "r/c:v1",
    ]
    own = config(render(initContainers=entries))
    assert own["initContainers"][1]["image"] == "r/b:1.0.0"


@pytest.mark.covers("P-167", "P-179", "P-180")
def test_one_value_moves_the_port_everywhere(render: Render) -> None:
    """Argument, container port, policy; probes and Service follow by name (decision 75)."""
    objects = render(webhook={"port": 9443})
    container = objects["Deployment", "preflight"]["spec"]["template"]["spec"]["containers"][0]
    assert "--port=9443" in container["args"]
    assert container["ports"][0] == {"name": "https", "containerPort": 9443, "protocol": "TCP"}
    assert container["livenessProbe"]["httpGet"] == {
        "path": "/healthz",
        "port": "https",
        "scheme": "HTTPS",
    }
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert objects["Service", "preflight"]["spec"]["ports"][0]["targetPort"] == "https"
    policy = objects["NetworkPolicy", "preflight-allow-webhook"]["spec"]["ingress"][0]["ports"]
    assert policy[0]["port"] == 9443


@pytest.mark.covers("P-182")
def test_metrics_have_a_port_and_a_service(render: Render) -> None:
    """Scrape annotations on the pod and on a Service of its own; all gone when switched off."""
    objects = render()
    notes = objects["Service", "preflight-metrics"]["metadata"]["annotations"]
    assert notes["prometheus.io/port"] == "8080"
    without = render(metrics={"enabled": False})
    assert ("Service", "preflight-metrics") not in without
    container = without["Deployment", "preflight"]["spec"]["template"]["spec"]["containers"][0]
    assert "--metrics-port=0" in container["args"]
    watched = render(
        metrics={
            "serviceMonitor": {"enabled": True},
            "alerts": {"enabled": True},
            "dashboard": {"enabled": True},
        }
    )
    [group] = watched["PrometheusRule", "preflight"]["spec"]["groups"]
    assert all(rule["annotations"]["action"] for rule in group["rules"])
    dashboard = json.loads(watched["ConfigMap", "preflight-dashboard"]["data"]["preflight.json"])
    assert len(dashboard["panels"]) == 6
    assert ("ServiceMonitor", "preflight") in watched


def test_dashboard_and_alerts_ask_for_series_that_the_webhook_has(render: Render) -> None:
    """Names, and the values of their labels: an alert on a result that nobody counts never fires."""
    metrics = Metrics()
    figures = GangFigures(metrics.registry)
    figures.written("updated")
    metrics.certificate_reloads.labels("loaded")
    text = metrics.text()[0].decode()
    known = set(re.findall(r"^(preflight_\w+)", text, re.MULTILINE))
    results = set(re.findall(r'preflight_injection_total\{result="(\w+)"\}', text))
    objects = render(metrics={"alerts": {"enabled": True}, "dashboard": {"enabled": True}})
    rules = json.dumps(objects["PrometheusRule", "preflight"]["spec"]["groups"])
    panels = objects["ConfigMap", "preflight-dashboard"]["data"]["preflight.json"]
    for said in (rules, panels):
        assert set(re.findall(r"\bpreflight_\w+", said)) <= known
    [matched] = re.findall(r'result=~\\"([\w|]+)\\"', rules)
    assert set(matched.split("|")) <= results


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"webhook": {"certProvider": "openshift-service-ca"}},
        {"gangCoordination": {"enabled": False}, "replicaCount": 1},
        {"replicaCount": 2},
    ],
    ids=["default", "openshift", "single-node", "two-replicas"],
)
def test_only_the_webhooks_pods_are_selected(render: Render, values: dict[str, Any]) -> None:
    """By Services, policy, budget and spread: neither the image cache nor the pod of `helm test`."""
    objects = render(imageCache={"enabled": True}, **values)
    own = objects["Deployment", "preflight"]["spec"]["template"]["metadata"]["labels"]
    others = [
        objects["DaemonSet", "preflight-image-cache"]["spec"]["template"]["metadata"]["labels"],
        objects["Pod", "preflight-test"]["metadata"]["labels"],
    ]
    selectors = [
        objects["Service", "preflight"]["spec"]["selector"],
        objects["Service", "preflight-metrics"]["spec"]["selector"],
        objects["Deployment", "preflight"]["spec"]["selector"]["matchLabels"],
        objects["NetworkPolicy", "preflight-allow-webhook"]["spec"]["podSelector"]["matchLabels"],
    ]
    if budget := objects.get(("PodDisruptionBudget", "preflight")):
        selectors.append(budget["spec"]["selector"]["matchLabels"])
    for selector in selectors:
        assert selector.items() <= own.items()
        assert not [labels for labels in others if selector.items() <= labels.items()]


@pytest.mark.covers("P-114", "P-115", "P-117")
def test_pull_secrets_of_pods_and_of_the_webhook(render: Render) -> None:
    """Injected ones are in the configuration; the webhook's own are the shared list, then the chart's."""
    assert "imagePullSecrets" not in config(render())
    objects = render(
        injectedImagePullSecrets=[{"name": "a"}],
        imagePullSecrets=[{"name": "own"}],
        **{"global": {"imagePullSecrets": [{"name": "shared"}]}},
    )
    assert config(objects)["imagePullSecrets"] == [{"name": "a"}]
    pod = objects["Deployment", "preflight"]["spec"]["template"]["spec"]
    assert pod["imagePullSecrets"] == [{"name": "shared"}]


def test_several_replicas_are_spread_and_guarded(render: Render) -> None:
    """A disruption budget and a spread come with the second replica."""
    assert ("PodDisruptionBudget", "preflight") not in render()
    objects = render(replicaCount=2)
    assert objects["PodDisruptionBudget", "preflight"]["spec"]["maxUnavailable"] == 1
    pod = objects["Deployment", "preflight"]["spec"]["template"]["spec"]
    assert pod["topologySpreadConstraints"][0]["topologyKey"] == "kubernetes.io/hostname"


def test_a_change_of_the_configuration_rolls_the_pods(render: Render) -> None:
    """The checksum on the pod follows the configuration."""

    def checksum(objects: Objects) -> str:
        meta = objects["Deployment", "preflight"]["spec"]["template"]["metadata"]
        return str(meta["annotations"]["checksum/config"])

    assert checksum(render()) == checksum(render())
    assert checksum(render()) != checksum(render(processingStrategy="STORE_ONLY"))


def test_a_webhook_elsewhere_deploys_nothing(render: Render) -> None:
    """Decision 79: with an address, only the registration and its access are rendered."""
    objects = render(webhook={"url": "https://127.0.0.1:9443/mutate", "caBundle": "Zm9v"})
    kinds = {kind for kind, _ in objects}
    assert not kinds & {"Deployment", "Service", "Certificate", "Issuer", "Pod", "NetworkPolicy"}
    webhook = objects["MutatingWebhookConfiguration", "preflight"]["webhooks"][0]
    assert webhook["clientConfig"] == {
        "url": "https://127.0.0.1:9443/mutate",
        "caBundle": "Zm9v",
    }
