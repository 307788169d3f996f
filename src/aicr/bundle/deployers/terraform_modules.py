"""The files of a Terraform bundle that do not depend on its components, or only on its form.

```
modules/component/  one component: helm_release pre -> this -> post -> readiness, absent slots count 0
versions.tf         what is needed; in the root form the provider with its connection
variables.tf, terraform.tfvars.example
```
Values and charts are read with `file()` and by path, so Terraform's own templating never meets them.
A slot made of files of the bundle carries a digest as the release's description: without it, a
changed manifest would leave every argument as it was and the plan would be empty.

Source: bundler spec 5.6; requirements C-113 to C-118.
"""

from __future__ import annotations

from aicr.bundle.deployers import waiting
from aicr.bundle.deployers.terraform_hcl import Attribute, Block, Comment, listed, render, string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.bundle.deployers.terraform_hcl import Item

MODULE: Final = "modules/component"
GENERATED: Final = "Made by aicr; change the recipe or the flags and make the bundle again."

#: terraform_data came with 1.4, optional attributes of objects with 1.3.
_TERRAFORM: Final = ">= 1.4.0"
_PROVIDER: Final = "hashicorp/helm"
#: Version 3 made `kubernetes` an attribute of the provider.
_PROVIDER_VERSION: Final = "~> 3.0"
_SLOTS: Final = ("pre", "post", "readiness")

_CONNECTION: Final[tuple[tuple[str, str, str, bool], ...]] = (
    ("kubeconfig_path", '"~/.kube/config"', "Kubeconfig file; unused with cluster_host.", False),
    ("kube_context", "null", "Context in the kubeconfig; null takes the current one.", False),
    (
        "cluster_host",
        "null",
        "Address of the API server, to connect without a kubeconfig.",
        False,
    ),
    ("cluster_ca_certificate", "null", "CA certificate of the API server, PEM.", False),
    ("cluster_token", "null", "Bearer token, with cluster_host.", True),
    ("client_certificate", "null", "Client certificate, PEM, with cluster_host.", True),
    ("client_key", "null", "Key of the client certificate, PEM.", True),
)


def versions_tf(*, child: bool) -> bytes:
    """versions.tf: what is required, and in the root form how the cluster is reached."""
    requirement = [Attribute("source", string(_PROVIDER))]
    requirement.append(Attribute("version", string(_PROVIDER_VERSION)))
    body: list[Item] = [
        Attribute("required_version", string(_TERRAFORM)),
        None,
        Block("required_providers", [], [Attribute("helm", requirement)]),
    ]
    items: list[Item] = [Comment(GENERATED), Block("terraform", [], body)]
    if not child:
        direct = "var.cluster_host == null"
        connection = [
            Attribute("config_path", f"{direct} ? pathexpand(var.kubeconfig_path) : null"),
            Attribute("config_context", f"{direct} ? var.kube_context : null"),
            Attribute("host", "var.cluster_host"),
            Attribute("cluster_ca_certificate", "var.cluster_ca_certificate"),
            Attribute("token", "var.cluster_token"),
            Attribute("client_certificate", "var.client_certificate"),
            Attribute("client_key", "var.client_key"),
        ]
        items += [None, Block("provider", ["helm"], [Attribute("kubernetes", connection)])]
    return render(items).encode()


def variables_tf(*, child: bool, rollover: bool) -> bytes:
    """variables.tf: how to wait and, in the root form, how to reach the cluster."""
    items: list[Item] = [Comment(GENERATED)]
    items += _variable(
        "wait", "bool", "Wait for each release to be ready before what depends on it.", "true"
    )
    items += _variable(
        "timeout", "number", "Seconds that a release may take.", str(waiting.TIMEOUT)
    )
    if not child:
        for name, default, description, sensitive in _CONNECTION:
            items += _variable(name, "string", description, default, sensitive=sensitive)
    elif rollover:
        items += _variable(
            "cluster_endpoint",
            "string",
            "Address of the cluster; when it changes, every release is installed again.",
            "null",
        )
    return render(items[:-1]).encode()


