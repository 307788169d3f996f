"""robust-controller: the platform's operator is there, and its webhook refuses an object that is wrong.

A refusal counts only when that webhook gave it, and not another one. That we may not create the object
says nothing about it, and neither does the schema of the CRD, which the API server checks before it asks:
so a second, less empty object is tried when the schema was first. The object goes into a namespace of the
run; one that was accepted is removed by its UID. What the recipe does not declare and is there all the
same is checked (decision 64). Source: validators spec 6.2; decisions 64, 66.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aicr.checks.conformance.endpoints import ENDPOINT_SLICE
from aicr.checks.conformance.exposure import SERVICE_NAME, ready_endpoints
from aicr.checks.conformance.required import home, listed, required_crd, unread
from aicr.checks.sdk import CONFORMANCE, Capability, Check, Context, failed, require
from aicr.checks.sdk.cluster_reads import established, probe
from aicr.checks.sdk.namespaces import run_namespace
from aicr.checks.sdk.removal import remove
from aicr.checks.sdk.resources import state
from aicr.errors import INTERNAL, INVALID_REQUEST, NOT_FOUND, AicrError
from aicr.kube import kinds
from aicr.kube.kinds import Resource

WEBHOOKS: Final = Resource(
    *("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"),
    *("ValidatingWebhookConfiguration", False),
)
#: The API server's words about a webhook that refused.
_DENIED: Final = re.compile(r'admission webhook "(?P<name>[^"]+)" denied the request')
_UNREACHED: Final = "failed calling webhook"

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator whose webhook is put to the test.

    Attributes:
        component, namespace, deployment: where it is; the namespace when the recipe says none.
        part: what the name of its webhook configuration contains.
        crd, api_version, kind: the objects that it judges.
        wrong: specs that its webhook must refuse, tried in turn.
    """

    component: str
    namespace: str
    deployment: str
    part: str
    crd: str
    api_version: str
    kind: str
    wrong: tuple[Mapping[str, Any], ...]

    @property
    def plural(self) -> str:
        """The resource as rules of webhooks name it."""
        return self.crd.partition(".")[0]


OPERATORS: Final = (
    Operator(
        component="dynamo-platform",
        namespace="dynamo-system",
        deployment="dynamo-platform-dynamo-operator-controller-manager",
        part="dynamo",
        crd="dynamographdeployments.nvidia.com",
        api_version="nvidia.com/v1alpha1",
        kind="DynamoGraphDeployment",
        wrong=({}, {"services": {}}),
    ),
    Operator(
        component="kubeflow-trainer",
        namespace="kubeflow",
        deployment="kubeflow-trainer-controller-manager",
        part="trainer",
        crd="trainjobs.trainer.kubeflow.org",
        api_version="trainer.kubeflow.org/v1alpha1",
        kind="TrainJob",
        wrong=({}, {"runtimeRef": {"name": "aicr-robust-test-no-such-runtime"}}),
    ),
)


async def run(context: Context) -> None:
    """The operator, its webhook, its CRD, and a refusal."""
    operator, namespace, controller = await _operator(context)
    ready, words = state("Deployment", controller)
    context.out(f"Deployment {namespace}/{operator.deployment}: {words}")
    if not ready:
        raise failed(
            f"Deployment {namespace}/{operator.deployment} is not ready: {words}",
            hint=f"kubectl describe deployment -n {namespace} {operator.deployment}",
        )
    hooks = await _webhooks(context, operator)
    crd = await required_crd(context, operator.crd)
    if not established(crd):
        raise failed(f"CustomResourceDefinition {operator.crd} is not established")
    context.out(f"CRD {operator.crd}: established")
    async with run_namespace(context, "robust-test") as mine:
        said = await _refusal(context, operator, mine.name, hooks)
    context.out(f"Refused by the webhook: {said}")


async def _operator(context: Context) -> tuple[Operator, str, Document]:
    """The declared operator, else one that is there; its namespace and Deployment."""
    declared = [each for each in OPERATORS if context.component(each.component) is not None]
    for operator in declared[:1] or OPERATORS:
        _, namespace = home(context, operator.namespace, operator.component)
        found, error = await probe(context, kinds.DEPLOYMENT, operator.deployment, namespace)
        last = not declared and operator is not OPERATORS[-1]
        if last and error is not None and error.code == NOT_FOUND:
            continue
        subject = f"Deployment {namespace}/{operator.deployment}"
        none = "none of " + ", ".join(each.component for each in OPERATORS)
        require(
            context,
            Capability(
                operator.component, subject, inapplicable=f"{none} is declared or installed"
            ),
            error,
            found is not None,
        )
        assert found is not None
        return operator, namespace, found
    raise AicrError(INTERNAL, "there is no operator to look for")


