"""The OS measurement: release, boot parameters, kernel settings and modules, from text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.collectors.machines import linux, write

from aicr.collectors import os_files, talos
from aicr.collectors.ports import Files
from aicr.errors import INTERNAL, NOT_FOUND


def data(root: Path, name: str) -> dict[str, Any]:
    """The readings of a subtype."""
    found = os_files.collect(Files(root))
    return next(one["data"] for one in found.subtypes if one["subtype"] == name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('ID=ubuntu\nVERSION_ID="24.04"', {"ID": "ubuntu", "VERSION_ID": "24.04"}),
        ("NAME='Rocky Linux'", {"NAME": "Rocky Linux"}),
        ("# ID=no\n\n  ID = cos \n", {"ID": "cos"}),
        ('EMPTY=\nALSO=""\nword\n=x', {}),
        ('A="one \\"quoted\\""', {"A": 'one \\"quoted\\"'}),
        ("URL=https://a.test/?b=c", {"URL": "https://a.test/?b=c"}),
        ('ODD="half', {"ODD": '"half'}),
    ],
    ids=["double", "single", "comments-blanks", "empty", "escapes", "equals", "half-quoted"],
)
def test_a_release_file_reads_as_keys_and_unquoted_values(
    text: str, expected: dict[str, str]
) -> None:
    """Quotes go, comments and empty values are left out."""
    assert os_files.parse_release(text) == expected


def test_boot_parameters_leave_out_the_root_device(tmp_path: Path) -> None:
    """A flag has the value "", the last of several wins, and root differs on every machine."""
    linux(tmp_path)
    assert data(tmp_path, "grub") == {
        "BOOT_IMAGE": "/vmlinuz",
        "iommu": "soft",
        "quiet": "",
        "ro": "",
    }


def test_modules_are_the_first_words(tmp_path: Path) -> None:
    """Each loaded module is true."""
    linux(tmp_path)
    assert data(tmp_path, "kmod") == {"nvme": True, "nvme_core": True}


def test_a_kernel_without_loadable_modules_has_none(tmp_path: Path) -> None:
    """No /proc/modules beside /proc/sys is an answer, not a failure."""
    write(tmp_path, "/proc/sys/kernel/osrelease", "6.8\n")
    found = os_files.collect(Files(tmp_path))
    assert data(tmp_path, "kmod") == {}
    assert "OS.kmod" not in [each.name for each in found.missing]


def test_kernel_settings_are_keyed_by_their_path(tmp_path: Path) -> None:
    """Network and CD-ROM settings and links are skipped; lines of `key value` become keys."""
    linux(tmp_path)
    write(tmp_path, "/proc/sys/net/ipv4/ip_forward", "1\n")
    write(tmp_path, "/proc/sys/dev/cdrom/info", "drive name:\n")
    write(tmp_path, "/proc/sys/fs/table", "alpha 1\nbeta  2 3\n")
    write(tmp_path, "/proc/sys/fs/empty", "")
    (tmp_path / "proc/sys/fs/link").symlink_to("empty")
    assert data(tmp_path, "sysctl") == {
        "/proc/sys/fs/empty": "",
        "/proc/sys/fs/table/alpha": "1",
        "/proc/sys/fs/table/beta": "2 3",
        "/proc/sys/kernel/osrelease": "6.8.0-1028-aws",
        "/proc/sys/vm/nr_hugepages": "0",
    }


def test_the_second_release_file_stands_in_for_the_first(tmp_path: Path) -> None:
    """/usr/lib/os-release is read where /etc has none."""
    write(tmp_path, "/usr/lib/os-release", "ID=fedora\n")
    assert data(tmp_path, "release") == {"ID": "fedora"}


def test_what_is_not_there_is_said_and_the_rest_is_kept(tmp_path: Path) -> None:
    """A missing file costs its subtype alone and is named with its code (decision 9)."""
    write(tmp_path, "/proc/cmdline", "quiet\n")
    found = os_files.collect(Files(tmp_path))
    assert [one["subtype"] for one in found.subtypes] == ["grub"]
    assert {each.name: each.error.code for each in found.missing} == {
        "OS.release": NOT_FOUND,
        "OS.sysctl": NOT_FOUND,
        "OS.kmod": NOT_FOUND,
    }


def test_a_release_that_cannot_be_read_is_no_empty_release(tmp_path: Path) -> None:
    """A folder where the file should be is an error with its place."""
    (tmp_path / "etc/os-release").mkdir(parents=True)
    found = os_files.collect(Files(tmp_path))
    error = next(each.error for each in found.missing if each.name == "OS.release")
    assert (error.code, error.where) == (INTERNAL, "/etc/os-release")


def test_settings_of_which_none_can_be_read_are_a_failure(tmp_path: Path) -> None:
    """An empty reading would say that the kernel has no settings."""
    (tmp_path / "proc/sys").mkdir(parents=True)
    found = os_files.collect(Files(tmp_path))
    error = next(each.error for each in found.missing if each.name == "OS.sysctl")
    assert (error.code, error.message) == (NOT_FOUND, "no file below /proc/sys can be read")


def test_this_machine_has_settings() -> None:
    """The real /proc/sys reads, whose files refuse large buffers."""
    found = os_files.collect(Files())
    settings = next(one["data"] for one in found.subtypes if one["subtype"] == "sysctl")
    assert settings["/proc/sys/kernel/ostype"] == "Linux"


def node(image: str, **labels: str) -> dict[str, Any]:
    """A node with an operating system."""
    return {
        "metadata": {"name": "n1", "labels": labels},
        "status": {"nodeInfo": {"osImage": image}},
    }


def test_talos_is_read_off_its_node() -> None:
    """Release from osImage, system extensions from labels."""
    found = talos.collect(
        node("Talos (v1.11.2)", **{"extensions.talos.dev/nvidia-open": "570", "zone": "a"})
    )
    assert found.missing == []
    assert {one["subtype"]: one["data"] for one in found.subtypes} == {
        "release": {
            "ID": "talos",
            "NAME": "Talos",
            "VERSION_ID": "1.11.2",
            "PRETTY_NAME": "Talos (v1.11.2)",
        },
        "extensions": {"nvidia-open": "570"},
    }


def test_a_node_of_another_system_is_not_taken_for_talos() -> None:
    """--os talos on Ubuntu is a reading that could not be taken."""
    found = talos.collect(node("Ubuntu 24.04"))
    assert found.subtypes == []
    assert [(each.name, each.error.code) for each in found.missing] == [("OS.release", NOT_FOUND)]
    assert not talos.is_talos(node("Ubuntu 24.04"))
