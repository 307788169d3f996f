module aicr.run/tests/chainsaw

go 1.26.0

// Only downloaded, not imported: its own go.mod and go.sum, which the checksum covers, pin the rest.
require github.com/kyverno/chainsaw v0.2.14 // indirect
