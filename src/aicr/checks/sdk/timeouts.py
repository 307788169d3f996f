"""Every waiting time of validation in one object (decision 67).

Cluster access and health checks have objects of their own, which are part of this one. Checks, the SDK
and the engine hold no number of seconds that a person could want to change. ``AICR_TIMEOUT_FACTOR``
scales all of them (tests, slow links); the real defaults are asserted. It must not know who waits.
Source: validators spec 11 and 3.5, decisions 14 and 67.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aicr.assertions.timing import Timing
from aicr.kube import timeouts
from aicr.kube.timeouts import Timeouts as KubeTimeouts


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Waiting times in seconds."""

    kube: KubeTimeouts = field(default_factory=KubeTimeouts)
    assertions: Timing = field(default_factory=Timing)

    # A check and its container
    #: A check whose budget nobody states.
    check_execution: float = 3300.0
    #: A catalogue entry without a timeout.
    validator_default: float = 300.0
    #: What the orchestrator waits, and what the Job may take, beyond the check's own budget.
    validator_wait_buffer: float = 150.0
    validator_job_deadline_headroom: float = 210.0
    validator_termination_grace: float = 30.0
    job_ttl: float = 3600.0
    job_creation: float = 30.0
    #: One validation as a whole, through the library.
    validation_operation: float = 4500.0
    #: What a check keeps of its budget to print its last lines.
    job_envelope_margin: float = 60.0

    # Objects that checks create, read and remove
    cleanup: float = 30.0
    pod_termination: float = 60.0
    resource_verification: float = 10.0
    diagnostic: float = 120.0
    pod_creation: float = 120.0
    pod_schedule: float = 120.0
    pod_ready: float = 120.0
    pod_wait: float = 600.0
    namespace_termination: float = 300.0
    deployment_scale: float = 120.0
    #: How long the scheduler, or an autoscaler, gets before "unschedulable" is final (decision 14).
    unschedulable_grace: float = 60.0

    # Deployment and conformance checks
    gpu_readiness_poll: float = 10.0
    gpu_readiness_window: float = 60.0
    gpu_readiness: float = 480.0
    dra_test_pod: float = 300.0
    gang_test_pod: float = 300.0
    co_schedule_window: float = 30.0
    ai_service_metrics: float = 120.0
    ai_service_metrics_poll: float = 10.0
    hpa_scale: float = 180.0
    hpa_poll: float = 10.0
    metrics_api_warmup: float = 60.0
    karpenter_node: float = 180.0
    karpenter_poll: float = 10.0
    slurm_accounting_record: float = 120.0
    slurm_accounting_poll: float = 5.0

    # NCCL and CRE
    trainer_crd_established: float = 120.0
    trainer_controller: float = 180.0
    train_job_admission_retry: float = 60.0
    train_job_admission_poll: float = 0.5
    nccl_train_job: float = 1800.0
    nccl_launcher_pod: float = 300.0
    nccl_log_reread: float = 2.0
    nccl_lock_stale_age: float = 1200.0
    nccl_stale_namespace: float = 3600.0
    cre_certification: float = 1800.0
    cre_delete: float = 300.0

    # Inference
    inference_namespace_termination: float = 300.0
    inference_populate: float = 780.0
    inference_ready: float = 600.0
    inference_health: float = 300.0
    inference_probe: float = 120.0
    inference_poll: float = 10.0
    aiperf_pod: float = 300.0
    aiperf_job: float = 900.0

    # Readiness gate
    gate_exec: float = 120.0
    gate_poll: float = 10.0
    gate_window: float = 30.0
    gate_limit: float = 5400.0
    gate_buffer: float = 300.0

    # Evidence
    evidence_render: float = 30.0
    evidence_bundle: float = 60.0
    evidence_push: float = 120.0
    evidence_sign: float = 120.0

    def scaled(self, factor: float) -> Timeouts:
        """The same times, each multiplied by *factor*; INVALID_REQUEST if it is not positive."""
        return timeouts.scaled(self, factor)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Timeouts:
        """The defaults, scaled by ``AICR_TIMEOUT_FACTOR`` if it is set.

        Raises:
            AicrError: INVALID_REQUEST for a factor that is no positive number.
        """
        return cls().scaled(timeouts.factor_of(environ))