async def _webhooks(context: Context, operator: Operator) -> set[str]:
    """The names of the operator's webhooks for its kind, for each of which somebody answers."""
    found = await listed(context, WEBHOOKS)
    hooks = covering(found, operator)
    if not hooks:
        raise failed(
            f'no ValidatingWebhookConfiguration named like "{operator.part}" covers {operator.plural}',
            code=NOT_FOUND,
            hint="kubectl get validatingwebhookconfigurations",
        )
    for name, hook in hooks:
        service = (hook.get("clientConfig") or {}).get("service")
        if not service:
            context.out(f"Webhook {name}/{hook.get('name')}: reached by URL")
            continue
        slices = await listed(
            context,
            ENDPOINT_SLICE,
            str(service["namespace"]),
            {SERVICE_NAME: str(service["name"])},
        )
        ready = ready_endpoints(slices, str(service["name"]))
        where = f"{service['namespace']}/{service['name']}"
        context.out(
            f"Webhook {name}/{hook.get('name')}: Service {where}, {ready} ready endpoint(s)"
        )
        if not ready:
            raise failed(
                f"webhook {hook.get('name')} has no ready endpoint: Service {where}",
                code=NOT_FOUND,
                hint=f"kubectl get endpointslices,pods -n {service['namespace']}",
            )
    return {str(hook.get("name")) for _, hook in hooks}


async def _refusal(context: Context, operator: Operator, namespace: str, hooks: set[str]) -> str:
    """The webhook's words about an object that is wrong.

    Raises:
        AicrError: a verdict when the object was accepted or the webhook could not be called; INTERNAL
            when something else refused it.
    """
    schema: AicrError | None = None
    for number, spec in enumerate(operator.wrong, 1):
        document = wrong_object(operator, f"{namespace}-{number}", spec)
        try:
            accepted = await context.cluster.create(document, namespace=namespace)
        except AicrError as error:
            name, said = webhook_words(error)
            if name in hooks:
                return said
            if name:
                raise AicrError(
                    INTERNAL, f'webhook "{name}" refused before the operator\'s own could'
                ) from error
            if _UNREACHED in str(error):
                raise failed(
                    f"the webhook for {operator.plural} cannot be called",
                    hint="look at its Service, its certificate and its pods",
                ) from error
            if error.code != INVALID_REQUEST:
                raise unread(
                    f"what the webhook says about a wrong {operator.kind}", error
                ) from error
            schema = error
            continue
        metadata = accepted["metadata"]
        await remove(
            context,
            f"{operator.api_version}/{operator.kind}",
            metadata["name"],
            namespace,
            str(metadata.get("uid") or ""),
        )
        raise failed(
            f"a wrong {operator.kind} was accepted: the webhook does not judge it",
            hint="look at the webhook's failurePolicy and selectors, and at the operator's log",
        )
    raise AicrError(
        INTERNAL,
        f"the schema of {operator.crd} refused every wrong object before the webhook could",
    ) from schema


def covering(configurations: Iterable[Document], operator: Operator) -> list[tuple[str, Document]]:
    """Configuration and webhook, for each webhook of the operator that judges its kind; by name."""
    group = operator.api_version.partition("/")[0]
    found = []
    for configuration in sorted(configurations, key=lambda each: str(each["metadata"]["name"])):
        name = str(configuration["metadata"]["name"])
        if operator.part not in name:
            continue
        found += [
            (name, hook)
            for hook in configuration.get("webhooks") or []
            if any(_covers(rule, group, operator.plural) for rule in hook.get("rules") or [])
        ]
    return found


def _covers(rule: Document, group: str, plural: str) -> bool:
    def has(key: str, values: Sequence[str]) -> bool:
        return any(value in (rule.get(key) or []) for value in values)

    return (
        has("apiGroups", (group, "*"))
        and has("resources", (plural, "*", "*/*"))
        and has("operations", ("CREATE", "*"))
    )


def wrong_object(operator: Operator, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """An object that the webhook must refuse."""
    return {
        "apiVersion": operator.api_version,
        "kind": operator.kind,
        "metadata": {"name": name},
        "spec": dict(spec),
    }


def webhook_words(error: AicrError) -> tuple[str, str]:
    """Which webhook refused, and what it said; empty when something else did.

    RBAC refuses with "cannot create resource", a schema without naming a webhook.
    """
    match = _DENIED.search(error.message)
    return (match["name"], error.message[match.start() :]) if match else ("", "")


CHECK = Check(
    name="robust-controller",
    phase=CONFORMANCE,
    summary="the platform's operator refuses an invalid object through its webhook",
    run=run,
    timeout="5m",
    details="""\
For `dynamo-platform`, else `kubeflow-trainer`: looks at the controller's Deployment, at the validating
webhooks for its kind and the EndpointSlices of their Services, and at the CRD. Then creates a wrong
object (DynamoGraphDeployment, TrainJob) in a namespace of the run.

- Passes when the webhook refuses the object.
- Fails when a part is absent or not ready, when the webhook cannot be called, or when the object is
  accepted (it is removed again). A refusal by RBAC is UNAUTHORIZED; one by the CRD's schema alone cannot
  tell (INTERNAL).
- Skips when neither component is declared or installed.
""",
    reads=(
        "deployments in dynamo-system or kubeflow",
        "validatingwebhookconfigurations",
        "endpointslices of webhook Services",
        "customresourcedefinitions",
    ),
    writes=("a namespace of the run, and in it an object that should be refused",),
    capabilities=tuple(operator.component for operator in OPERATORS),
)
