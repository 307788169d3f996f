{{/* Name of the parent Application. */}}
{{- define "aicr.parent" -}}
{{- .Values.appName | default "aicr-stack" -}}
{{- end -}}

{{/* Name of the Application of a release: (list $ release). Long names keep a digest. */}}
{{- define "aicr.child" -}}
{{- $name := printf "%s%s" ((index . 0).Values.deployer.namePrefix | default "") (index . 1) -}}
{{- if gt (len $name) 53 -}}
{{- $head := $name | trunc 44 | trimAll "-." -}}
{{- $name = printf "%s-%s" $head ($name | sha256sum | trunc 8) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* Address of this chart in its registry. */}}
{{- define "aicr.repository" -}}
{{- $url := required "set repoURL to the registry path that this chart is published below, for example oci://registry.example/team" .Values.repoURL -}}
{{- printf "%s/%s" (trimSuffix "/" $url) .Chart.Name -}}
{{- end -}}

{{- define "aicr.revision" -}}
{{- .Values.targetRevision | default .Chart.Version -}}
{{- end -}}

{{/* Values of a release: (list $ file key). The file as it is, or merged with the values given. */}}
{{- define "aicr.values" -}}
{{- $root := index . 0 -}}
{{- $static := $root.Files.Get (index . 1) | default "{}\n" -}}
{{- $given := index $root.Values (index . 2) | default dict -}}
{{- if $given -}}
{{- $values := fromYaml $static -}}
{{- if and (hasKey $values "Error") (eq (len $values) 1) (not (hasPrefix "Error:" $static)) -}}
{{- fail (printf "%s: helm cannot read the values of the recipe: %s" (index . 2) $values.Error) -}}
{{- end -}}
{{- include "aicr.merge" (list $values $given) -}}
{{- $text := toYaml $values -}}
{{- if not $text -}}
{{- fail (printf "%s: helm cannot write the values: a text in them holds a control character that YAML has no place for; give all values with the recipe instead" (index . 2)) -}}
{{- end -}}
{{- $text -}}
{{- else -}}
{{- $static | trimSuffix "\n" -}}
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
{{- fail (printf "%s.%s is owned by the profile %s; make the recipe again with another value of the profile" $key (join "." $path) $owner) -}}
{{- end -}}
{{- end -}}
