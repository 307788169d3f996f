"""Which cluster, as whom: in-cluster settings and kubeconfig files → `ClusterConfig`.

In-cluster settings are read here. Kubeconfig files are found, read and merged by the official
client's loader (decision 42), which is imported only then because it takes half a second; what the
merged entries mean is read here, since that loader knows neither exec plugins' certificates nor
rotated files. The loader also refreshes tokens of the auth-providers that it still supports.

The order of `load` is controller-runtime's: a file named, KUBECONFIG, in-cluster,
``~/.kube/config``. It must not know requests.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from aicr.errors import AicrError, invalid, nearest
from aicr.kube import entries, extras, impersonation
from aicr.kube.credentials import Beside, Credentials, Files, Fixed, Login, bearer
from aicr.kube.exec_plugin import ExecPlugin, data_of, read_spec
from aicr.kube.timeouts import Timeouts
from aicr.kube.tls import Tls
from aicr.values import proxy
from aicr.values.basic_login import basic

SERVICE_ACCOUNT_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
IN_CLUSTER: Final = "in-cluster"


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """Everything needed to talk to one cluster.

    Attributes:
        server: address without a slash at its end; may have a path (gateways to several clusters).
        proxy: URL of the proxy, "" for none.
        namespace: the one to use when none is given.
        context: name in the kubeconfig; "" in a cluster.
        source: the files, or ``in-cluster``.
        headers: sent with each request (impersonation).
        compression: ask for compressed answers: worth it over slow lines only.
    """

    server: str
    tls: Tls = field(default_factory=Tls)
    credentials: Credentials = field(default_factory=Fixed)
    proxy: str = field(default="", repr=False)
    namespace: str = "default"
    context: str = ""
    source: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    compression: bool = False

    def describe(self) -> str:
        """Context, server and namespace in one line, for the first line of every run (decision 13)."""
        context = f"context {self.context}, " if self.context else f"{self.source}, "
        return f"{context}server {self.server}, namespace {self.namespace}"


def load(
    *,
    kubeconfig: str = "",
    context: str = "",
    environ: Mapping[str, str],
    timeouts: Timeouts | None = None,
    service_account: str = SERVICE_ACCOUNT_FOLDER,
) -> ClusterConfig:
    """The settings that apply here; see the module for the order.

    Raises INVALID_REQUEST if there are none, a file is wrong or the context unknown. Asking for a
    context means asking for a kubeconfig.
    """
    timeouts = timeouts or Timeouts.from_environment(environ)
    named = kubeconfig or environ.get("KUBECONFIG", "")
    if named:
        return from_kubeconfig(named, context=context, environ=environ, timeouts=timeouts)
    token = Path(service_account) / "token"
    if not context and environ.get("KUBERNETES_SERVICE_HOST") and _exists(token):
        return in_cluster(environ=environ, timeouts=timeouts, service_account=service_account)
    standard = Path(environ.get("HOME") or Path.home()) / ".kube" / "config"
    if _exists(standard):
        return from_kubeconfig(str(standard), context=context, environ=environ, timeouts=timeouts)
    raise invalid(
        "no cluster is configured: KUBECONFIG is not set, this is not a pod with a service account, and "
        f"{standard} does not exist",
        hint="pass --kubeconfig FILE, or set KUBECONFIG",
    )


def in_cluster(
    *,
    environ: Mapping[str, str],
    timeouts: Timeouts | None = None,
    service_account: str = SERVICE_ACCOUNT_FOLDER,
    clock: Callable[[], float] = time.monotonic,
) -> ClusterConfig:
    """The settings that Kubernetes gives to a pod; the token file is read again as it is rotated."""
    timeouts = timeouts or Timeouts.from_environment(environ)
    host = environ.get("KUBERNETES_SERVICE_HOST")
    port = environ.get("KUBERNETES_SERVICE_PORT") or "443"
    if not host:
        raise invalid(
            "this is not a pod: KUBERNETES_SERVICE_HOST is not set",
            hint="pass --kubeconfig FILE, or set KUBECONFIG",
        )
    folder = Path(service_account)
    token, ca, namespace = folder / "token", folder / "ca.crt", folder / "namespace"
    if not _exists(token):
        raise invalid(
            "the pod has no service account token",
            where=str(token),
            hint="automountServiceAccountToken must not be false for this pod",
        )
    named = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    server = entries.address(named, "KUBERNETES_SERVICE_HOST and _PORT")
    own = namespace.read_text("utf-8").strip() if _exists(namespace) else ""
    files = Files(token_file=str(token), clock=clock, max_age=timeouts.token_reread)
    return ClusterConfig(
        server,
        Tls(ca=_content(str(ca), "certificate authority"), where=str(ca)),
        files,
        proxy.from_environment(server, environ),
        own or "default",
        source=IN_CLUSTER,
    )


def from_kubeconfig(
    path: str,
    *,
    context: str = "",
    environ: Mapping[str, str],
    timeouts: Timeouts | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> ClusterConfig:
    """The settings of *context* (default: the current one) in one or more kubeconfig files.

    *path* may hold several, as KUBECONFIG does. INVALID_REQUEST for a file or a context that is not
    there, and for entries that contradict themselves.
    """
    timeouts = timeouts or Timeouts.from_environment(environ)
    merged = _Merged(path)
    name = context or merged.current
    if not name:
        raise invalid(
            "the kubeconfig has no current-context",
            where=path,
            hint=(
                f"pass --context, one of {', '.join(merged.names('contexts'))}"
                if merged.names("contexts")
                else "it defines no context either; name another file with --kubeconfig"
            ),
        )
    chosen, _ = merged.entry("contexts", "context", name)
    cluster, cluster_file = merged.entry("clusters", "cluster", str(chosen.get("cluster") or ""))
    user: dict[str, Any] = {}
    user_file = path
    if chosen.get("user"):
        user, user_file = merged.entry("users", "user", str(chosen["user"]))
    tls = _tls(cluster, cluster_file)
    server = _server(cluster, cluster_file)
    wanted = entries.text(cluster, "proxy-url", cluster_file)
    through = proxy.checked(wanted, cluster_file) if wanted else ""
    return ClusterConfig(
        server,
        tls,
        _credentials(
            user,
            user_file,
            {**cluster, "certificate-authority-data": data_of(tls.ca)},
            environ,
            timeouts,
            clock,
            lambda: merged.official_token(name),
        ),
        through or proxy.from_environment(server, environ),
        entries.text(chosen, "namespace", path) or "default",
        name,
        path,
        impersonation.headers(user, user_file),
        not entries.flag(cluster, "disable-compression", cluster_file),
    )


class _Merged:
    """Kubeconfig files as the official loader reads and merges them."""

    def __init__(self, path: str) -> None:
        self.path = path
        missing = [part for part in path.split(os.pathsep) if part and not _exists(part)]
        if not [part for part in path.split(os.pathsep) if part and _exists(part)]:
            raise invalid(
                f"the kubeconfig {', '.join(missing)} does not exist",
                where=path,
                hint="check --kubeconfig and KUBECONFIG",
            )
        try:
            from kubernetes.config import kube_config
        except ImportError as error:
            raise extras.missing("kubernetes", "cluster", error) from error
        self._official: Any = kube_config
        try:
            self._merger: Any = self._official.KubeConfigMerger(path)
            self._config: dict[str, Any] = self._merger.config.value
            # kubectl takes the first file that has one; the loader the last.
            files = self._merger.config_files.values()
            currents = [str(found.get("current-context") or "") for found in files]
            self.current: str = next((current for current in currents if current), "")
            for section, part in (
                ("clusters", "cluster"),
                ("users", "user"),
                ("contexts", "context"),
            ):
                for found in self._config[section]:
                    str(found.value["name"]), dict(found.value.get(part) or {})
        except (
            Exception
        ) as error:  # the loader lets everything through that YAML and wrong types cause
            raise _unreadable(path, error) from error

    def names(self, section: str) -> list[str]:
        """Names defined in a section."""
        return [str(found.value["name"]) for found in self._config[section]]

    def entry(self, section: str, part: str, name: str) -> tuple[dict[str, Any], str]:
        """The entry called *name* and the file that it is from."""
        for found in self._config[section]:
            if found.value["name"] == name:
                return dict(found.value.get(part) or {}), str(found.path)
        close = nearest(name, self.names(section))
        known = f"known: {', '.join(self.names(section)) or 'none'}"
        raise invalid(
            f'{part} "{name}" is not in the kubeconfig',
            where=self.path,
            hint=f'did you mean "{close}"? {known}' if close else known,
        )

    def official_token(self, context: str) -> str:
        """The Authorization header that the official loader makes for an auth-provider."""
        loader = self._official.KubeConfigLoader(
            self._merger.config,
            active_context=context,
            config_base_path=None,
            config_persister=self._merger.save_changes,
        )
        configuration = type.__call__(self._official.Configuration)
        loader.load_and_set(configuration)
        return str(configuration.api_key.get("BearerToken") or "")


def _exists(path: str | Path) -> bool:
    """Whether a file is there.

    Raises INVALID_REQUEST when that cannot be told, for example for a folder that may not be entered.
    """
    try:
        return stat.S_ISREG(os.stat(os.path.expanduser(path)).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise invalid(
            f"cannot look for the file: {error.strerror}",
            where=str(path)[:200],
            hint="name a file that can be read, with --kubeconfig or KUBECONFIG",
        ) from error


def _mark(error: Exception) -> Any:
    """Where in a file a YAML error is, or None for other errors."""
    return getattr(error, "problem_mark", None)


def _unreadable(path: str, error: Exception) -> AicrError:
    mark = _mark(error)
    where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else path
    what = getattr(error, "problem", None) or (error.strerror if isinstance(error, OSError) else "")
    return invalid(
        f"the file cannot be read as a kubeconfig{f': {what}' if what else ''}",
        where=where,
        hint="kubectl config view shows what kubectl reads",
    )


def _content(path: str, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise invalid(f"the {what} cannot be read: {error.strerror}", where=path) from error


def _path(entry: Mapping[str, Any], key: str, file: str) -> str:
    """A path in an entry, relative to the file that the entry is from; "" if not set."""
    value = entries.text(entry, key, file)
    folder = Path(file).expanduser().absolute().parent
    return str(folder / value) if value else ""


def _data(entry: Mapping[str, Any], key: str, file: str) -> bytes:
    """PEM bytes given as ``KEY-data``, which wins, or in the file KEY; empty if neither is set."""
    encoded = entries.text(entry, f"{key}-data", file)
    if encoded:
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError) as error:
            raise invalid(f"{key}-data is not base64", where=file) from error
    path = _path(entry, key, file)
    return _content(path, key) if path else b""


def _tls(cluster: Mapping[str, Any], file: str) -> Tls:
    ca = _data(cluster, "certificate-authority", file)
    insecure = entries.flag(cluster, "insecure-skip-tls-verify", file)
    if ca and insecure:
        raise invalid(
            "certificate-authority and insecure-skip-tls-verify are both set",
            where=file,
            hint="remove insecure-skip-tls-verify",
        )
    return Tls(ca, insecure, entries.text(cluster, "tls-server-name", file), file)


def _server(cluster: Mapping[str, Any], file: str) -> str:
    server = entries.text(cluster, "server", file)
    if not server:
        raise invalid("the cluster has no server", where=file)
    if "://" not in server:
        tls = any(key.startswith("certificate-authority") for key in cluster)
        server = f"{'https' if tls else 'http'}://{server}"
    return entries.address(server, file)


def _credentials(
    user: Mapping[str, Any],
    file: str,
    cluster: Mapping[str, Any],
    environ: Mapping[str, str],
    timeouts: Timeouts,
    clock: Callable[[], float],
    official_token: Callable[[], str],
) -> Credentials:
    """As client-go: a token before a password before a program; a certificate beside any of them."""
    authorization = bearer(entries.text(user, "token", file))
    token_file = _path(user, "tokenFile", file)
    name = entries.text(user, "username", file)
    if not authorization and not token_file and name:
        authorization = basic(name, entries.text(user, "password", file))
    in_files = not user.get("client-certificate-data") and not user.get("client-key-data")
    certificate_file = _path(user, "client-certificate", file) if in_files else ""
    key_file = _path(user, "client-key", file) if in_files else ""
    certificate = _data(user, "client-certificate", file)
    login = Login(authorization, certificate, _data(user, "client-key", file))
    own: Credentials = Fixed(login)
    if token_file or certificate_file:
        own = Files(
            *(login,),
            token_file=token_file,
            certificate_file=certificate_file,
            key_file=key_file,
            clock=clock,
            max_age=timeouts.token_reread,
        )
    made: Credentials | None = None
    command = entries.mapping(user, "exec", file)
    provider = entries.mapping(user, "auth-provider", file)
    if command and provider:
        raise invalid("exec and auth-provider are both set", where=file)
    if authorization or token_file:
        return own
    if command:
        folder = str(Path(file).expanduser().absolute().parent)
        spec = read_spec(command, folder=folder, cluster=cluster, where=file)
        made = ExecPlugin(spec, environ=environ, now=time.time, timeout=timeouts.exec_plugin)
    elif provider:
        made = _auth_provider(provider, file, official_token, clock, timeouts)
    if made is None:
        return own
    return Beside(made, own) if certificate or certificate_file else made


def _auth_provider(
    settings: Mapping[str, Any],
    file: str,
    official_token: Callable[[], str],
    clock: Callable[[], float],
    timeouts: Timeouts,
) -> Credentials:
    from aicr.kube.auth_provider import SUPPORTED, AuthProvider

    name = entries.text(settings, "name", file)
    if name not in SUPPORTED:
        raise invalid(
            f'auth-provider "{name}" is not supported any more',
            where=file,
            hint="use the exec plugin of the cloud (for Azure: kubelogin convert-kubeconfig)",
        )
    return AuthProvider(name, file, official_token, clock=clock, max_age=timeouts.token_reread)