def tfvars_example() -> bytes:
    """terraform.tfvars.example of the root form: every variable with its default, commented out."""
    lines = [
        "# Copy to terraform.tfvars and change what differs. Keep credentials out of it: pass them as",
        "# TF_VAR_cluster_token and the like.",
        "",
        "# wait    = true",
        f"# timeout = {waiting.TIMEOUT}",
        "",
        '# kubeconfig_path = "~/.kube/config"',
        '# kube_context    = "my-cluster"',
        "",
        '# cluster_host           = "https://cluster.example.com"',
        '# cluster_ca_certificate = "-----BEGIN CERTIFICATE-----..."',
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def component_main_tf(*, rollover: bool) -> bytes:
    """modules/component/main.tf: the four releases of a component, one after another."""
    source = [Attribute("source", string(_PROVIDER))]
    needs = Block("required_providers", [], [Attribute("helm", source)])
    items: list[Item] = [Comment(GENERATED), Block("terraform", [], [needs]), None]
    if rollover:
        items += [
            Comment("Replaced when the cluster changes, and every release with it."),
            Block("resource", ["terraform_data", "cluster"], [_set("triggers_replace", "cluster")]),
            None,
        ]
    items += [_slot("pre", [], rollover), None]
    body: list[Item] = [
        _set("name"),
        _set("namespace"),
        _set("repository"),
        _set("chart"),
        _set("version", "chart_version"),
        _set("description", "digest"),
        _values("var.values_files"),
        _set("create_namespace"),
        _set("wait"),
        _set("timeout"),
        None,
        Attribute("depends_on", listed(["helm_release.pre"])),
        *_rollover(rollover),
    ]
    items += [Block("resource", ["helm_release", "this"], body), None]
    items += [_slot("post", ["helm_release.this"], rollover), None]
    items += [
        Comment(
            "A gate is what the components after it rely on: it is waited for in any case. Its"
        ),
        Comment("Job is a Helm hook, which Helm waits for by itself."),
        _slot("readiness", ["helm_release.this", "helm_release.post"], rollover),
    ]
    return render(items).encode()


def component_variables_tf(*, rollover: bool) -> bytes:
    """modules/component/variables.tf."""
    slot = [
        Attribute("name", "string"),
        Attribute("chart", "string"),
        Attribute("digest", "string"),
        Attribute("values_files", "list(string)"),
        Attribute("create_namespace", "bool"),
    ]
    items: list[Item] = [Comment(GENERATED)]
    items += _variable("name", "string", "Release name.")
    items += _variable("namespace", "string", "Namespace of all releases of the component.")
    items += _variable("chart", "string", "Chart name, or folder of a local chart.")
    items += _variable("repository", "string", "Chart repository; null for a local chart.", "null")
    items += _variable("chart_version", "string", "Chart version; null for a local chart.", "null")
    items += _variable("digest", "string", "Digest of a local chart's content.", "null")
    items += _variable("values_files", "list(string)", "Values files, the last one wins.")
    items += _variable("create_namespace", "bool", "Whether Helm makes the namespace.", "true")
    items += _variable("wait", "bool", "Wait until the releases are ready.")
    items += _variable("timeout", "number", "Seconds that a release may take.")
    if rollover:
        items += _variable("cluster", "string", "What identifies the cluster.", "null")
    for name, words in zip(
        _SLOTS, ("before the chart", "after the chart", "to wait for readiness"), strict=True
    ):
        shape = render(slot, depth=2)
        items += _variable(
            name, f"object({{\n{shape}  }})", f"Local chart {words}; null for none.", "null"
        )
    return render(items[:-1]).encode()


def component_outputs_tf() -> bytes:
    """modules/component/outputs.tf."""
    value = [
        Attribute("name", "helm_release.this.name"),
        Attribute("namespace", "helm_release.this.namespace"),
        Attribute("chart", "helm_release.this.chart"),
        Attribute("version", "helm_release.this.version"),
        Attribute("status", "helm_release.this.status"),
    ]
    body: list[Item] = [Attribute("description", string("The component's main release."))]
    body.append(Attribute("value", value))
    return render([Comment(GENERATED), Block("output", ["release"], body)]).encode()


def _slot(name: str, after: list[str], rollover: bool) -> Block:
    gate = name == waiting.GATE
    body: list[Item] = [
        Attribute("count", f"var.{name} == null ? 0 : 1"),
        None,
        _set("name", f"{name}.name"),
        _set("namespace"),
        _set("chart", f"{name}.chart"),
        _set("description", f"{name}.digest"),
        _values(f"var.{name}.values_files"),
        _set("create_namespace", f"{name}.create_namespace"),
        Attribute("wait", "true" if gate else "var.wait"),
        Attribute("timeout", str(waiting.GATE_TIMEOUT) if gate else "var.timeout"),
    ]
    if after:
        body += [None, Attribute("depends_on", listed(after))]
    body += _rollover(rollover)
    return Block("resource", ["helm_release", name], body)


def _rollover(rollover: bool) -> list[Item]:
    if not rollover:
        return []
    trigger = Attribute("replace_triggered_by", listed(["terraform_data.cluster"]))
    return [None, Block("lifecycle", [], [trigger])]


def _set(name: str, variable: str = "") -> Attribute:
    return Attribute(name, f"var.{variable or name}")


def _values(files: str) -> Attribute:
    return Attribute("values", f"[for path in {files} : file(path)]")


def _variable(
    name: str, kind: str, description: str, default: str = "", *, sensitive: bool = False
) -> list[Item]:
    # A type over several lines is a group of its own, so it comes last.
    body: list[Item] = []
    kind_line = Attribute("type", kind)
    if "\n" not in kind:
        body.append(kind_line)
    body.append(Attribute("description", string(description)))
    if default:
        body.append(Attribute("default", default))
    if sensitive:
        body.append(Attribute("sensitive", "true"))
    if "\n" in kind:
        body += [None, kind_line]
    return [Block("variable", [name], body), None]
