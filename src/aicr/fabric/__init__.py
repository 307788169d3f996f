"""What NCCL and DCGM print and what it means: parsers, thresholds, causes, codes. Pure, no input or output.

`checks` (performance) and `preflight` (check programs) both judge with these, so that one text never
means two things. It must not know: who runs a benchmark, Kubernetes, health events.
"""
