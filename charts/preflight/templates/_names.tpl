{{- define "preflight.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "preflight.selector" . }}
{{- end }}

{{- define "preflight.selector" -}}
app.kubernetes.io/name: preflight
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "preflight.cacheSelector" -}}
app.kubernetes.io/name: preflight-image-cache
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: image-cache
{{- end }}

{{- define "preflight.account" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default "preflight" }}
{{- else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- /* An image of a check: text as it is, or a repository with a tag; call with (dict "image" … "root" $). */ -}}
{{- define "preflight.image" -}}
{{- if kindIs "string" .image }}{{ .image }}
{{- else }}{{ .image.repository }}:{{ .image.tag | default (((.root.Values.global).image).tag) | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "preflight.pullSecrets" -}}
{{- with ((.Values.global).imagePullSecrets) | default .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "preflight.topologyConfigMap" -}}
{{- if .ncclTopoConfigMap }}{{ .ncclTopoConfigMap }}{{ else if .ncclTopoShape }}preflight-nccl-topo{{ end }}
{{- end }}

{{- /* Whether the webhook ever asks the API server for something. */ -}}
{{- define "preflight.asks" -}}
{{- if or .Values.gangCoordination.enabled .Values.gpuDraEnabled }}yes{{ end }}
{{- end }}

{{- /* The shared token block is judged strictly: a mistake in it would send events without a token. */ -}}
{{- define "preflight.auth" -}}
{{- $auth := (.Values.global).platformConnectorAuth | default dict }}
{{- if $auth }}
{{- if not (kindIs "bool" $auth.enabled) }}
{{- fail (printf "global.platformConnectorAuth.enabled must be a boolean, not %s" (toJson $auth.enabled)) }}
{{- end }}
{{- if $auth.enabled }}
{{- range $key := list "audience" "tokenMountPath" }}
{{- if not (get $auth $key) }}{{ fail (printf "global.platformConnectorAuth.%s is required when enabled is true" $key) }}{{ end }}
{{- end }}
{{- $seconds := get $auth "tokenExpirationSeconds" }}
{{- if not (hasKey $auth "tokenExpirationSeconds") }}{{ fail "global.platformConnectorAuth.tokenExpirationSeconds is required when enabled is true" }}{{ end }}
{{- if not (or (kindIs "int" $seconds) (kindIs "int64" $seconds) (kindIs "float64" $seconds)) }}
{{- fail (printf "global.platformConnectorAuth.tokenExpirationSeconds must be a number, not %s" (toJson $seconds)) }}
{{- end }}
{{- if ne (floor $seconds) (float64 $seconds) }}{{ fail (printf "global.platformConnectorAuth.tokenExpirationSeconds must be a whole number, not %v" $seconds) }}{{ end }}
{{- if lt (float64 $seconds) 600.0 }}{{ fail (printf "global.platformConnectorAuth.tokenExpirationSeconds must be at least 600, not %v" $seconds) }}{{ end }}
{{- if gt (float64 $seconds) 4294967296.0 }}{{ fail (printf "global.platformConnectorAuth.tokenExpirationSeconds must be at most 4294967296, not %v" $seconds) }}{{ end }}
connectorTokenAudience: {{ $auth.audience | quote }}
connectorTokenMountPath: {{ $auth.tokenMountPath | quote }}
connectorTokenExpirationSeconds: {{ int64 $seconds }}
{{- end }}
{{- end }}
{{- end }}
