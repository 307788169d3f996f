r"""First half of deploy.sh: arguments, environment and the checks before anything is installed.

Constant text, to be read as the script that it is. It uses what the head defines (see
``helm_script``) and defines `kube`, `hel`, `say`, `warn`, `error`, `title` and `preflight` for the
second half. Source: bundler spec 5.1.
"""

from __future__ import annotations

from aicr.bundle.scripts import ABSOLUTE_KUBECONFIG, ONE_CLUSTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

OPTIONS: Final = (
    r"""
usage() {
  cat <<'USAGE'
usage: ./deploy.sh [--no-wait] [--best-effort] [--retries N] [--help]

  --no-wait      do not wait until the workloads of a release are ready (readiness gates still wait)
  --best-effort  go on after a release that failed; the exit status is then 1 at the end
  --retries N    how often a failed release is tried again (5)

environment:
  KUBECONFIG, KUBE_CONTEXT  which cluster
  HELM_TIMEOUT              how long to wait for one release (10m)
  DRY_RUN_FLAG              --dry-run, --dry-run=client or --dry-run=server: change nothing
  HELM_DEBUG_FLAG           --debug
  NO_COLOR                  plain output
  KUBECONFIG_FLAG           deprecated: --kube-context or --kubeconfig with a value

exit status: 0 done; 1 a release or the preflight failed; 2 done, but run it again once a driver
upgrade has finished; 64 wrong arguments
USAGE
}

BOLD='' RED='' YELLOW='' PLAIN=''
if [ -t 2 ] && [ -z "${NO_COLOR:-}" ]; then
  BOLD=$'\033[1m' RED=$'\033[31m' YELLOW=$'\033[33m' PLAIN=$'\033[0m'
fi
say() { printf '%s\n' "$*"; }
title() { printf '%s\n' "$BOLD$*$PLAIN"; }
warn() { printf '%s\n' "${YELLOW}warning:$PLAIN $*" >&2; }
error() { printf '%s\n' "${RED}error:$PLAIN $*" >&2; }
usage_error() {
  error "$*"
  usage >&2
  exit 64
}

WAIT=true
BEST_EFFORT=false
RETRIES=5
while [ $# -gt 0 ]; do
  case "$1" in
    --no-wait) WAIT=false ;;
    --best-effort) BEST_EFFORT=true ;;
    --retries)
      [ $# -ge 2 ] || usage_error "--retries needs a number"
      RETRIES="$2"
      shift
      ;;
    --retries=*) RETRIES="${1#--retries=}" ;;
    -h | --help)
      usage
      exit 0
      ;;
    *) usage_error "unknown argument: $1" ;;
  esac
  shift
done
case "$RETRIES" in
  '' | *[!0-9]* | ????*) usage_error "--retries needs a number from 0 to 999, not '$RETRIES'" ;;
esac
RETRIES=$((10#$RETRIES))

DRY_RUN_FLAG="${DRY_RUN_FLAG:-}"
case "$DRY_RUN_FLAG" in
  '' | --dry-run | --dry-run=client | --dry-run=server) ;;
  *) usage_error "DRY_RUN_FLAG must be --dry-run, --dry-run=client or --dry-run=server" ;;
esac
HELM_DEBUG_FLAG="${HELM_DEBUG_FLAG:-}"
case "$HELM_DEBUG_FLAG" in
  '' | --debug) ;;
  *) usage_error "HELM_DEBUG_FLAG must be --debug" ;;
esac
HELM_TIMEOUT="${HELM_TIMEOUT:-10m}"
case "$HELM_TIMEOUT" in
  [0-9]*[hms]) ;;
  *) usage_error "HELM_TIMEOUT must be a duration such as 10m or 1h30m, not '$HELM_TIMEOUT'" ;;
esac
case "$HELM_TIMEOUT" in
  *[!0-9.hms]*) usage_error "HELM_TIMEOUT must be a duration such as 10m, not '$HELM_TIMEOUT'" ;;
esac
export DRY_RUN_FLAG HELM_DEBUG_FLAG

# One way to name the cluster reaches helm and kubectl alike; the old variable is translated.
take_connection() {
  case "$1" in
    --kube-context)
      if [ -n "${KUBE_CONTEXT:-}" ] && [ "$KUBE_CONTEXT" != "$2" ]; then
        usage_error "KUBECONFIG_FLAG asks for context $2, but KUBE_CONTEXT is $KUBE_CONTEXT"
      fi
      export KUBE_CONTEXT="$2"
      ;;
    --kubeconfig)
      if [ -n "${KUBECONFIG:-}" ] && [ "$KUBECONFIG" != "$2" ]; then
        usage_error "KUBECONFIG_FLAG asks for the file $2, but KUBECONFIG is $KUBECONFIG"
      fi
      export KUBECONFIG="$2"
      ;;
    *) usage_error "KUBECONFIG_FLAG takes --kube-context and --kubeconfig only, not $1" ;;
  esac
}
if [ -n "${KUBECONFIG_FLAG:-}" ]; then
  warn "KUBECONFIG_FLAG is deprecated: set KUBE_CONTEXT or KUBECONFIG"
  read -r -a words <<<"$KUBECONFIG_FLAG"
  at=0
  while [ "$at" -lt "${#words[@]}" ]; do
    word="${words[$at]}"
    case "$word" in
      --*=*) take_connection "${word%%=*}" "${word#*=}" ;;
      *)
        at=$((at + 1))
        [ "$at" -lt "${#words[@]}" ] || usage_error "KUBECONFIG_FLAG: $word needs a value"
        take_connection "$word" "${words[$at]}"
        ;;
    esac
    at=$((at + 1))
  done
fi
unset KUBECONFIG_FLAG
"""
    + ONE_CLUSTER
    + ABSOLUTE_KUBECONFIG
    + r"""CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

kube() {
  kubectl ${KUBE_CONTEXT:+--context "$KUBE_CONTEXT"} "$@"
}
hel() {
  helm ${KUBE_CONTEXT:+--kube-context "$KUBE_CONTEXT"} "$@"
}
in_bundle_namespace() {
  local name
  for name in "${NAMESPACES[@]}"; do
    [ "$name" != "$1" ] || return 0
  done
  return 1
}
"""
)

