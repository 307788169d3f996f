//go:build tools

// Package tools pins the programs that check our bundles. The build tag is never set: the imports
// are here so that `go mod tidy` keeps what these programs need in go.mod and go.sum.
package tools

import (
	_ "github.com/yannh/kubeconform/cmd/kubeconform"
)
