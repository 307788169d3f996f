//go:build tools

// Package tools pins the programs of the test control plane. The build tag is never set: the
// imports are here so that `go mod tidy` keeps what these programs need in go.mod and go.sum.
package tools

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
