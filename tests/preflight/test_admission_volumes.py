"""Volumes and pull secrets of a patch, and pods whose own stand in the way (preflight spec 2.5.7, 2.7)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.preflight.admission_cases import (
    GANG,
    TOKEN,
    TOKEN_VOLUME,
    container,
    gangs,
    names,
    pod,
    prepared,
    send,
    without_gangs,
)


@pytest.mark.covers("P11-50", "P11-52")
@pytest.mark.parametrize(
    ("volume", "both"),
    [
        (
            {"name": "nvsentinel-socket", "emptyDir": {}},
            (
                '"nvsentinel-socket" (emptyDir)',
                '"nvsentinel-socket" (hostPath /var/run/nvsentinel)',
            ),
        ),
        (
            {"name": "libs", "hostPath": {"path": "/other"}},
            ('"libs" (hostPath)', '"libs" (hostPath /opt/libs)'),
        ),
        (
            {"name": "nvsentinel-preflight-gang-config", "configMap": {"name": "other"}},
            ("(configMap)", "(configMap preflight-volcano-team-a-pg1)"),
        ),
        ({"name": "dshm", "hostPath": {"path": "/x"}}, ('"dshm" (hostPath)', '"dshm" (emptyDir)')),
        ({"name": "nccl-topo", "secret": {"secretName": "x"}}, ("(secret)", "(configMap topo)")),
    ],
)
def test_a_volume_that_takes_our_name_is_refused_with_both(
    volume: dict[str, Any], both: tuple[str, str]
) -> None:
    """Decision 24: it would be mounted into the checks in place of what they need."""
    config = prepared(
        **gangs(
            ncclTopoConfigMap="topo",
            extraHostPathMounts=[{"name": "libs", "hostPath": "/opt/libs", "mountPath": "/libs"}],
        )
    )
    reply = send(pod(volumes=[volume]), config, GANG)
    assert not reply.allowed
    assert reply.message.startswith("failed to inject init containers: pod volume ")
    for part in both:
        assert part in reply.message


def test_a_volume_that_is_ours_already_is_not_added_again() -> None:
    """A pod made from an admitted one brings the same volumes."""
    first = send(pod(), prepared(), GANG)
    bare = {**first.pod["spec"], "initContainers": []}
    again = send({**first.pod, "spec": bare}, prepared(), GANG)
    assert again.paths == ["/spec/initContainers"]


@pytest.mark.covers("P11-51")
@pytest.mark.parametrize(
    "volume",
    [
        {"name": "nvsentinel-connector-token", "emptyDir": {}},
        {"name": "nvsentinel-connector-token", "projected": {"sources": []}},
        {
            "name": "nvsentinel-connector-token",
            "projected": {
                "sources": [
                    {
                        "serviceAccountToken": {
                            "audience": "other",
                            "expirationSeconds": 3600,
                            "path": "token",
                        }
                    }
                ]
            },
        },
        {**TOKEN_VOLUME, "hostPath": {"path": "/"}},
        {
            "name": "nvsentinel-connector-token",
            "projected": {
                "sources": [*TOKEN_VOLUME["projected"]["sources"], {"secret": {"name": "x"}}]
            },
        },
    ],
)
@pytest.mark.parametrize("annotation", [None, ""])
def test_a_false_token_volume_is_denied_even_to_pods_that_opted_out(
    volume: dict[str, Any], annotation: str | None
) -> None:
    """Only exactly our projection may have the name; anything else could steal or fake a token."""
    marked = None if annotation is None else {"nvsentinel.nvidia.com/preflight-checks": ""}
    reply = send(pod(volumes=[volume], annotations=marked))
    assert not reply.allowed
    assert reply.message.startswith(
        'failed to inject init containers: pod declares a volume named "nvsentinel-connector-token" '
        "that is not"
    )


def test_our_own_token_volume_is_accepted_and_not_added_twice() -> None:
    """The identical projection, with what the API server fills in, passes."""
    defaulted = {
        "name": "nvsentinel-connector-token",
        "projected": {**TOKEN_VOLUME["projected"], "defaultMode": 420},
    }
    reply = send(pod(volumes=[defaulted]))
    assert reply.allowed
    assert names(reply.pod["spec"]["volumes"]) == [
        "nvsentinel-connector-token",
        "nvsentinel-socket",
    ]
    assert send(pod(volumes=[{"name": "nvsentinel-connector-token", "emptyDir": {}}]),
                without_gangs(**dict.fromkeys(TOKEN))).allowed  # fmt: skip


@pytest.mark.covers("P11-53")
def test_a_host_path_of_unknown_type_is_neither_added_nor_mounted() -> None:
    """A mount without its volume would have every gang pod refused by the API server."""
    mount = {"name": "libs", "hostPath": "/o", "mountPath": "/libs", "hostPathType": "Weird"}
    reply = send(pod(), prepared(**gangs(extraHostPathMounts=[mount])), GANG)
    assert reply.allowed
    assert "libs" not in reply.volumes
    assert "libs" not in dict(reply.mounts())


@pytest.mark.covers("P11-54", "P-114", "P-116", "P-117")
@pytest.mark.parametrize(
    ("configured", "present", "paths", "result"),
    [
        (["a", "b"], ["b"], ["/spec/imagePullSecrets/-"], ["b", "a"]),
        (["a", "a"], [], ["/spec/imagePullSecrets"], ["a"]),
        (["a", "b"], None, ["/spec/imagePullSecrets"], ["a", "b"]),
        ([], ["b"], [], ["b"]),
        ([], None, [], None),
        (["b"], ["b"], [], ["b"]),
    ],
)
def test_pull_secrets_are_added_that_the_pod_lacks(
    configured: Any, present: Any, paths: Any, result: Any
) -> None:
    """In the configured order, without repeats, and only into pods that get checks."""
    config = without_gangs(imagePullSecrets=[{"name": name} for name in configured])
    more: Any = (
        {} if present is None else {"imagePullSecrets": [{"name": name} for name in present]}
    )
    reply = send(pod(**more), config)
    assert [path for path in reply.paths if "imagePull" in path] == paths
    found = reply.pod["spec"].get("imagePullSecrets")
    assert (found and names(found)) == result
    assert send(pod(container(), **more), config).patch == []
