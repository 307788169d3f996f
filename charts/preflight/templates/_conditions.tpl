{{- /* CEL: whether any container that stays asks for a GPU resource, or the pod has a claim that may be one. */ -}}
{{- define "preflight.gpuCondition" -}}
{{- $names := list }}
{{- range .Values.gpuResourceNames }}{{ $names = append $names (printf "'%s'" .) }}{{ end }}
{{- $asks := printf "has(c.resources) && ((has(c.resources.limits) && [%s].exists(n, n in c.resources.limits)) || (has(c.resources.requests) && [%s].exists(n, n in c.resources.requests)))" (join ", " $names) (join ", " $names) -}}
object.spec.containers.exists(c, {{ $asks }}) || (has(object.spec.initContainers) && object.spec.initContainers.exists(c, has(c.restartPolicy) && c.restartPolicy == 'Always' && {{ $asks }})){{ if .Values.gpuDraEnabled }} || (has(object.spec.resourceClaims) && size(object.spec.resourceClaims) > 0){{ end }}
{{- end }}
