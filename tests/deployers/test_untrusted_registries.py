"""What is pushed without TLS is pulled without it: the printed steps and the README say how."""

from __future__ import annotations

from typing import Any

import pytest
from tests.bundle.sample_plans import chart
from tests.deployers import gitops_plans as plans

from aicr.bundle.deployers import load, steps
from aicr.bundle.options import BundleOptions

WHERE = "oci://r.example:5000/team/stack"
REFERENCE: dict[str, Any] = {"oci_reference": f"{WHERE}:1.2.3"}


def printed(deployer: str, **options: Any) -> str:
    """The steps of a pushed bundle."""
    return "\n".join(
        steps(load(deployer), BundleOptions(deployer=deployer, **REFERENCE, **options))
    )


@pytest.mark.parametrize(
    ("deployer", "options", "line"),
    [
        ("flux", {"oci_plain_http": True}, f"--url {WHERE} --tag 1.2.3 --insecure"),
        ("argocd-helm", {"oci_plain_http": True}, f"{WHERE} --version 1.2.3 --plain-http "),
        (
            "argocd-helm",
            {"oci_insecure_tls": True},
            f"{WHERE} --version 1.2.3 --insecure-skip-tls-verify ",
        ),
    ],
)
def test_the_steps_reach_the_registry_as_the_push_did(
    deployer: str, options: dict[str, Any], line: str
) -> None:
    """In the steps that are printed and in the README; not for a registry with TLS."""
    made = printed(deployer, **options)
    assert line in made
    files = plans.files_of(plans.plan_of(chart("a"), deployer=deployer, **REFERENCE, **options))
    assert line in files["README.md"][0].decode()
    assert line.split()[-1] not in printed(deployer)


@pytest.mark.parametrize("deployer", ["argocd", "argocd-helm"])
@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"oci_plain_http": True}, "--insecure-oci-force-http"),
        ({"oci_insecure_tls": True}, "--insecure-skip-server-verification"),
        ({}, ""),
    ],
)
def test_argo_cd_is_told_of_a_registry_that_it_would_not_trust(
    deployer: str, options: dict[str, Any], flag: str
) -> None:
    """It reads the bundle itself, and would ask for TLS."""
    files = plans.files_of(plans.plan_of(chart("a"), deployer=deployer, **REFERENCE, **options))
    text = files["README.md"][0].decode()
    assert ("argocd repo add" in text) is bool(flag)
    if flag:
        assert f"argocd repo add {WHERE} --type oci {flag}\n" in text
