{{- /* The webhook's configuration file. Keys without a value are left out. */ -}}
{{- define "preflight.config" -}}
{{- $root := . }}
{{- $checks := list }}
{{- range .Values.initContainers }}
{{- $check := deepCopy . }}
{{- $_ := set $check "image" (include "preflight.image" (dict "image" .image "root" $root)) }}
{{- if and (eq .name "preflight-nccl-allreduce") $root.Values.ncclAllreduceExtraEnv }}
{{- $_ := set $check "env" (concat (.env | default list) $root.Values.ncclAllreduceExtraEnv) }}
{{- end }}
{{- $checks = append $checks $check }}
{{- end }}
initContainers:
  {{- toYaml $checks | nindent 2 }}
initContainerPlacement: {{ .Values.initContainerPlacement }}
connectorSocket: unix://{{ ((.Values.global).socketPath) | default "/var/run/nvsentinel.sock" }}
processingStrategy: {{ .Values.processingStrategy }}
failurePolicy: {{ .Values.webhook.failurePolicy }}
events: {{ .Values.events }}
gpuDraEnabled: {{ .Values.gpuDraEnabled }}
{{- include "preflight.auth" . }}
{{- range $key := list "gpuResourceNames" "gpuDeviceClassNames" "networkResourceNames" "ncclEnvPatterns" "volumeMountPatterns" }}
{{- with get $root.Values $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .Values.injectedImagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.gangDiscovery }}
gangDiscovery:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.gangCoordination }}
gangCoordination:
  enabled: {{ .enabled }}
  {{- if .enabled }}
  timeout: {{ .timeout | quote }}
  masterPort: {{ .masterPort }}
  configMapMountPath: {{ .configMapMountPath | quote }}
  {{- with include "preflight.topologyConfigMap" . }}
  ncclTopoConfigMap: {{ . }}
  {{- end }}
  {{- if .ncclTopoShape }}
  {{- $file := printf "files/%s-topo.xml" .ncclTopoShape }}
  {{- $data := $root.Files.Get $file }}
  {{- if not $data }}{{ fail (printf "ncclTopoShape '%s' not found: %s does not exist in chart files/" .ncclTopoShape $file) }}{{ end }}
  ncclTopoData: |
    {{- $data | nindent 4 }}
  {{- end }}
  {{- with .extraHostPathMounts }}
  extraHostPathMounts:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .extraVolumeMounts }}
  extraVolumeMounts:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if not (kindIs "invalid" .mirrorResourceClaims) }}
  mirrorResourceClaims: {{ .mirrorResourceClaims }}
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}
