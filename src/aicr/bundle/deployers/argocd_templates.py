"""The templates of the argocd-helm chart, as text.

```
_aicr.tpl                helpers: names, merging of values, the check of owned paths
aicr-stack.yaml          the parent Application
<release>.yaml           one child Application each
aicr-profile-lock.yaml   refuses values at paths that the recipe's profile owns
```
An Application is built as a document, written as YAML and escaped, so that helm renders it to
exactly that; then the few places that are decided at install time are filled with expressions. Values
are not part of any template: they are read from `static/` and printed as they are, so nothing in
them is ever taken for a template (field case F2).

It must not know how an Application is put together, nor which releases there are.
Source: bundler spec 5.4.
"""

from __future__ import annotations

from aicr.bundle.deployers import gitops
from aicr.bundle.manifests import escape_for_helm
from aicr.errors import INTERNAL, AicrError
from aicr.yamlio import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Final

HELPERS_FILE: Final = "templates/_aicr.tpl"
PARENT_FILE: Final = "templates/aicr-stack.yaml"
LOCK_FILE: Final = "templates/aicr-profile-lock.yaml"
#: Template names that a release's own template would replace.
RESERVED: Final = ("aicr-stack", "aicr-profile-lock")

#: Stand in an Application for what is known at install time only.
NAME: Final = "aicr-token-name"
PROJECT: Final = "aicr-token-project"
SERVER: Final = "aicr-token-server"
REPOSITORY: Final = "aicr-token-repository"
REVISION: Final = "aicr-token-revision"
VALUES: Final = "aicr-token-values"

_EXPRESSIONS: Final[dict[str, str]] = {
    NAME: "{{ $name | quote }}",
    PROJECT: "{{ .Values.deployer.project | quote }}",
    SERVER: "{{ .Values.deployer.destinationServer | quote }}",
    REPOSITORY: '{{ include "aicr.repository" . | quote }}',
    REVISION: '{{ include "aicr.revision" . | quote }}',
}

#: The cut of long names is that of ``gitops.fitted``.
_HELPERS: Final = """\
{{/* Name of the parent Application. */}}
{{- define "aicr.parent" -}}
{{- .Values.appName | default "aicr-stack" -}}
{{- end -}}

{{/* Name of the Application of a release: (list $ release). Long names keep a digest. */}}
{{- define "aicr.child" -}}
{{- $name := printf "%s%s" ((index . 0).Values.deployer.namePrefix | default "") (index . 1) -}}
{{- if gt (len $name) @MAX@ -}}
{{- $head := $name | trunc @HEAD@ | trimAll "-." -}}
{{- $name = printf "%s-%s" $head ($name | sha256sum | trunc 8) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* Address of this chart in its registry. */}}
{{- define "aicr.repository" -}}
{{- $url := required "set repoURL to the registry path that this chart is published below, for \
example oci://registry.example/team" .Values.repoURL -}}
{{- printf "%s/%s" (trimSuffix "/" $url) .Chart.Name -}}
{{- end -}}

{{- define "aicr.revision" -}}
{{- .Values.targetRevision | default .Chart.Version -}}
{{- end -}}

{{/* Values of a release: (list $ file key). The file as it is, or merged with the values given. */}}
{{- define "aicr.values" -}}
{{- $root := index . 0 -}}
{{- $static := $root.Files.Get (index . 1) | default "{}\\n" -}}
{{- $given := index $root.Values (index . 2) | default dict -}}
{{- if $given -}}
{{- $values := fromYaml $static -}}
{{- if and (hasKey $values "Error") (eq (len $values) 1) (not (hasPrefix "Error:" $static)) -}}
{{- fail (printf "%s: helm cannot read the values of the recipe: %s" (index . 2) $values.Error) -}}
{{- end -}}
{{- include "aicr.merge" (list $values $given) -}}
{{- $text := toYaml $values -}}
{{- if not $text -}}
{{- fail (printf "%s: helm cannot write the values: a text in them holds a control character that \
YAML has no place for; give all values with the recipe instead" (index . 2)) -}}
{{- end -}}
{{- $text -}}
{{- else -}}
{{- $static | trimSuffix "\\n" -}}
{{- end -}}
{{- end -}}

{{/* Merges the second map into the first as helm does: maps key by key, null removes a key. */}}
{{- define "aicr.merge" -}}
{{- $into := index . 0 -}}
{{- range $key, $value := index . 1 -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $into $key -}}
{{- else if and (kindIs "map" $value) (kindIs "map" (get $into $key)) -}}
{{- include "aicr.merge" (list (get $into $key) $value) -}}
{{- else -}}
{{- $_ := set $into $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Fails when a value is given at, above or below an owned path: (list $ key owner segment …). */}}
{{- define "aicr.owned" -}}
{{- $key := index . 1 -}}
{{- $owner := index . 2 -}}
{{- $path := slice . 3 -}}
{{- $at := index (index . 0).Values $key -}}
{{- $state := dict "at" $at "touched" (not (kindIs "invalid" $at)) -}}
{{- range $segment := $path -}}
{{- if and $state.touched (kindIs "map" $state.at) -}}
{{- $_ := set $state "touched" (hasKey $state.at $segment) -}}
{{- $_ := set $state "at" (get $state.at $segment) -}}
{{- end -}}
{{- end -}}
{{- if $state.touched -}}
{{- fail (printf "%s.%s is owned by the profile %s; make the recipe again with another value of \
the profile" $key (join "." $path) $owner) -}}
{{- end -}}
{{- end -}}
"""

