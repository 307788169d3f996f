"""What an agent was told when it was started: a JSON file that `agents.Agents` writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.client import Client, Document


@dataclass(frozen=True)
class Cluster:
    """How to reach the API server, for the agent and for its pods."""

    server: str
    host: str
    port: int
    authority: Path
    token: str
    lease_seconds: float

    def client(self, timeout: float = 30.0) -> Client:
        """A client with the agent's rights."""
        return Client(self.server, self.authority, token=self.token, timeout=timeout)


@dataclass(frozen=True)
class Network:
    """The node's part of the plane's bridge."""

    bridge: str
    gateway: str
    prefix: int
    address: str
    pods: str


@dataclass(frozen=True)
class Image:
    """An image of images.yaml."""

    entrypoint: list[str]
    cmd: list[str]
    env: dict[str, str]
    workdir: str


@dataclass(frozen=True)
class NodeSettings:
    """A node that runs pods."""

    document: Document
    network: Network
    port: int
    certificate: Path
    key: Path
    authority: Path
    devices: int
    images: dict[str, Image]
    state: Path
    visible: list[str]

    @property
    def name(self) -> str:
        """The node's name."""
        return str(self.document["metadata"]["name"])


def cluster(raw: dict[str, Any]) -> Cluster:
    """Read the part that every agent has."""
    return Cluster(
        server=raw["server"],
        host=raw["host"],
        port=raw["serverPort"],
        authority=Path(raw["authority"]),
        token=raw["token"],
        lease_seconds=raw["leaseSeconds"],
    )


def node(raw: dict[str, Any]) -> NodeSettings:
    """Read the part of an agent that runs pods."""
    return NodeSettings(
        document=raw["node"],
        network=Network(**raw["network"]),
        port=raw["port"],
        certificate=Path(raw["certificate"]),
        key=Path(raw["key"]),
        authority=Path(raw["authority"]),
        devices=raw["devices"],
        images={name: Image(**entry) for name, entry in raw["images"].items()},
        state=Path(raw["state"]),
        visible=raw["visible"],
    )
