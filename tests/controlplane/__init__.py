"""A real Kubernetes control plane for tests, without containers.

`plane.ControlPlane` runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler as plain
processes, and node agents (`agent`) that run pods as plain processes in namespaces of their own.
`docs/testing.md` is the guide. Nothing in here may import the product: the product's tests lean on
this package, so it has to be right when the product is wrong.
"""