_PARENT: Final = """\
{{- if .Values.deployer.includeRootApp }}
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: {{ include "aicr.parent" . | quote }}
  namespace: argocd
@FINALIZERS@spec:
  project: default
  source:
    {{- if hasPrefix "oci://" .Values.repoURL }}
    repoURL: {{ include "aicr.repository" . | quote }}
    path: "."
    {{- else }}
    repoURL: {{ required "set repoURL to the registry or chart repository that this chart is \
published to, or deployer.includeRootApp=false" .Values.repoURL | trimSuffix "/" | quote }}
    chart: {{ .Chart.Name | quote }}
    {{- end }}
    targetRevision: {{ include "aicr.revision" . | quote }}
    helm:
      valuesObject:
        {{- toYaml .Values | nindent 8 }}
  destination:
    server: https://kubernetes.default.svc
    namespace: argocd
  syncPolicy:
    automated:
      prune: true
      selfHeal: true
    retry:
      limit: 20
      backoff:
        duration: 30s
        factor: 2
        maxDuration: 3m
    syncOptions:
      - CreateNamespace=true
      - ServerSideApply=true
{{- end }}
"""


def helpers() -> str:
    """The named templates that the others include."""
    head = gitops.MAX_RELEASE - 9
    return _HELPERS.replace("@MAX@", str(gitops.MAX_RELEASE)).replace("@HEAD@", str(head))


def parent(*, finalizer: str) -> str:
    """The parent Application; *finalizer* is "" unless its deletion deletes the children."""
    lines = f"  finalizers:\n    - {finalizer}\n" if finalizer else ""
    return _PARENT.replace("@FINALIZERS@", lines)


def child(
    document: Mapping[str, Any],
    *,
    release: str,
    key: str,
    static: str = "",
    wrap: str = "",
    fixed: str = "",
) -> str:
    """A child Application from its document, in which the tokens of this module stand.

    Args:
        document: the Application.
        release: the release it is for.
        key: the key of the chart's values under which those of the component are given, or "".
        static: file with the values known at bundle time, for an upstream chart.
        wrap: name of the subchart that the values are for, for a chart in the bundle.
        fixed: why values given under *key* would change nothing; rendering fails then.
    """
    lines = [
        f'{{{{- $name := include "aicr.child" (list . {quoted(release)}) }}}}',
        '{{- if eq $name (include "aicr.parent" .) }}',
        '{{- fail (printf "%s is the name of the parent Application too; set appName or '
        'deployer.namePrefix" $name) }}',
        "{{- end }}",
    ]
    if fixed:
        lines += [
            f"{{{{- if index .Values {quoted(key)} }}}}",
            f"{{{{- fail {quoted(f'{key}: {fixed}')} }}}}",
            "{{- end }}",
        ]
    text = escape_for_helm(write.dump(document))
    for token, expression in _EXPRESSIONS.items():
        if token in text:
            text = _fill(text, f": {token}\n", f": {expression}\n")
    if static:
        call = f'include "aicr.values" (list . {quoted(static)} {quoted(key)})'
        text = _values(text, f"{{{{- {call} | nindent INDENT }}}}")
    elif wrap:
        call = f"dict {quoted(wrap)} (index .Values {quoted(key)} | default dict) | toYaml"
        text = _values(text, f"{{{{- {call} | nindent INDENT }}}}")
    return "\n".join(lines) + "\n" + text


def profile_lock(owned: Iterable[tuple[str, list[str]]], owner: str) -> str:
    """The template that refuses values at owned paths.

    Args:
        owned: (values key, path segments) pairs.
        owner: the profile, as `name=value`.
    """
    lines = ["{{- /* Values that the profile of the recipe has decided cannot be given here. */}}"]
    for key, segments in owned:
        words = " ".join(quoted(word) for word in (key, owner, *segments))
        lines.append(f'{{{{- include "aicr.owned" (list . {words}) }}}}')
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """*text* as a string of the template language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _values(text: str, expression: str) -> str:
    """Puts a block that keeps every byte where the values token stands."""
    token = f"values: {VALUES}\n"
    line = next((row for row in text.split("\n") if row.strip() == token.strip()), "")
    indent = len(line) - len(line.lstrip(" ")) + 2
    return _fill(
        text, token, f"values: |+\n{' ' * indent}{expression}\n".replace("INDENT", str(indent))
    )


def _fill(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise AicrError(
            INTERNAL,
            f"an Application has {text.count(old)} places for {old.strip()!r} instead of one",
        )
    return text.replace(old, new)
