"""Checks of the performance phase: does the cluster deliver the bandwidth and the throughput promised."""
