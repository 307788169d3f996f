r"""The scripts inside a folder: install.sh (two texts, upstream and local) and apply-crds.sh.

The texts are constant but for a head of quoted assignments, so that no name or URL is ever part of
the program. They run on bash 3.2 and later (macOS), pass shellcheck, and take everything else from
the environment: COMPONENT_WAIT_ARGS, DRY_RUN_FLAG, HELM_DEBUG_FLAG, KUBECONFIG, KUBE_CONTEXT.

This module must not know components or deployers. Source: bundler spec 2.5, 2.6.
"""

from __future__ import annotations

from aicr.bundle.charts import shell_quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

INSTALL: Final = "install.sh"
APPLY_CRDS: Final = "apply-crds.sh"
MODE: Final = 0o755

#: Scripts change folder, so a KUBECONFIG relative to the caller's folder is made absolute first.
ABSOLUTE_KUBECONFIG: Final = r"""
if [ -n "${KUBECONFIG:-}" ]; then
  absolute=''
  while IFS= read -r -d ':' file; do
    case "$file" in
      '' | /*) ;;
      *) file="$PWD/$file" ;;
    esac
    absolute="${absolute:+$absolute:}$file"
  done <<<"$KUBECONFIG:"
  export KUBECONFIG="$absolute"
fi
"""

#: helm obeys variables of its own that kubectl does not know; both must speak to one cluster.
ONE_CLUSTER: Final = r"""
if [ -n "${HELM_KUBEAPISERVER:-}" ]; then
  echo "HELM_KUBEAPISERVER is read by helm alone, so kubectl would ask another cluster:" \
    "set KUBECONFIG or KUBE_CONTEXT instead" >&2
  exit 64
fi
if [ -n "${HELM_KUBECONTEXT:-}" ]; then
  if [ -n "${KUBE_CONTEXT:-}" ] && [ "$KUBE_CONTEXT" != "$HELM_KUBECONTEXT" ]; then
    echo "HELM_KUBECONTEXT is $HELM_KUBECONTEXT, but KUBE_CONTEXT is $KUBE_CONTEXT" >&2
    exit 64
  fi
  export KUBE_CONTEXT="$HELM_KUBECONTEXT"
fi
"""

#: helmfile tells a script the context of its own flag by an argument; it does not read KUBE_CONTEXT.
_CONTEXT_ARGUMENT: Final = r"""
case "${1:-}" in
  '') ;;
  --kube-context=) KUBE_CONTEXT='' ;;
  --kube-context=*) KUBE_CONTEXT="${1#--kube-context=}" HELM_KUBECONTEXT='' ;;
  *)
    echo "usage: apply-crds.sh [--kube-context=NAME]" >&2
    exit 64
    ;;
esac
"""

_ENTER: Final = r"""CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
"""

_ENVIRONMENT_HELP: Final = """\
# Read from the environment:
#   COMPONENT_WAIT_ARGS       waiting arguments for helm, for example "--wait --timeout 10m"
#   DRY_RUN_FLAG              --dry-run, --dry-run=client or --dry-run=server
#   HELM_DEBUG_FLAG           --debug
#   KUBECONFIG, KUBE_CONTEXT  which cluster
"""

_GUARD: Final = r"""
if [ -n "${KUBECONFIG_FLAG:-}" ]; then
  echo "$RELEASE: KUBECONFIG_FLAG is read by deploy.sh only; set KUBE_CONTEXT or KUBECONFIG" >&2
  exit 64
fi
"""

_HELM_COMMON: Final = r"""
version="$(helm version --template '{{.Version}}')"
major="${version#v}"
major="${major%%.*}"
case "$major" in
  '' | *[!0-9]*)
    echo "$RELEASE: cannot tell the major version of helm from '$version'" >&2
    exit 1
    ;;
esac
# From helm 4 on, objects are applied by the server, and fields that another writer has taken since
# the last install would stop the upgrade. A release made by helm 3 keeps client-side apply unless
# told.
if [ "$major" -ge 4 ]; then
  args+=(--server-side=true --force-conflicts)
fi
if [ -n "${KUBE_CONTEXT:-}" ]; then
  args+=(--kube-context "$KUBE_CONTEXT")
fi
set -f
for word in ${COMPONENT_WAIT_ARGS:-} ${DRY_RUN_FLAG:-} ${HELM_DEBUG_FLAG:-}; do
  args+=("$word")
done
set +f

exec helm "${args[@]}"
"""

_RUN_CRDS: Final = r"""
if [ -f ./apply-crds.sh ] && [ -z "${DRY_RUN_FLAG:-}" ]; then
  bash ./apply-crds.sh
fi
"""

