"""A small data directory in which four layers touch one value, laid over the built-in catalogue.

The files are written out, because the tests are about their lines.
"""

from __future__ import annotations

from pathlib import Path

FILES = {
    "registry.yaml": """\
kind: ComponentRegistry
apiVersion: aicr.run/v1beta1
components:
  - name: weather
    displayName: Weather
    mixinSafeOverridePaths:
      - forecast
    helm:
      defaultRepository: https://charts.example.com
      defaultChart: weather/weather
      defaultVersion: 1.0.0
      defaultNamespace: sky
    nodeScheduling:
      accelerated:
        nodeSelectorPaths:
          - daemonset.nodeSelector
        tolerationPaths:
          - daemonset.tolerations
""",
    "components/weather/values.yaml": """\
driver:
  version: "550"
  enabled: true
cache:
  emptyDir:
    medium: Memory
labels:
  example.com/team: sky
""",
    "components/weather/values-acme.yaml": """\
driver:
  version: "560"
""",
    "overlays/acme.yaml": """\
kind: RecipeMetadata
apiVersion: aicr.run/v1beta1
metadata:
  name: acme
spec:
  criteria:
    service: acme
  constraints:
    - name: K8s.server.version
      value: ">= 1.30"
  componentRefs:
    - name: weather
      type: Helm
      valuesFile: components/weather/values-acme.yaml
      dependencyRefs:
        - cert-manager
      overrides:
        driver:
          version: "570"
        cache:
          emptyDir: null
  validation:
    conformance:
      checks:
        - sunshine
    readiness:
      checks:
        - rain
""",
    "overlays/acme-training.yaml": """\
kind: RecipeMetadata
apiVersion: aicr.run/v1beta2
metadata:
  name: acme-training
spec:
  base: acme
  criteria:
    service: acme
    intent: training
  mixins:
    - forecast
  constraints:
    - name: K8s.server.version
      value: ">= 1.32"
  componentRefs:
    - name: weather
      version: 2.0.0
      overrides:
        driver:
          version: "580"
  validation:
    conformance:
      checks: []
    readiness:
      timeout: 5m
      checks:
        - rain
        - rain-again
  profile:
    name: sky
    default: clear
    values:
      clear:
        constraints:
          - name: K8s.server.version
            value: "< 1.36"
        componentRefs:
          - name: weather
            overrides:
              mode: sun
      cloudy:
        constraints:
          - name: K8s.server.version
            value: "< 1.35"
        componentRefs:
          - name: weather
            overrides:
              mode: rain
""",
    "mixins/forecast.yaml": """\
kind: RecipeMixin
apiVersion: aicr.run/v1beta1
metadata:
  name: forecast
spec:
  constraints:
    - name: OS.release.ID
      value: ubuntu
  componentRefs:
    - name: weather
      dependencyRefs:
        - cert-manager
        - nfd
      overrides:
        forecast: wet
""",
}

#: Flags of the recipe that all layers belong to.
QUERY = ("--service", "acme", "--intent", "training")


def write(root: Path) -> Path:
    """The directory, written under *root*."""
    for path, text in FILES.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return root
