#!/usr/bin/env bash
# Benchmarks against the product as a user has it: a wheel in a virtual environment of its own,
# never the editable tree, so that no import hook or missing bytecode spoils the figures.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
venv=.tools/bench-venv

echo "bench: install a wheel into $venv"
"$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet)
"${pip[@]}" install --constraint constraints.txt hatchling PyYAML
"${pip[@]}" install --constraint constraints.txt --no-build-isolation ".[cluster]"
"${pip[@]}" install --no-build-isolation --no-deps --force-reinstall .

for benchmark in benchmarks/bench_*.py; do
  # Those that need a real control plane have a target of their own: make bench-cluster.
  case $benchmark in *_real.py) continue ;; esac
  printf '\n== %s\n' "$benchmark"
  "$venv/bin/python" "$benchmark"
done