_UPSTREAM: Final = (
    r"""
CHART='' REPO='' VERSION=''
# shellcheck source=/dev/null
. ./upstream.env
"""
    + _RUN_CRDS
    + r"""
args=(upgrade --install "$RELEASE" "$CHART")
if [ -n "$REPO" ]; then
  args+=(--repo "$REPO")
fi
if [ -n "$VERSION" ]; then
  args+=(--version "$VERSION")
fi
args+=(--namespace "$NAMESPACE" --create-namespace -f values.yaml -f cluster-values.yaml)
"""
)

_LOCAL: Final = r"""
# helm keeps its record of a release in the release's namespace, so the namespace must be there
# first. helm may create it, unless the chart declares a Namespace itself: then it would refuse an
# object that it has just made. In that case the namespace is made here, and handed to the release
# if it is the chart's own and nobody else's.
prepare_namespace() {
  local owner
  if ! command -v kubectl >/dev/null 2>&1; then
    echo "$RELEASE: no kubectl here; namespace $NAMESPACE must exist already" >&2
    return 0
  fi
  if ! kube get namespace "$NAMESPACE" >/dev/null 2>&1; then
    kube create namespace "$NAMESPACE"
  fi
  if [ "$OWNS_NAMESPACE" = true ]; then
    owner="$(kube get namespace "$NAMESPACE" -o \
      jsonpath='{.metadata.annotations.meta\.helm\.sh/release-name}')"
    if [ -z "$owner" ]; then
      kube label namespace "$NAMESPACE" --overwrite app.kubernetes.io/managed-by=Helm
      kube annotate namespace "$NAMESPACE" --overwrite \
        "meta.helm.sh/release-name=$RELEASE" "meta.helm.sh/release-namespace=$NAMESPACE"
    fi
  fi
}

kube() {
  kubectl ${KUBE_CONTEXT:+--context "$KUBE_CONTEXT"} "$@"
}

args=(upgrade --install "$RELEASE" ./)
args+=(--namespace "$NAMESPACE")
if [ "$CREATE_NAMESPACE" = true ]; then
  args+=(--create-namespace)
elif [ -z "${DRY_RUN_FLAG:-}" ]; then
  prepare_namespace
fi
args+=(-f values.yaml -f cluster-values.yaml)
"""

_CRDS_UPSTREAM: Final = r"""
CHART='' REPO='' VERSION=''
# shellcheck source=/dev/null
. ./upstream.env
"""

#: The chart is the one that lies in the folder, with the charts inside it.
_CRDS_LOCAL: Final = r"""
CHART='./' REPO='' VERSION=''
"""

_CRDS: Final = r"""
fail() {
  echo "$RELEASE: CRDs not applied: $1" >&2
  exit 1
}

# Nothing here runs without a limit: a cluster or registry that does not answer must end the step.
STEP="${AICR_CRD_STEP_TIMEOUT:-90}"
case "$STEP" in
  '' | *[!0-9]* | 0) fail "AICR_CRD_STEP_TIMEOUT must be a number of seconds, not '$STEP'" ;;
esac
command -v kubectl >/dev/null 2>&1 || fail "kubectl is not installed"
if command -v timeout >/dev/null 2>&1; then
  LIMIT=timeout
elif command -v gtimeout >/dev/null 2>&1; then
  LIMIT=gtimeout
else
  fail "neither timeout nor gtimeout is installed (on macOS: install coreutils)"
fi

bounded() {
  "$LIMIT" "$STEP" "$@"
}
kube() {
  bounded kubectl ${KUBE_CONTEXT:+--context "$KUBE_CONTEXT"} "$@"
}

# Is the release there? "Could not tell" must stop: taking over CRDs by guess could downgrade them.
exact="^${RELEASE//./\\.}\$"
release="$(bounded helm list ${KUBE_CONTEXT:+--kube-context "$KUBE_CONTEXT"} \
  --namespace "$NAMESPACE" --filter "$exact" --deployed --failed --pending --short)" ||
  fail "cannot tell whether release $RELEASE is installed in namespace $NAMESPACE"

source_args=("$CHART")
if [ -n "$REPO" ]; then
  source_args+=(--repo "$REPO")
fi
if [ -n "$VERSION" ]; then
  source_args+=(--version "$VERSION")
fi
"""

_SHOW: Final = r"""shown="$(bounded helm show crds "${source_args[@]}")" ||
  fail "cannot read the CRDs of $CHART $VERSION"
"""

_PULL: Final = r"""bounded helm pull "${source_args[@]}" --untar --untardir "$WORK" >/dev/null ||
  fail "cannot fetch the chart $CHART $VERSION"
"""

_UNPACK: Final = r"""tar -xzf charts/*.tgz -C "$WORK" || fail "cannot unpack the chart in charts/"
"""

