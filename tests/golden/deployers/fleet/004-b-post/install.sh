#!/usr/bin/env bash
# Installs or upgrades one release of the chart in this folder; safe to run again.
# Read from the environment:
#   COMPONENT_WAIT_ARGS       waiting arguments for helm, for example "--wait --timeout 10m"
#   DRY_RUN_FLAG              --dry-run, --dry-run=client or --dry-run=server
#   HELM_DEBUG_FLAG           --debug
#   KUBECONFIG, KUBE_CONTEXT  which cluster
set -euo pipefail

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
CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

RELEASE='b-post'
NAMESPACE='b-system'
CREATE_NAMESPACE='true'
OWNS_NAMESPACE='false'

if [ -n "${KUBECONFIG_FLAG:-}" ]; then
  echo "$RELEASE: KUBECONFIG_FLAG is read by deploy.sh only; set KUBE_CONTEXT or KUBECONFIG" >&2
  exit 64
fi

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
