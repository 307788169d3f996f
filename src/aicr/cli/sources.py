"""Reading inputs and writing single-file outputs for the commands.

Inputs are paths, ``-`` for standard input, or http(s) addresses. Outputs are written beside their
place and moved there whole, so that a failure or Ctrl-C leaves what was there before.
"""

from __future__ import annotations

import os
import sys

from aicr.errors import INTERNAL, SERVICE_UNAVAILABLE, TIMEOUT, AicrError, invalid, not_found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from aicr.cli.console import Console

#: Largest input that is read, in bytes: a snapshot of 20,000 nodes has about 60 MiB.
MAX_INPUT_BYTES: Final = 512 * 1024 * 1024
#: The same for documents that people write, which stay small: a larger one is another file, and reading
#: it with its places would take minutes.
MAX_DOCUMENT_BYTES: Final = {
    "criteria file": 1 << 20,
    "config file": 1 << 20,
    "recipe file": 16 << 20,
    "values file": 16 << 20,
}
_OUTPUT_MODE: Final = 0o644
#: Documents that may be in a ConfigMap, and the key that they have there.
IN_CONFIG_MAPS: Final = {"recipe file": "recipe.yaml", "snapshot file": "snapshot.yaml"}


def read_input(source: str, *, what: str, kubeconfig: str = "") -> str:
    """The text of an input.

    Args:
        source: a path, ``-``, an http(s) address, or ``cm://namespace/name``.
        what: words for it in messages, for example ``recipe file``.
        kubeconfig: which cluster a ConfigMap is in; "" for the one that applies here.

    Raises:
        AicrError: NOT_FOUND for an absent file, INVALID_REQUEST for a folder, an unreadable file or
            one that is not UTF-8, SERVICE_UNAVAILABLE or TIMEOUT for an address.
    """
    if source.startswith("cm://"):
        if what in IN_CONFIG_MAPS:
            return read_config_map(source, what=what, kubeconfig=kubeconfig)
        raise invalid(
            f"{what} {source}: ConfigMaps are not read by this command",
            hint="save it first: kubectl get configmap NAME -n NAMESPACE -o jsonpath='{.data.*}'",
        )
    if source.startswith(("http://", "https://")):
        content = _fetch(source, what)
    elif source == "-":
        content = _read_stdin(what)
    elif not source.strip():
        raise invalid(f"{what}: the name is empty", hint="name a file, or - for standard input")
    else:
        content = _read_file(source, what)
    if len(content) > _limit(what):
        raise invalid(
            f"{what} {source} is larger than {_limit(what)} bytes", hint="is it the right file?"
        )
    from aicr.yamlio import decode

    try:
        return decode(content.removeprefix(b"\xef\xbb\xbf"), source=source)
    except AicrError as error:
        raise invalid(f"{what} {source} is not UTF-8 text") from error


def _limit(what: str) -> int:
    return MAX_DOCUMENT_BYTES.get(what, MAX_INPUT_BYTES)


def _read_stdin(what: str) -> bytes:
    if sys.stdin is None:
        raise invalid(f"{what}: standard input is closed", hint="name a file instead of -")
    if sys.stdin.isatty():
        sys.stderr.write(f"reading the {what} from this terminal; end it with Ctrl-D\n")
    try:
        return sys.stdin.buffer.read(_limit(what) + 1)
    except OSError as error:
        raise invalid(f"cannot read the {what} from standard input: {error.strerror}") from None


def _read_file(path: str, what: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_limit(what) + 1)
    except FileNotFoundError:
        raise not_found(f"{what} not found: {path}", hint=_beside(path)) from None
    except IsADirectoryError:
        meant = os.path.join(path, IN_CONFIG_MAPS.get(what, ""))
        raise invalid(
            f"{what} {path} is a folder",
            hint="name the file in it" + (f": {meant}" if os.path.isfile(meant) else ""),
        ) from None
    except PermissionError:
        raise invalid(
            f"cannot read {what} {path}: permission denied", hint=f"look with: ls -l {path}"
        ) from None
    except OSError as error:
        raise invalid(
            f"cannot read {what} {path}: {error.strerror}", hint="check the path"
        ) from None


def _beside(path: str) -> str:
    """A hint with the nearest file name in the same folder."""
    from aicr.errors import nearest

    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return f"there is no folder {folder}" if folder else ""
    near = nearest(name, names)
    return f"did you mean {os.path.join(folder, near)}?" if near else "check the path"


