"""Snapshots: what was measured on a cluster, as a document, and what criteria follow from it."""
