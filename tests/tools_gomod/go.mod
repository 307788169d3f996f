module aicr.run/tests/tools

go 1.26.0

require (
	github.com/helmfile/helmfile v1.8.0
	github.com/yannh/kubeconform v0.8.0
)