def _fetch(address: str, what: str) -> bytes:
    import http.client
    import urllib.error

    from aicr.artifacts import proxied
    from aicr.artifacts.times import NetworkTimes
    from aicr.values import proxy

    shown = proxy.shown(address)
    if shown != address:
        raise invalid(
            f"{what} {shown}: the address is given with a user name or password, which is not sent",
            hint="fetch the file with a tool that logs in, and name the file",
        )
    seconds = NetworkTimes().document
    try:
        with proxied.opener(os.environ).open(address, timeout=seconds) as answer:
            content: bytes = answer.read(_limit(what) + 1)
            return content
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 404:
                raise not_found(
                    f"{what} not found: {address}", hint="open the address in a browser"
                ) from None
            if error.code == 407:
                raise AicrError(
                    SERVICE_UNAVAILABLE,
                    f"{what} {address}: the proxy asks for a log-in",
                    hint="put it into HTTP_PROXY: http://USER:PASSWORD@HOST:PORT",
                ) from None
            raise AicrError(
                SERVICE_UNAVAILABLE,
                f"{what} {address}: the server answered {error.code}",
                hint="open the address in a browser, or save the file and name it",
            ) from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            raise AicrError(
                TIMEOUT, f"{what} {address}: no answer in {seconds:g} s", hint="try again"
            ) from None
        raise AicrError(
            SERVICE_UNAVAILABLE,
            f"{what} {address}: {reason}",
            hint="check the address, the network and HTTPS_PROXY, or save the file and name it",
        ) from None


def write_output(
    text: str, target: str, console: Console, *, key: str = "", kubeconfig: str = ""
) -> None:
    """Print *text*, or write it to the file *target* as a whole.

    A link is followed, so that it goes on being one; a device or pipe is written to as it stands.
    ``cm://namespace/name`` is a ConfigMap, whose *key* gets the text; without a key there is none
    for this output.

    Raises:
        AicrError: INVALID_REQUEST when the place cannot be written, INTERNAL when the disk fails.
    """
    if target in ("", "-", "/dev/stdout"):
        console.write(text)
        return
    if target.startswith("cm://"):
        write_config_map(text, target, key=key, kubeconfig=kubeconfig)
        return
    if not target.strip():
        raise invalid("the name of the output file is blank", where="--output", hint="name a file")
    place = os.path.realpath(target)
    folder = os.path.dirname(place)
    if os.path.islink(place):
        # What is left of a chain of links is a link only where the chain never ends.
        raise invalid(
            f"{target} is a link that leads to itself", where="--output", hint="remove the link"
        )
    if os.path.isdir(place):
        raise invalid(f"{target} is a folder", where="--output", hint="name a file in it")
    if not os.path.isdir(folder) and not os.path.exists(target):
        hint = "a file is in the way" if os.path.exists(folder) else f"create it: mkdir -p {folder}"
        raise invalid(f"the folder {folder} does not exist", where="--output", hint=hint)
    from aicr.artifacts import whole_files

    data = text.encode("utf-8")
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            handle = os.open(target, os.O_WRONLY)
            try:
                whole_files.write_all(handle, data)
            finally:
                os.close(handle)
        else:
            whole_files.replace(place, data, _OUTPUT_MODE)
    except PermissionError as error:
        raise invalid(
            f"cannot write {target}: {error.strerror}",
            where="--output",
            hint="choose a folder that you may write to",
        ) from None
    except OSError as error:
        if error.errno in whole_files.BAD_NAMES:
            raise invalid(
                f"cannot write {target}: {error.strerror}",
                where="--output",
                hint="choose another name",
            ) from None
        raise AicrError(
            INTERNAL,
            f"cannot write {target}: {error.strerror}",
            where="--output",
            hint="nothing was left half written; make room or choose another place",
        ) from None


def read_config_map(source: str, *, what: str, kubeconfig: str = "") -> str:
    """The document in a ConfigMap (validators spec 1.1).

    Raises:
        AicrError: INVALID_REQUEST for another form of address, NOT_FOUND for an absent ConfigMap,
            what the cluster answers.
    """
    import asyncio

    from aicr.kube import config_maps, connect

    address = config_maps.parse(source)

    async def read() -> str:
        async with connect(kubeconfig=kubeconfig) as cluster:
            return await config_maps.read(cluster, address, what=what, key=IN_CONFIG_MAPS[what])

    return asyncio.run(read())


def write_config_map(text: str, target: str, *, key: str, kubeconfig: str = "") -> None:
    """Put an output into a ConfigMap.

    Raises:
        AicrError: INVALID_REQUEST for another form of address and for an output that has no key
            there; what the cluster answers.
    """
    if not key:
        raise invalid(
            f"{target}: ConfigMaps are not written by this command",
            where="--output",
            hint="write a file, then: kubectl create configmap NAME --from-file=FILE",
        )
    import asyncio

    from aicr.kube import config_maps, connect

    address = config_maps.parse(target)

    async def write() -> None:
        async with connect(kubeconfig=kubeconfig) as cluster:
            await config_maps.write(cluster, address, key=key, text=text)

    asyncio.run(write())


def replace_file(path: str, text: str) -> None:
    """Put *text* in the place of an existing file, whole; a link goes on being one, and the mode stays.

    Raises:
        AicrError: INVALID_REQUEST when the place cannot be written, INTERNAL when the disk fails.
    """
    from aicr.artifacts import whole_files

    try:
        place = os.path.realpath(path)
        mode = os.stat(place).st_mode & 0o7777
        whole_files.replace(place, text.encode("utf-8"), mode)
    except PermissionError as error:
        raise invalid(
            f"cannot write {path}: {error.strerror}",
            where=path,
            hint="its folder must be one that you may write to",
        ) from None
    except OSError as error:
        raise AicrError(
            INTERNAL,
            f"cannot write {path}: {error.strerror}",
            where=path,
            hint="the file is as it was; make room",
        ) from None
