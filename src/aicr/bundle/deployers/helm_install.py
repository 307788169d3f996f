r"""Second half of deploy.sh: installing the folders with retries, the DRA restart, and the end.

Constant text, to be read as the script that it is. It uses what the head and the first half define
(see ``helm_script``, ``helm_preflight``). Source: bundler spec 5.0.5, 5.1.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

INSTALL: Final = r"""
diagnose() {
  [ "$DRY_RUN_FLAG" != --dry-run=client ] || return 0
  {
    title "--- state of $RELEASE in namespace $NAMESPACE ---"
    hel status "$RELEASE" --namespace "$NAMESPACE" || true
    kube get pods,jobs --namespace "$NAMESPACE" -o wide || true
    kube get events --namespace "$NAMESPACE" --sort-by=.lastTimestamp | tail -n 20 || true
    title "--- end of state ---"
  } >&2
}

# A hook Job that failed stays, and its name would stop the hook of the next try.
clean_hook_jobs() {
  local jobs job hook succeeded
  jobs="$(kube get jobs --namespace "$NAMESPACE" -o jsonpath='{range .items[*]}{.metadata.name}{"|"}{.metadata.annotations.helm\.sh/hook}{"|"}{.status.succeeded}{"\n"}{end}')" || {
    warn "hook Jobs in namespace $NAMESPACE cannot be listed"
    return 0
  }
  while IFS='|' read -r job hook succeeded; do
    if [ -n "$job" ] && [ -n "$hook" ] && [ "${succeeded:-0}" = 0 ]; then
      say "removing the unfinished hook Job $job"
      kube delete job "$job" --namespace "$NAMESPACE" --ignore-not-found ||
        warn "hook Job $job cannot be removed"
    fi
  done <<<"$jobs"
}

install_folder() {
  local folder="$1" retries="$RETRIES" attempt=1 pause wait_args
  case "$PHASE/$PARENT" in
    # A gate is what the releases after it rely on, so it always waits: 1h30m of its own and 5m
    # more.
    readiness/*)
      wait_args='--wait --timeout 1h35m'
      retries=1
      ;;
    # Its workloads become ready only later, when there are nodes and queues for them.
    */kai-scheduler)
      wait_args='--timeout 20m'
      retries=1
      ;;
    *)
      wait_args="--timeout $HELM_TIMEOUT"
      [ "$WAIT" = false ] || wait_args="--wait $wait_args"
      ;;
  esac
  if [ "$retries" -gt "$RETRIES" ]; then
    retries="$RETRIES"
  fi
  # A dry run fails for what is missing, and trying again brings nothing.
  [ -z "$DRY_RUN_FLAG" ] || retries=0
  until COMPONENT_WAIT_ARGS="$wait_args" bash "./$folder/install.sh"; do
    error "$folder failed (try $attempt of $((retries + 1)))"
    diagnose
    if [ "$attempt" -gt "$retries" ]; then
      return 1
    fi
    clean_hook_jobs
    pause=$((attempt * attempt * 5))
    if [ "$pause" -gt 120 ]; then
      pause=120
    fi
    say "trying again in $pause s"
    sleep "$pause"
    attempt=$((attempt + 1))
  done
}

NEEDS_RETRY=''
# The kubelet plugin keeps the driver libraries that it found when it started, so it is restarted
# after every install; not while the operator replaces the driver, or it would pick up the old one
# again.
restart_kubelet_plugin() {
  local states unfinished names name
  [ -z "$DRY_RUN_FLAG" ] || return 0
  if [ "$DRIVER_MANAGED" = true ]; then
    states="$(kube get nodes -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.metadata.labels.nvidia\.com/gpu-driver-upgrade-state}{"\n"}{end}')" || {
      error "cannot tell whether a driver upgrade is under way"
      return 1
    }
    unfinished="$(awk 'NF > 1 && $2 != "upgrade-done" { print $1 " (" $2 ")" }' <<<"$states" |
      paste -sd ',' -)"
    if [ -n "$unfinished" ]; then
      NEEDS_RETRY="the driver upgrade has not finished on: ${unfinished//,/, }"
      warn "$NEEDS_RETRY; the DRA kubelet plugin was not restarted"
      return 0
    fi
  fi
  names="$(kube get daemonsets --namespace "$NAMESPACE" -o name)" || return 1
  names="$(grep -e '-kubelet-plugin$' <<<"$names" || true)"
  if [ -z "$names" ]; then
    warn "no kubelet-plugin DaemonSet in namespace $NAMESPACE to restart"
    return 0
  fi
  for name in $names; do
    kube rollout restart "$name" --namespace "$NAMESPACE" || return 1
    if [ "$WAIT" = true ]; then
      kube rollout status "$name" --namespace "$NAMESPACE" --timeout "$HELM_TIMEOUT" || return 1
    fi
  done
}
"""  # noqa: E501 - a jsonpath must stay one word

MAIN: Final = r"""
trap 'error "interrupted"; exit 130' INT TERM

preflight
FAILED=()
for path in [0-9][0-9][0-9]-*/; do
  folder="${path%/}"
  folder_facts "$folder"
  title "=== $folder (namespace $NAMESPACE) ==="
  if install_folder "$folder" &&
    { [ "$PARENT/$PHASE" != nvidia-dra-driver-gpu/primary ] || restart_kubelet_plugin; }; then
    say "$folder: done"
  elif [ "$BEST_EFFORT" = true ]; then
    error "$folder: out of tries; going on (--best-effort)"
    FAILED+=("$folder")
  else
    error "$folder: out of tries; the folders after it were not installed"
    exit 1
  fi
done

if [ "${#NOTES[@]}" -gt 0 ]; then
  title "Notes"
  printf -- '- %s\n' "${NOTES[@]}"
fi
if [ "${#FAILED[@]}" -gt 0 ]; then
  error "failed: ${FAILED[*]}"
  exit 1
fi
if [ -n "$NEEDS_RETRY" ]; then
  warn "NEEDS_RETRY: $NEEDS_RETRY; run this script again when it has"
  exit 2
fi
say "all ${#FOLDERS[@]} releases are installed"
"""