PREFLIGHT: Final = r"""
PREFLIGHT_FAILED=false
preflight_fail() {
  error "$*"
  PREFLIGHT_FAILED=true
}

check_namespaces() {
  local phases name phase
  phases="$(kube get namespaces \
    -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.status.phase}{"\n"}{end}')" || {
    preflight_fail "the cluster's namespaces cannot be listed; check KUBECONFIG and KUBE_CONTEXT"
    return 0
  }
  while read -r name phase; do
    if [ "$phase" = Terminating ] && in_bundle_namespace "$name"; then
      preflight_fail "namespace $name is stuck in Terminating; see what holds it with:" \
        "kubectl get namespace $name -o jsonpath='{.status.conditions}'"
    fi
  done <<<"$phases"
}

# helm refuses a release that an earlier run, cut off half-way, has left pending; trying again does
# not help, and to clear it would be wrong while another helm is still at work on it.
check_pending() {
  local name listed release pending=' ' folder
  for name in "${NAMESPACES[@]}"; do
    listed="$(hel list --namespace "$name" --pending --short --max 0)" || {
      preflight_fail "the releases in namespace $name cannot be listed"
      return 0
    }
    for release in $listed; do
      pending="$pending$name/$release "
    done
  done
  for folder in "${FOLDERS[@]}"; do
    folder_facts "$folder"
    case "$pending" in
      *" $NAMESPACE/$RELEASE "*)
        preflight_fail "release $RELEASE in namespace $NAMESPACE is pending: another helm is at work" \
          "on it, or was cut off. If none is: helm rollback $RELEASE --namespace $NAMESPACE;" \
          "or, if it was never there before: helm uninstall $RELEASE --namespace $NAMESPACE"
        ;;
    esac
  done
}

# A webhook whose service is gone rejects what it guards, often every pod, until it is removed.
check_webhooks() {
  local hooks kind name namespace service found
  if ! command -v jq >/dev/null 2>&1; then
    warn "SKIPPED: webhook configurations were not checked, because jq is not installed;" \
      "one that points to a missing service would block this deployment"
    return 0
  fi
  hooks="$(kube get validatingwebhookconfigurations,mutatingwebhookconfigurations -o json |
    jq -r '[.items[] | .kind as $kind | .metadata.name as $name | .webhooks[]?
      | .clientConfig.service // empty
      | "\($kind) \($name) \(.namespace) \(.name)"] | unique | .[]')" || {
    preflight_fail "the cluster's webhook configurations cannot be read"
    return 0
  }
  while read -r kind name namespace service; do
    if [ -z "$service" ] || ! in_bundle_namespace "$namespace"; then
      continue
    fi
    found="$(kube get service "$service" --namespace "$namespace" --ignore-not-found -o name)" || {
      preflight_fail "cannot tell whether service $namespace/$service exists"
      continue
    }
    if [ -z "$found" ]; then
      preflight_fail "$kind $name points to the missing service $namespace/$service;" \
        "if it is left over, remove it with: kubectl delete $kind $name"
    fi
  done <<<"$hooks"
}

check_apiservices() {
  local services name available
  services="$(kube get apiservices -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.status.conditions[?(@.type=="Available")].status}{"\n"}{end}')" || {
    warn "the cluster's APIServices cannot be listed; not checked"
    return 0
  }
  while read -r name available; do
    if [ -n "$name" ] && [ "$available" != True ]; then
      warn "APIService $name is not available; namespaces cannot be deleted meanwhile"
    fi
  done <<<"$services"
}

check_crds() {
  local crds row group component namespace owned=' ' missing=' ' found
  [ "${#CRD_GROUPS[@]}" -gt 0 ] || return 0
  crds="$(kube get customresourcedefinitions \
    -o jsonpath='{range .items[*]}{.spec.group}{" "}{.metadata.name}{"\n"}{end}')" || {
    warn "the cluster's CRDs cannot be listed; not checked"
    return 0
  }
  # A group counts as owned as soon as one of the components that bring it is installed.
  for row in "${CRD_GROUPS[@]}"; do
    read -r group component namespace <<<"$row"
    if grep -q "^$group " <<<"$crds"; then
      if hel status "$component" --namespace "$namespace" >/dev/null 2>&1; then
        owned="$owned$group "
      else
        case "$missing" in
          *" $group "*) ;;
          *) missing="$missing$group " ;;
        esac
      fi
    fi
  done
  for group in $missing; do
    case "$owned" in
      *" $group "*) ;;
      *)
        found="$(awk -v group="$group" '$1 == group { print $2 }' <<<"$crds" | paste -sd ' ' -)"
        warn "CRDs of group $group are here without the release that brings them: $found"
        ;;
    esac
  done
}

# Nodes wait under these taints until nodewright has prepared them; without nodewright they wait for
# ever, and so do the pods that would start it.
clear_node_taints() {
  local ready listed taint nodes node
  [ "${#NODE_TAINTS[@]}" -gt 0 ] || return 0
  ready="$(kube get deployments --namespace "$NODE_TAINT_NAMESPACE" \
    -o jsonpath='{.items[*].status.readyReplicas}')" || {
    warn "cannot tell whether nodewright is running; node taints are left alone"
    return 0
  }
  case "$ready" in
    *[1-9]*) return 0 ;;
  esac
  listed="$(kube get nodes -o jsonpath='{range .items[*]}{.metadata.name}{range .spec.taints[*]}{" "}{.key}={.value}:{.effect}{end}{"\n"}{end}')" || {
    warn "the cluster's nodes cannot be listed; node taints are left alone"
    return 0
  }
  for taint in "${NODE_TAINTS[@]}"; do
    nodes="$(awk -v taint="$taint" \
      '{ for (at = 2; at <= NF; at++) if ($at == taint) { print $1; break } }' <<<"$listed")"
    for node in $nodes; do
      if [ -n "$DRY_RUN_FLAG" ]; then
        say "dry run: would remove the left-over taint $taint from node $node"
      elif kube taint nodes "$node" "$taint-" >/dev/null; then
        warn "removed the left-over taint $taint from node $node"
      else
        preflight_fail "the left-over taint $taint cannot be removed from node $node"
      fi
    done
  done
}

preflight() {
  local tool folder
  for tool in helm kubectl; do
    command -v "$tool" >/dev/null 2>&1 || preflight_fail "$tool is not installed"
  done
  for folder in "${FOLDERS[@]}"; do
    [ -f "$folder/install.sh" ] ||
      preflight_fail "the bundle is not whole: $folder/install.sh is missing"
  done
  for folder in [0-9][0-9][0-9]-*/; do
    folder_facts "${folder%/}" || preflight_fail "${folder%/} is not part of this bundle"
  done
  if [ "$PREFLIGHT_FAILED" = false ]; then
    if [ "$DRY_RUN_FLAG" = --dry-run=client ]; then
      say "dry run without a cluster: nothing is checked in the cluster"
    else
      check_namespaces
    fi
  fi
  if [ "$PREFLIGHT_FAILED" = false ] && [ "$DRY_RUN_FLAG" != --dry-run=client ]; then
    check_pending
    check_webhooks
    check_apiservices
    check_crds
  fi
  if [ "$PREFLIGHT_FAILED" = true ]; then
    error "preflight failed; nothing was installed"
    exit 1
  fi
  if [ "$DRY_RUN_FLAG" != --dry-run=client ]; then
    clear_node_taints
    [ "$PREFLIGHT_FAILED" = false ] || exit 1
  fi
}
"""  # noqa: E501 - a jsonpath must stay one word
