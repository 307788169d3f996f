"""The Terraform deployer: one module call a component, with the declared graph on the calls.

```
components -> main.tf          module "x" { … depends_on = [exactly what x declares] }
           -> outputs.tf       the releases
form       -> modules/component, versions.tf, variables.tf        (``terraform_modules``)
```
A component's folders are slots of its module and chain inside it, so an edge to the call covers the
gate without naming it. With `--serial` each call depends on the one before instead of on its
declared dependencies. The root form connects to a cluster by itself; the child form is called by
somebody's own configuration and has neither provider nor connection variables.

It must not know what a chart is made of. Source: bundler spec 5.0, 5.6; requirements C-111 to
C-118, C-133.
"""

from __future__ import annotations

from aicr.artifacts import checksums
from aicr.bundle import info, layout, readme, scripts
from aicr.bundle.deployers import terraform_modules, waiting
from aicr.bundle.deployers.terraform_hcl import (
    Attribute,
    Block,
    Comment,
    escaped,
    listed,
    render,
    string,
)
from aicr.errors import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.bundle.deployers import Files
    from aicr.bundle.deployers.terraform_hcl import Item
    from aicr.bundle.layout import Folder
    from aicr.bundle.plan import Plan

NAME: Final = "terraform"
BUILD_TYPE: Final = "terraform-bundle"
ENTRYPOINT: Final = "main.tf"
STEPS: Final = ("cd <output folder>", "terraform init", "terraform plan", "terraform apply")

_VARIABLES: Final = "variables.tf"
_VERSIONS: Final = "versions.tf"
_OUTPUTS: Final = "outputs.tf"
_EXAMPLE: Final = "terraform.tfvars.example"


def generate(plan: Plan, folders: list[Folder]) -> Files:
    """The complete file set of a Terraform bundle: relative path -> (bytes, mode).

    Raises:
        AicrError: INVALID_REQUEST for two components whose names
            give one module label.
    """
    flags = plan.options
    child, rollover = flags.terraform_child_module, flags.terraform_cluster_rollover
    files: Files = {}
    for folder in folders:
        for path, content in folder.files.items():
            files[f"{folder.dir}/{path}"] = content
    module = terraform_modules.MODULE
    pages = {
        ENTRYPOINT: main_tf(plan, folders, child=child, rollover=rollover),
        _VERSIONS: terraform_modules.versions_tf(child=child),
        _VARIABLES: terraform_modules.variables_tf(child=child, rollover=rollover),
        _OUTPUTS: outputs_tf(plan),
        f"{module}/main.tf": terraform_modules.component_main_tf(rollover=rollover),
        f"{module}/{_VARIABLES}": terraform_modules.component_variables_tf(rollover=rollover),
        f"{module}/{_OUTPUTS}": terraform_modules.component_outputs_tf(),
    }
    about = {
        ENTRYPOINT: "a module call for each component, with its dependencies",
        _VERSIONS: "what is required, and the provider" if not child else "what is required",
        _VARIABLES: "what can be set",
        _OUTPUTS: "the releases",
        module: "installs one component",
    }
    if not child:
        pages[_EXAMPLE] = terraform_modules.tfvars_example()
        about[_EXAMPLE] = "copy to terraform.tfvars and change what differs"
    files.update((path, (content, info.MODE)) for path, content in pages.items())
    files[info.README] = (
        readme.readme(
            plan,
            folders,
            deploy=STEPS[1:],
            uninstall=("terraform destroy",),
            files={
                **about,
            },
            sections=_sections(plan, folders, child=child, rollover=rollover),
        ),
        info.MODE,
    )
    return info.complete(files, plan, folders, deployer=NAME, entrypoint=ENTRYPOINT, manifest="")


def label(component: str) -> str:
    """The module label of a component: other characters than letters, digits and `_` become `_`.

    >>> label("gpu-operator"), label("1password-connect")
    ('gpu_operator', '_1password_connect')
    """
    made = "".join(
        char if char.isascii() and (char.isalnum() or char == "_") else "_" for char in component
    )
    return f"_{made}" if made[:1].isdigit() else made


def labels(plan: Plan) -> dict[str, str]:
    """Module label of each component, in deployment order.

    Raises:
        AicrError: INVALID_REQUEST when two components would share one (bundler spec test 55).
    """
    made: dict[str, str] = {}
    taken: dict[str, str] = {}
    for component in plan.components:
        own = label(component.name)
        if own in taken:
            raise invalid(
                f"components {taken[own]!r} and {component.name!r} have the same Terraform module "
                f"label {own!r}",
                where=component.name,
                hint="rename one of the two components, or use another --deployer",
            )
        taken[own] = component.name
        made[component.name] = own
    return made


def main_tf(plan: Plan, folders: list[Folder], *, child: bool, rollover: bool) -> bytes:
    """main.tf: the module calls in deployment order."""
    named = labels(plan)
    slots: dict[str, dict[str, Folder]] = {}
    for folder in folders:
        slots.setdefault(folder.parent, {})[folder.phase] = folder
    items: list[Item] = [Comment(terraform_modules.GENERATED)]
    previous = ""
    for component in plan.components:
        name = component.name
        if name not in slots:
            continue
        if plan.serial:
            edges = [previous] if previous else []
        else:
            edges = [edge for edge in plan.dependencies.get(name, ()) if edge in slots]
        cluster = ("var.cluster_endpoint" if child else "var.cluster_host") if rollover else ""
        body = _call(name, slots[name], cluster)
        if edges:
            targets = [f"module.{named[edge]}" for edge in edges]
            body += [None, Attribute("depends_on", listed(targets))]
        items += [Block("module", [named[name]], body), None]
        previous = name
    return render(items[:-1]).encode()


