"""The criteria vocabulary and the reading of GPU product names."""

from __future__ import annotations

import pytest

from aicr.catalog import criteria_values as vocabulary


def test_values_are_sorted_and_every_field_has_some() -> None:
    """Lists are printed sorted (recipe spec 1.2), in the one order of fields."""
    assert vocabulary.FIELDS == ("service", "accelerator", "intent", "os", "platform")
    assert tuple(vocabulary.VALUES) == vocabulary.FIELDS
    assert tuple(vocabulary.ALIASES) == vocabulary.FIELDS
    for values in vocabulary.VALUES.values():
        assert values
        assert list(values) == sorted(set(values))


def test_aliases_lead_to_values() -> None:
    """An alias never hides a value and never leads outside the vocabulary."""
    for field, aliases in vocabulary.ALIASES.items():
        assert not set(aliases) & set(vocabulary.VALUES[field])
        assert set(aliases.values()) <= set(vocabulary.VALUES[field])
    assert set(vocabulary.OS_RELEASE_IDS.values()) == set(vocabulary.OSES)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("service", " EKS ", "eks"),
        ("service", "openshift", "ocp"),
        ("service", "vanilla", "generic"),
        ("service", "any", ""),
        ("service", "", ""),
        ("service", "foo", ""),
        ("os", "AL2023", "amazonlinux"),
        ("os", "sles", ""),
        ("accelerator", "L40S", "l40s"),
    ],
)
def test_a_spelling_is_known_in_any_case(field: str, text: str, value: str) -> None:
    """Blanks and case do not matter; what is not built in is "" here."""
    assert vocabulary.known(field, text) == value


@pytest.mark.parametrize(
    ("product", "value"),
    [
        ("NVIDIA-H100-80GB-HBM3", "h100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "h100"),
        ("NVIDIA-H100-80GB-HBM3-SHARED", "h100"),
        ("H100NVL", "h100"),
        ("GH100 [H100 SXM5 80GB]", "h100"),
        ("NVIDIA-H200", "h200"),
        ("NVIDIA-A100-SXM4-80GB", "a100"),
        ("NVIDIA A100X", "a100"),
        ("NVIDIA-B200", "b200"),
        ("NVIDIA-GB200", "gb200"),
        ("GB200 NVL72", "gb200"),
        ("NVIDIA-GB300", "gb300"),
        ("NVIDIA VR200", "vr200"),
        ("NVIDIA-L40", "l40"),
        ("NVIDIA-L40S", "l40s"),
        ("AD102GL [L40S]", "l40s"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "rtx-pro-6000"),
        ("GB202GL [RTX PRO 6000 Blackwell Server Edition]", "rtx-pro-6000"),
        ("NVIDIA RTX  PRO 6000", "rtx-pro-6000"),
        ("gb200", "gb200"),
        # others of the family are not the same product
        ("NVIDIA-GH200-480GB", ""),
        ("NVIDIA-H20", ""),
        ("NVIDIA-H2000", ""),
        ("NVIDIA-B300", ""),
        ("NVIDIA-L4", ""),
        ("NVIDIA-L40G", ""),
        ("NVIDIA-L400", ""),
        ("NVIDIA-A10", ""),
        ("NVIDIA RTX A1000", ""),
        ("NVIDIA RTX 6000 Ada Generation", ""),
        ("Tesla-V100-SXM2-32GB", ""),
        ("Tesla-T4", ""),
        ("NVIDIA-Ｈ100", ""),
        ("", ""),
    ],
)
def test_a_gpu_product_maps_to_its_own_accelerator_only(product: str, value: str) -> None:
    """Longest name first, whole words only (recipe spec 1.10)."""
    assert vocabulary.accelerator_of(product) == value
