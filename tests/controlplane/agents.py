"""Starts and stops the node agents of one plane: a process for each node that runs pods, and one for
each group of hollow nodes.

It must not know: what an agent does.
"""

from __future__ import annotations

import ipaddress
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.controlplane.certificates import Authority
from tests.controlplane.network import Bridge, NetworkError
from tests.controlplane.nodes import IMAGES, Node, read_images
from tests.controlplane.processes import Process

PORT: Final = 10250
#: Where hollow nodes and their pods pretend to be; nothing listens there.
HOLLOW_RANGE: Final = ipaddress.ip_network("10.64.0.0/10")
ROOT: Final = Path(__file__).resolve().parents[2]


class Agents:
    """The agents of one plane."""

    def __init__(
        self,
        *,
        folder: Path,
        logs: Path,
        url: str,
        authority: Authority,
        token: str,
        bridge: Bridge | None,
        images: Sequence[Path],
        node_grace: int,
    ) -> None:
        self._folder, self._logs, self._url = folder, logs, url
        self._authority, self._token, self._bridge = authority, token, bridge
        self._images = read_images(IMAGES, *images)
        # A quarter of the grace, so that one late renewal does no harm.
        self._lease_seconds = min(10.0, node_grace / 4)
        self._renew_hollow = node_grace < 86400
        self._running = 0
        self._hollow = 0
        self.processes: list[Process] = []
        self.by_node: dict[str, Process] = {}

    def start(self, nodes: Sequence[Node]) -> list[Process]:
        """Start agents for *nodes*; returns without waiting for the nodes."""
        made = [self._start_node(node) for node in nodes if not node.hollow]
        hollow = [node for node in nodes if node.hollow]
        if hollow:
            made.append(self._start_hollow(hollow))
        return made

    def _start_node(self, node: Node) -> Process:
        if self._bridge is None:
            raise NetworkError(f"node {node.name} runs pods, which needs root")
        network = self._bridge.node(self._running)
        self._running += 1
        serving = self._authority.issue(
            f"node-{node.name}",
            common_name=f"system:node:{node.name}",
            organizations=["system:nodes"],
            addresses=[network.address],
        )
        return self._launch(
            f"agent-{node.name}",
            [node],
            {
                "mode": "process",
                "node": node.document(network.address, PORT),
                "network": network._asdict(),
                "port": PORT,
                "certificate": str(serving.certificate),
                "key": str(serving.key),
                "devices": node.devices,
                "images": self._images,
                "visible": visible(),
                "state": str(self._folder / "nodes" / node.name),
            },
        )

    def _start_hollow(self, nodes: Sequence[Node]) -> Process:
        documents = []
        for node in nodes:
            self._hollow += 1
            documents.append(node.document(str(HOLLOW_RANGE[self._hollow]), None))
        return self._launch(
            f"hollow-{nodes[0].name}",
            nodes,
            {"mode": "hollow", "nodes": documents, "renew": self._renew_hollow},
        )

    def _launch(self, name: str, nodes: Sequence[Node], settings: dict[str, Any]) -> Process:
        address = urlsplit(self._url)
        settings |= {
            "server": self._url,
            "host": address.hostname,
            "serverPort": address.port,
            "authority": str(self._authority.certificate),
            "token": self._token,
            "leaseSeconds": self._lease_seconds,
        }
        file = self._folder / f"{name}.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(settings), encoding="utf-8")
        process = Process(
            name,
            [sys.executable, "-m", "tests.controlplane.agent", str(file)],
            self._logs / f"{name}.log",
            directory=ROOT,
        )
        process.start()
        self.processes.append(process)
        self.by_node.update({node.name: process for node in nodes})
        return process

    def stop(self) -> None:
        """Ask all agents to end their pods and themselves, then wait for each."""
        for process in self.processes:
            process.ask_to_stop()
        for process in self.processes:
            process.stop()


def visible() -> list[str]:
    """Folders that pods must see and that are no part of the root's file system, so not in its overlay."""
    root = os.stat("/").st_dev
    wanted = [str(ROOT), sys.prefix, sys.base_prefix, tempfile.gettempdir()]
    return sorted({path for path in wanted if os.stat(path).st_dev != root})