def outputs_tf(plan: Plan) -> bytes:
    """outputs.tf: name, namespace, chart, version and status of each component's main release."""
    value = [
        Attribute(string(name), f"module.{module}.release") for name, module in labels(plan).items()
    ]
    body: list[Item] = [Attribute("description", string("The main release of each component."))]
    body.append(Attribute("value", value))
    return render(
        [Comment(terraform_modules.GENERATED), Block("output", ["releases"], body)]
    ).encode()


def _call(name: str, slots: dict[str, Folder], cluster: str) -> list[Item]:
    """The body of a module call, without its edges."""
    this = slots["primary"]
    body: list[Item] = [
        Attribute("source", string(f"./{terraform_modules.MODULE}")),
        None,
        Attribute("name", string(this.release)),
        Attribute("namespace", string(this.namespace)),
    ]
    if this.kind == layout.UPSTREAM_HELM:
        repository, chart = this.repo, this.chart
        if not repository:
            repository, _, chart = chart.rpartition("/")
        body += [
            Attribute("repository", string(repository)),
            Attribute("chart", string(chart)),
        ]
        if this.version:
            body.append(Attribute("chart_version", string(this.version)))
    else:
        body.append(Attribute("chart", _path(this.dir)))
        body.append(Attribute("digest", string(_digest(this))))
    body.append(Attribute("values_files", _values_files(this)))
    if not this.create_namespace:
        body.append(Attribute("create_namespace", "false"))
    if cluster:
        body.append(Attribute("cluster", cluster))
    rule = waiting.rule(name, "primary")
    if rule is None:
        body += [Attribute("wait", "var.wait"), Attribute("timeout", "var.timeout")]
    else:
        body += [
            None,
            Comment(
                "Its workloads become ready only later, when there are nodes and queues for them,"
            ),
            Comment("so these two do not follow the variables."),
            Attribute("wait", "true" if rule[0] else "false"),
            Attribute("timeout", str(rule[1])),
        ]
    for phase in ("pre", "post", waiting.GATE):
        if phase in slots:
            folder = slots[phase]
            held = [
                Attribute("name", string(folder.release)),
                Attribute("chart", _path(folder.dir)),
                Attribute("digest", string(_digest(folder))),
                Attribute("values_files", _values_files(folder)),
                Attribute("create_namespace", "true" if folder.create_namespace else "false"),
            ]
            body += [None, Attribute(phase, held)]
    return body


def _path(inside: str) -> str:
    # Not through `string`: path.module is the one thing here that Terraform is to fill in.
    return f'"${{path.module}}/{escaped(inside)}"'


def _values_files(folder: Folder) -> str:
    paths = [f"{folder.dir}/values.yaml"]
    if folder.cluster_values:
        paths.append(f"{folder.dir}/cluster-values.yaml")
    return listed(map(_path, paths))


def _digest(folder: Folder) -> str:
    """Digest of what a local chart installs: all of its folder but the script and the values.

    The values reach the release as text, so a change of theirs shows by itself.
    """
    content = {
        path: held
        for path, held in folder.files.items()
        if path not in (scripts.INSTALL, "values.yaml", "cluster-values.yaml")
    }
    return f"sha256:{checksums.sha256_hex(checksums.checksums_txt(content))}"


def _sections(
    plan: Plan, folders: list[Folder], *, child: bool, rollover: bool
) -> dict[str, list[str]]:
    """What README.md says about Terraform alone."""
    how = [
        "Terraform 1.4 or later, or OpenTofu, with the provider hashicorp/helm 3. No cluster is made:",
        "name one that is there. Components that do not depend on each other are installed at the",
        "same time." if not plan.serial else "",
    ]
    if plan.serial:
        how[1:] = ["name one that is there. Components are installed one after another."]
    if child:
        how += [
            "",
            "This is a module without a provider: call it from your own configuration, which configures",
            "`helm`.",
            "",
            "```hcl",
            'module "aicr" {',
            '  source = "./bundle"',
            "}",
            "```",
        ]
    else:
        how += [
            "",
            "The cluster is that of the current kubeconfig context unless variables say otherwise; see",
            f"`{_EXAMPLE}`.",
        ]
    how += [
        "",
        "`terraform init` adds files of its own, so verify the bundle before. Keep the state in a",
        "backend: it is what a bundle that is made again must find.",
    ]
    if rollover:
        variable = "cluster_endpoint" if child else "cluster_host"
        how += [
            "",
            f"When `{variable}` changes, every release is replaced, because it is another cluster; as",
            "long as it is null nothing happens. Setting it for the first time counts as a change.",
        ]
    owners = [folder.dir for folder in folders if folder.crd_owner]
    how += [
        "",
        "**CRDs.** Helm installs the CRDs of a chart once and never changes them, and Terraform does not",
        f"run `{scripts.APPLY_CRDS}`.",
    ]
    if owners:
        how += [
            "Before an upgrade, run it yourself:",
            "",
            "```shell",
            *(f"bash ./{folder}/{scripts.APPLY_CRDS}" for folder in owners),
            "```",
        ]
    else:
        how.append("No chart of this bundle has such a script.")
    dynamic = [folder.dir for folder in folders if folder.cluster_values]
    change = [
        "The values of a component are in `values.yaml` of its folder. `cluster-values.yaml` is read",
        "only where the bundle was made with `--dynamic` for that component; it wins then. A changed",
        "bundle no longer matches `checksums.txt`.",
    ]
    if dynamic:
        change += ["", "Fill in before the first plan:", ""]
        change += [f"- `{folder}/cluster-values.yaml`" for folder in dynamic]
    return {"Terraform": how, "Change values": change}
