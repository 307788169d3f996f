"""Checks of the conformance phase: does the cluster do what an AI platform must do."""
