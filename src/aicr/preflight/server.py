"""The webhook process: start, serve, end.

```
configuration ─► gangs (validated) ─► certificate ─► ports ─► serving ─► draining ─► end
```

Everything up to "serving" either works or ends the process. On a request to end, the process says that it
is not ready, goes on answering for a while, as the cluster still sends it requests, and then answers
what has arrived before it stops. This is the only module that imports an ASGI server and an event loop.
Source: preflight spec 1.1, 2.1; decisions 23, 39, 74, 75.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aicr.errors import INTERNAL, SERVICE_UNAVAILABLE, AicrError, invalid, not_found
from aicr.kube.client import Client
from aicr.preflight.admission.claim_lookup import ClusterClaims, DeviceClasses
from aicr.preflight.admission.events import Events
from aicr.preflight.admission.gang_port import GangService
from aicr.preflight.admission.handler import Admission
from aicr.preflight.admission.prepared import prepare
from aicr.preflight.config import Config, load
from aicr.preflight.logs import text_of
from aicr.preflight.server_app import MetricsApp, WebhookApp
from aicr.preflight.server_tls import Certificate, Validity
from aicr.preflight.times import ServerTimes

if TYPE_CHECKING:
    import uvicorn

    from aicr.preflight.server_metrics import GangFigures, Metrics

LOG: Final = logging.getLogger("aicr.preflight.server")
TIMES: Final = ServerTimes()
#: Connections that wait to be accepted; a job of a thousand pods arrives at once.
BACKLOG: Final = 2048


@dataclass(frozen=True, slots=True)
class Options:
    """Where to serve and from what."""

    config: str = "/etc/preflight/config.yaml"
    certificates: str = "/certs"
    host: str = ""
    """Address to listen on; "" for all, of both families."""
    port: int = 8443
    metrics_port: int = 8080
    """0 for no metrics server."""
    drain: float = 5.0
    """Seconds to go on answering after a request to end."""


@dataclass(frozen=True, slots=True)
class Access:
    """How the process gets at a cluster; called only if the configuration needs one."""

    connect: Callable[[], Client]
    gangs: Callable[..., GangService]
    """Called with the client, the configuration, and ``metrics``."""


def read_config(path: str) -> tuple[Config, list[str]]:
    """The configuration in file *path*, and warnings.

    Raises:
        AicrError: ``failed to read config file``, or what `config.load` raises.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        cause = not_found(f"there is no {path}")
        raise not_found("failed to read config file") from cause
    except (OSError, UnicodeDecodeError) as error:
        raise invalid("failed to read config file", where=path) from error
    return load(text, source=path)


def run(options: Options, access: Access, version: dict[str, str]) -> int:
    """Serve until a signal; the exit status. *version* is logged once.

    Any failure is one line ``Fatal error`` with the chain of causes, and status 1.
    """
    LOG.info("Starting preflight", extra=version)
    try:
        serving = _extras()
        with asyncio.Runner(loop_factory=serving.new_loop) as runner:
            runner.run(_Process(options, access, serving).serve())
    except AicrError as error:
        fields = {"error": text_of(error), "code": error.code}
        LOG.error("Fatal error", extra={**fields, "hint": error.hint} if error.hint else fields)
        return 1
    except Exception as error:
        # A bug of ours; the chain is all that a log can hold of it.
        said = f"unexpected {type(error).__name__}: {text_of(error)}"
        LOG.error("Fatal error", extra={"error": said, "code": INTERNAL})
        return 1
    LOG.info("Stopped preflight")
    return 0


@dataclass(frozen=True, slots=True)
class _Serving:
    """What the extra ``webhook`` brings."""

    new_loop: Callable[[], asyncio.AbstractEventLoop]
    config: Callable[..., uvicorn.Config]
    server: type[uvicorn.Server]
    protocol: type[asyncio.Protocol]
    metrics: type[Metrics]
    gang_figures: type[GangFigures]


def _extras() -> _Serving:
    try:
        import uvicorn
        import uvloop

        from aicr.preflight.server_http import CorkedProtocol
        from aicr.preflight.server_metrics import GangFigures, Metrics
    except ImportError as error:
        package = (error.name or "uvicorn").split(".")[0]
        raise invalid(
            f"the webhook needs the package {package}, which is not installed",
            hint='pip install "aicr[webhook]"',
            context={"extra": "webhook", "package": package},
        ) from error
    return _Serving(
        uvloop.new_event_loop,
        uvicorn.Config,
        uvicorn.Server,
        CorkedProtocol,
        Metrics,
        GangFigures,
    )


def listen(host: str, port: int, what: str) -> socket.socket:
    """A socket that is bound; SERVICE_UNAVAILABLE if the port is taken or not allowed."""
    both = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both or ":" in host else socket.AF_INET
    try:
        return socket.create_server(
            (host, port), family=family, backlog=BACKLOG, dualstack_ipv6=both
        )
    except OSError as error:
        raise AicrError(
            SERVICE_UNAVAILABLE,
            f"cannot listen on {host or '*'}:{port} for {what}: {error.strerror}",
            hint="choose another port, or end the process that has it",
        ) from None


