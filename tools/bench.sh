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
# The pip that comes with older Pythons writes a console script that imports `re`, 5 ms at each start.
"${pip[@]}" install --constraint constraints.txt --upgrade pip
"${pip[@]}" install --constraint constraints.txt hatchling PyYAML
"${pip[@]}" install --constraint constraints.txt --no-build-isolation ".[cluster,webhook]" trustme pytest
"${pip[@]}" install --no-build-isolation --no-deps --force-reinstall .

# Those that need a real control plane have a target of their own: make bench-cluster.
modules=()
for file in benchmarks/bench_*.py; do
  case $file in *_real.py) continue ;; esac
  modules+=("$(basename "$file" .py)")
done
# A benchmark that cannot even start should say so now and not after the minutes of the others.
for module in "${modules[@]}"; do
  "$venv/bin/python" -m "benchmarks.$module" --help > /dev/null
done
for module in "${modules[@]}"; do
  printf '\n== benchmarks/%s.py\n' "$module"
  "$venv/bin/python" -m "benchmarks.$module"
done
