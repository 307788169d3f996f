#!/usr/bin/env bash
# The main job from end to end, for someone who has just cloned: resolve a recipe, bundle it for
# Helm, and let helm itself judge every chart that we wrote. Needs Python, pip and bash; all it
# makes lies in .tools/ (kept, so the second run is quick) and demo-out/ (made anew).
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
venv=.tools/demo-venv
out=demo-out

step() { printf '\n== %s\n' "$*"; }

step "install into $venv"
"$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet)
"${pip[@]}" install --constraint constraints.txt hatchling PyYAML
"${pip[@]}" install --constraint constraints.txt --no-build-isolation .
# pip keeps an installed package of the same version, so an edited checkout is put in by force.
"${pip[@]}" install --no-build-isolation --no-deps --force-reinstall .
aicr=$venv/bin/aicr
"$aicr" version

rm -rf "$out"
mkdir "$out"

step "aicr recipe"
criteria=(--service eks --accelerator h100 --intent training --os ubuntu --platform kubeflow)
echo "aicr recipe ${criteria[*]} -o $out/recipe.yaml"
"$aicr" recipe "${criteria[@]}" -o "$out/recipe.yaml"
head -n 24 "$out/recipe.yaml"
echo "... ($(wc -l <"$out/recipe.yaml") lines)"

step "aicr bundle --deployer helm"
"$aicr" bundle -r "$out/recipe.yaml" --deployer helm -o "$out/bundle"
(cd "$out/bundle" && find . -type f | LC_ALL=C sort | sed 's|^\./|  |')

step "helm lint and helm template on every chart we wrote"
helm=$("$venv/bin/python" tools/get_helm.py)
"$helm" version --short
charts=0
while IFS= read -r chart; do
  folder=$(dirname "$chart")
  name=$(basename "$folder")
  # The lint report is shown only when it has something to say.
  if ! report=$("$helm" lint "$folder" 2>&1); then
    printf '%s\n' "$report" >&2
    echo "demo: helm lint refuses $folder" >&2
    exit 1
  fi
  "$helm" template "${name#*-}" "$folder" --namespace demo >"$out/rendered.yaml"
  objects=$(grep -c '^kind:' "$out/rendered.yaml" || true)
  printf '  %-44s lint ok, %s objects\n' "$name" "$objects"
  charts=$((charts + 1))
done < <(find "$out/bundle" -name Chart.yaml | LC_ALL=C sort)
if [ "$charts" -eq 0 ]; then
  echo "demo: the bundle holds no chart of ours, so nothing was checked" >&2
  exit 1
fi

step "done: $charts charts accepted by helm; look at $out/recipe.yaml and $out/bundle/README.md"