class _Process:
    """One run of the webhook."""

    def __init__(self, options: Options, access: Access, serving: _Serving) -> None:
        self._options = options
        self._access = access
        self._serving = serving
        self._metrics = serving.metrics()
        self._ending = asyncio.Event()
        self._hurried = asyncio.Event()

    async def serve(self) -> None:
        """Start everything, wait for a signal or a failure, and end in order."""
        config, warnings = read_config(self._options.config)
        prepared = prepare(config)
        for warning in warnings:
            LOG.warning("Configuration", extra={"warning": warning})
        LOG.info(
            "Configuration loaded",
            extra={
                "initContainers": len(config.checks),
                "gpuResourceNames": config.gpu_resources,
                "gangCoordinationEnabled": config.gangs.enabled,
            },
        )
        async with AsyncExitStack() as stack:
            tasks: list[asyncio.Task[None]] = []
            cluster: Client | None = None
            if config.needs_cluster:
                cluster = await stack.enter_async_context(self._access.connect())
            gangs: GangService | None = None
            if config.gangs.enabled and cluster is not None:
                figures = self._serving.gang_figures(self._metrics.registry)
                gangs = self._access.gangs(cluster, config, metrics=figures)
                await gangs.start()
            events = None
            if config.events and cluster is not None:
                events = Events(cluster, failed=lambda: self._metrics.failed("event"))
            claims, classes = None, None
            if config.dra_enabled and cluster is not None:
                claims = ClusterClaims(cluster, config.device_classes)
                classes = DeviceClasses(cluster)
            admission = Admission(
                prepared,
                meter=self._metrics,
                gangs=gangs,
                claims=claims,
                events=events,
                backed=lambda: classes.backed if classes else {},
            )
            certificate = Certificate(self._options.certificates, loaded=self._note_certificate)
            certificate.load()
            app = WebhookApp(admission, unready=lambda: _unready(certificate, gangs))
            servers = [self._server(app, self._options.port, "admissions", certificate)]
            if self._options.metrics_port:
                metrics = MetricsApp(self._metrics.text)
                servers.append(self._server(metrics, self._options.metrics_port, "metrics", None))
            tasks.append(asyncio.create_task(certificate.watch()))
            tasks += [asyncio.create_task(part.run()) for part in (events, classes) if part]
            failing = [asyncio.create_task(_guarded(gangs.run()))] if gangs else []
            try:
                await self._until_told(app, servers, failing)
            finally:
                for task in (*tasks, *failing):
                    task.cancel()
                await asyncio.gather(*tasks, *failing, return_exceptions=True)

    def _note_certificate(self, fine: bool, validity: Validity) -> None:
        self._metrics.certificate_expiry.set(validity.end)
        self._metrics.certificate_reloads.labels("loaded" if fine else "failed").inc()

    def _server(
        self, app: object, port: int, what: str, certificate: Certificate | None
    ) -> tuple[uvicorn.Server, socket.socket]:
        config = self._serving.config(
            app,
            http=self._serving.protocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_keep_alive=int(TIMES.keep_alive),
            timeout_graceful_shutdown=int(TIMES.grace),
        )
        config.load()
        if certificate is not None:
            config.ssl = certificate.context
        return self._serving.server(config), listen(self._options.host, port, what)

    async def _until_told(
        self,
        app: WebhookApp,
        servers: list[tuple[uvicorn.Server, socket.socket]],
        failing: list[asyncio.Task[None]],
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number)
        # `_serve` and not `serve`: signals are ours, since both servers end together.
        running = [asyncio.create_task(server._serve([sock])) for server, sock in servers]
        ending = asyncio.create_task(self._ending.wait())
        _settle_memory()
        try:
            while not all(server.started for server, _ in servers):
                await asyncio.sleep(TIMES.start)
            LOG.info("Serving", extra={"port": servers[0][1].getsockname()[1]})
            await asyncio.wait([*running, *failing, ending], return_when=asyncio.FIRST_COMPLETED)
            await self._drain(app, failed=any(task.done() for task in failing))
        finally:
            ending.cancel()
            await asyncio.gather(*(_close_door(server, sock) for server, sock in servers))
            for server, _ in servers:
                server.should_exit = True
            await asyncio.gather(*running, return_exceptions=True)
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
        for task in (*failing, *running):
            if task.done() and not task.cancelled():
                task.result()

    async def _drain(self, app: WebhookApp, *, failed: bool) -> None:
        """Answer for a while longer, until whoever routes to us has noticed."""
        app.draining = True
        if failed:
            LOG.error("Controller manager failed, initiating shutdown")
        LOG.info("Draining", extra={"seconds": self._options.drain})
        try:
            async with asyncio.timeout(self._options.drain):
                await self._hurried.wait()
        except TimeoutError:
            # The ordinary end of draining; a second signal is the other.
            return

    def _signalled(self, number: int) -> None:
        if self._ending.is_set() or number == signal.SIGINT:
            self._hurried.set()
        self._ending.set()


async def _close_door(server: uvicorn.Server, sock: socket.socket) -> None:
    """Accept nobody any more, and wait for those who have come in to ask and be answered.

    uvicorn alone would cut a connection whose request is still on its way, and an admission be lost.
    """
    if not server.started:
        return
    for listener in server.servers:
        listener.close()
    sock.close()
    loop = asyncio.get_running_loop()
    end = loop.time() + TIMES.settle
    while server.server_state.connections and loop.time() < end:
        await asyncio.sleep(TIMES.settle_look)


async def _guarded(controllers: Coroutine[Any, Any, None]) -> None:
    """Run *controllers*; that they end by themselves is a failure as well."""
    try:
        await controllers
    except AicrError as error:
        raise AicrError(error.code, "controller manager failed", hint=error.hint) from error
    raise AicrError(SERVICE_UNAVAILABLE, "controller manager failed: it ended by itself")


def _unready(certificate: Certificate, gangs: GangService | None) -> str:
    return certificate.validity.problem(time.time()) or (gangs.unready() if gangs else "")


def _settle_memory() -> None:
    """The garbage collector on, and spared what lives as long as the process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