#: `helm show crds` prints those of subcharts too and does not say which they are.
_WORK: Final = r"""
# The chart's own CRDs alone: those of its subcharts may belong to releases of their own.
WORK="$(mktemp -d)" || fail "cannot make a temporary folder"
trap 'rm -rf -- "$WORK"' EXIT
"""

_OWN: Final = r"""shown=''
for folder in "$WORK"/*/crds; do
  [ -d "$folder" ] || continue
  files="$(find "$folder" -type f \( -name '*.yaml' -o -name '*.yml' -o -name '*.json' \))" ||
    fail "cannot list the CRDs of the chart"
  while IFS= read -r file; do
    [ -z "$file" ] || shown="$shown"$'\n---\n'"$(cat -- "$file")"
  done <<<"$(LC_ALL=C sort <<<"$files")"
done
"""

_APPLY: Final = r"""# helm may print what it pulled before the first document.
crds="$(printf '%s\n' "$shown" | awk 'found || /^---/ { found = 1; print }')"
if ! grep -qE '^ *"?kind"?:' <<<"$crds"; then
  echo "$RELEASE: the chart ships no CRDs to apply"
  exit 0
fi

if [ -z "$release" ]; then
  present="$(kube get -f - --ignore-not-found -o name <<<"$crds")" ||
    fail "cannot tell whether the cluster has these CRDs"
  if [ -z "$present" ]; then
    echo "$RELEASE: first install; helm creates the CRDs"
    exit 0
  fi
fi

kube apply --server-side --force-conflicts -f - <<<"$crds" || fail "kubectl apply failed"
"""


def upstream_install_sh(release: str, namespace: str) -> bytes:
    """install.sh of a folder that refers to an upstream chart (bundler spec 2.5)."""
    return _script(
        "Installs or upgrades one release of an upstream chart; safe to run again.",
        _assignments(RELEASE=release, NAMESPACE=namespace) + _GUARD + _UPSTREAM + _HELM_COMMON,
    )


def local_install_sh(
    release: str,
    namespace: str,
    *,
    create_namespace: bool,
    owns_namespace: bool,
    crd_owner: bool = False,
) -> bytes:
    """install.sh of a folder that holds the chart itself (bundler spec 2.5).

    Args:
        release: Helm release name.
        namespace: release namespace.
        create_namespace: whether helm may create it; false when the chart declares a Namespace.
        owns_namespace: whether the Namespace that the chart declares is the release's own.
        crd_owner: whether apply-crds.sh lies beside it and runs first.
    """
    head = _assignments(
        RELEASE=release,
        NAMESPACE=namespace,
        CREATE_NAMESPACE="true" if create_namespace else "false",
        OWNS_NAMESPACE="true" if owns_namespace else "false",
    )
    return _script(
        "Installs or upgrades one release of the chart in this folder; safe to run again.",
        head + _GUARD + (_RUN_CRDS if crd_owner else "") + _LOCAL + _HELM_COMMON,
    )


def apply_crds_sh(
    release: str, namespace: str, *, local: bool = False, subcharts: bool = True
) -> bytes:
    """apply-crds.sh: brings a chart's CRDs up to the pinned version (bundler spec 2.6).

    Helm creates CRDs from `crds/` once and never updates them; this does, for charts that the
    registry says are audited for it.

    Args:
        release: Helm release name.
        namespace: release namespace.
        local: whether the chart lies in the folder instead of in a repository.
        subcharts: whether the CRDs of the charts inside the chart are meant too.
    """
    text = (
        "#!/usr/bin/env bash\n"
        "# Applies the CRDs of the pinned chart before an upgrade, because helm never does.\n"
        "# Run by install.sh. Read from the environment: KUBECONFIG, KUBE_CONTEXT, and\n"
        "# AICR_CRD_STEP_TIMEOUT, the seconds that each call may take (90).\n"
        "# --kube-context=NAME goes before KUBE_CONTEXT; empty, it is the current context.\n"
        "set -euo pipefail\n"
    )
    head = _assignments(RELEASE=release, NAMESPACE=namespace)
    source = _CRDS_LOCAL if local else _CRDS_UPSTREAM
    read = _SHOW if subcharts else _WORK + (_UNPACK if local else _PULL) + _OWN
    body = head + source + _CRDS + read + _APPLY
    connection = _CONTEXT_ARGUMENT + ONE_CLUSTER + ABSOLUTE_KUBECONFIG
    return (text + connection + _ENTER + "\n" + body).encode()


def _script(purpose: str, body: str) -> bytes:
    text = f"#!/usr/bin/env bash\n# {purpose}\n{_ENVIRONMENT_HELP}set -euo pipefail\n"
    return (text + ONE_CLUSTER + ABSOLUTE_KUBECONFIG + _ENTER + "\n" + body).encode()


def _assignments(**values: str) -> str:
    return "".join(f"{name}={shell_quote(value)}\n" for name, value in values.items())
