"""Every waiting time of checks in one object (decision 67).

Cluster access and health checks have objects of their own, which are part of this one. Checks and the SDK
hold no number of seconds that a person could want to change; the real defaults are asserted. It must not
know who waits. Source: validators spec 11 and 3.5, decisions 14 and 67.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from aicr.assertions.timing import Timing
from aicr.kube.timeouts import Timeouts as KubeTimeouts
from aicr.values.waiting import Waits


@dataclass(frozen=True, slots=True)
class Timeouts(Waits):
    """Checks of a cluster, and the readiness gate."""

    #: Parts of a budget that is the catalogue's and not scaled either.
    KEPT: ClassVar[frozenset[str]] = frozenset(("reserve", "test_pod_least"))

    kube: KubeTimeouts = field(default_factory=KubeTimeouts)
    assertions: Timing = field(default_factory=Timing)

    # A check and its container
    #: A check whose budget nobody states.
    check_execution: float = 3300.0
    #: What a check keeps of its budget to print its last lines.
    job_envelope_margin: float = 60.0
    #: What one with test pods keeps of it to clean up.
    reserve: float = 90.0
    #: What it needs besides to begin.
    test_pod_least: float = 30.0

    # Objects that checks create, read and remove
    #: Removing one object.
    cleanup: float = 30.0
    #: For a deleted pod to be gone.
    pod_termination: float = 60.0
    #: Reading one object that must be there.
    resource_verification: float = 10.0
    #: One command in a pod that only finds something out.
    diagnostic: float = 120.0
    #: Creating one pod.
    pod_creation: float = 120.0
    #: For a pod to end.
    pod_wait: float = 600.0
    #: For a deleted namespace to be gone.
    namespace_termination: float = 300.0
    #: For a Deployment to have the replicas it was told to.
    deployment_scale: float = 120.0
    #: How long the scheduler, or an autoscaler, gets before "unschedulable" is final (decision 14).
    unschedulable_grace: float = 60.0
    #: Between two looks at what no watch tells, unless there is a pause of its own.
    poll: float = 1.0

    # Health of components by hand
    #: Between two looks of `aicr check-health`, for which a person waits.
    health_poll: float = 2.0

    # Deployment and conformance checks
    #: Between two looks at GPUs that get ready.
    gpu_readiness_poll: float = 10.0
    #: How long they must stay ready.
    gpu_readiness_window: float = 60.0
    #: For them to get ready.
    gpu_readiness: float = 480.0
    #: For the pod of a DRA test to end.
    dra_test_pod: float = 300.0
    #: For the pods of a gang test to end.
    gang_test_pod: float = 300.0
    #: Between two looks at them.
    gang_poll: float = 2.0
    #: How far apart the pods of a gang may be scheduled.
    co_schedule_window: float = 30.0
    #: For metrics of an AI service to show.
    ai_service_metrics: float = 120.0
    #: Between two looks for them.
    ai_service_metrics_poll: float = 10.0
    #: For an autoscaler to scale up.
    hpa_scale: float = 180.0
    #: Between two looks at it.
    hpa_poll: float = 10.0
    #: For a metrics API that has just been registered to answer.
    metrics_api_warmup: float = 60.0
    #: For Karpenter to bring a node.
    karpenter_node: float = 180.0
    #: Between two looks for it.
    karpenter_poll: float = 10.0
    #: For accounting to know of a Slurm job.
    slurm_accounting_record: float = 120.0
    #: Between two questions to it.
    slurm_accounting_poll: float = 5.0

    # NCCL and CRE
    #: For the CRD of Trainer to be established.
    trainer_crd_established: float = 120.0
    #: For the controller of Trainer to be ready.
    trainer_controller: float = 180.0
    #: For Trainer's webhook to admit a job.
    train_job_admission_retry: float = 60.0
    #: Before it is asked again.
    train_job_admission_poll: float = 0.5
    #: For a benchmark to end.
    nccl_train_job: float = 1800.0
    #: For its launcher's pod to appear.
    nccl_launcher_pod: float = 300.0
    #: Before a log that is not whole is read again.
    nccl_log_reread: float = 2.0
    #: Age at which the lock of a run that says nothing is nobody's.
    nccl_lock_stale_age: float = 1200.0
    #: Age at which the namespace of an earlier run is left over.
    nccl_stale_namespace: float = 3600.0
    #: For a Certification of CRE to end.
    cre_certification: float = 1800.0
    #: For one to be gone.
    cre_delete: float = 300.0
    #: Between two looks at it.
    cre_poll: float = 5.0

    # Inference
    #: For the namespace of the workload to be gone.
    inference_namespace_termination: float = 300.0
    #: For the model to be in the cache.
    inference_populate: float = 780.0
    #: For the workload to be ready.
    inference_ready: float = 600.0
    #: For the endpoint to answer as it should.
    inference_health: float = 300.0
    #: One question to it.
    inference_probe: float = 120.0
    #: Between two looks at any of these.
    inference_poll: float = 10.0
    #: For the pod of the load generator to run.
    aiperf_pod: float = 300.0
    #: For it to end.
    aiperf_job: float = 900.0

    # Readiness gate
    #: One evaluation.
    gate_exec: float = 120.0
    #: Between two evaluations.
    gate_poll: float = 10.0
    #: How long all must have passed.
    gate_window: float = 30.0
    #: All of the gate.
    gate_limit: float = 5400.0
