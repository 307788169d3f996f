"""What the webhook counts, for Prometheus.

The names of the injector are those of ADR-026. The module needs ``prometheus-client`` of the extra
``webhook`` and is imported by the server alone. Source: preflight spec 2.9 and 10, decision 75.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from aicr.preflight.admission.decision import ERROR, INJECTED, NO_CHECKS, NO_GPU, REJECTED

#: Upper bounds in seconds: the API server waits 10 s, an admission without look-ups takes 0.2 ms.
BUCKETS = (0.0002, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The webhook's series, in a registry of their own; a `handler.Meter`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        injections = Counter(
            "preflight_injection",
            "Admissions by what became of them.",
            ["result"],
            registry=self.registry,
        )
        # All results exist from the start, so that a rate of zero is zero and not absent.
        self._results = {
            result: injections.labels(result)
            for result in (INJECTED, NO_GPU, NO_CHECKS, REJECTED, ERROR)
        }
        self._latency = Histogram(
            "preflight_webhook_latency_seconds",
            "Time from the request's last byte to the reply, look-ups included.",
            buckets=BUCKETS,
            registry=self.registry,
        )
        failures = Counter(
            "preflight_lookup_failures",
            "Requests to the API server that an admission needed and that failed.",
            ["what"],
            registry=self.registry,
        )
        self._failures = {
            what: failures.labels(what) for what in ("claims", "gang", "register", "event")
        }
        self.certificate_expiry = Gauge(
            "preflight_certificate_expiry_timestamp_seconds",
            "When the serving certificate ends, in seconds since 1970.",
            registry=self.registry,
        )
        self.certificate_reloads = Counter(
            "preflight_certificate_reloads",
            "Certificates that were read while running.",
            ["result"],
            registry=self.registry,
        )
        ProcessCollector(registry=self.registry)

    def decided(self, outcome: str, seconds: float) -> None:
        """One admission has been answered."""
        self._results[outcome].inc()
        self._latency.observe(seconds)

    def failed(self, what: str) -> None:
        """A look-up or a registration has failed."""
        self._failures[what].inc()

    def text(self) -> tuple[bytes, str]:
        """All series as a scraper reads them, and the content type."""
        return generate_latest(self.registry), CONTENT_TYPE_PLAIN_0_0_4


class GangFigures:
    """What the gang controllers report; a `controller.metrics.GangMetrics`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._writes = Counter(
            "preflight_gang_configmap_writes",
            "Gang ConfigMaps by what was done to them.",
            ["result"],
            registry=registry,
        )
        self._formation = Histogram(
            "preflight_gang_formation_seconds",
            "Time from the first member of a gang to its complete membership.",
            buckets=(1, 2, 5, 10, 30, 60, 120, 300, 600, 1800),
            registry=registry,
        )
        self._members = Gauge(
            "preflight_gang_last_members", "Members of the gang completed last.", registry=registry
        )
        self._leads = Gauge(
            "preflight_leader", "1 on the replica that runs the controllers.", registry=registry
        )
        self._conflicting = Gauge(
            "preflight_config_conflicts",
            "Namespaces with a PreflightConfig that is not in force.",
            registry=registry,
        )

    def written(self, result: str) -> None:
        """A gang's ConfigMap was written, or could not be because it had changed."""
        self._writes.labels(result).inc()

    def completed(self, members: int, seconds: float) -> None:
        """A membership became complete."""
        self._members.set(members)
        self._formation.observe(seconds)

    def leading(self, leads: bool) -> None:
        """Whether this replica leads from now on."""
        self._leads.set(leads)

    def conflicting(self, namespaces: int) -> None:
        """So many namespaces have a PreflightConfig that is not in force."""
        self._conflicting.set(namespaces)
