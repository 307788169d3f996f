"""The node agent for tests: makes pods that are bound to its node run as processes of this machine.

What a pod gets: a network namespace with an address on the plane's bridge, and for each container a
mount namespace whose root is a private, writable layer over this machine's own files. So a pod sees
the programs of this machine, its own volumes, hosts file and host name, and can spoil nothing.
What it does not get: cgroups (limits are not enforced), pulls (images are argv in images.yaml), a
process namespace, Services and DNS. A thing that is not supported is refused with an event and a
reason in the status, never ignored.

Only the standard library, because one of these runs for each node.

`node` runs pods, `hollow` says that they run. Start it with `python -m tests.controlplane.agent FILE`.
"""
