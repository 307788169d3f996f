"""Reading inputs and writing single-file outputs for the commands.

Inputs are paths, ``-`` for standard input, or http(s) addresses. Outputs are written beside their place
and moved there whole, so that a failure or Ctrl-C leaves what was there before.
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
#: Seconds to wait for an http(s) source to answer.
HTTP_TIMEOUT: Final = 30


def read_input(source: str, *, what: str) -> str:
    """The text of an input.

    Args:
        source: a path, ``-``, or an http(s) address.
        what: words for it in messages, for example ``recipe file``.

    Raises:
        AicrError: NOT_FOUND for an absent file, INVALID_REQUEST for a folder, an unreadable file or
            one that is not UTF-8, SERVICE_UNAVAILABLE or TIMEOUT for an address.
    """
    if source.startswith("cm://"):
        raise invalid(
            f"{what} {source}: ConfigMaps are not read by this command",
            hint="save it first: kubectl get configmap NAME -n NAMESPACE -o jsonpath='{.data.*}'",
        )
    if source.startswith(("http://", "https://")):
        content = _fetch(source, what)
    elif source == "-":
        content = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    else:
        content = _read_file(source, what)
    if len(content) > MAX_INPUT_BYTES:
        raise invalid(f"{what} {source} is larger than {MAX_INPUT_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise invalid(
            f"{what} {source} is not UTF-8 text (byte {error.start})",
            hint="save the file as UTF-8",
        ) from None


def _read_file(path: str, what: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(MAX_INPUT_BYTES + 1)
    except FileNotFoundError:
        raise not_found(f"{what} not found: {path}", hint=_beside(path)) from None
    except IsADirectoryError:
        raise invalid(f"{what} {path} is a folder", hint="name the file in it") from None
    except OSError as error:
        raise invalid(f"cannot read {what} {path}: {error.strerror}") from None


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
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(address, timeout=HTTP_TIMEOUT) as answer:
            content: bytes = answer.read(MAX_INPUT_BYTES + 1)
            return content
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 404:
                raise not_found(f"{what} not found: {address}") from None
            raise AicrError(
                SERVICE_UNAVAILABLE, f"{what} {address}: the server answered {error.code}"
            ) from None
    except TimeoutError:
        raise AicrError(
            TIMEOUT, f"{what} {address}: no answer in {HTTP_TIMEOUT} s", hint="try again"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise AicrError(SERVICE_UNAVAILABLE, f"{what} {address}: {reason}") from None


def write_output(text: str, target: str, console: Console) -> None:
    """Print *text*, or write it to the file *target* as a whole.

    Raises:
        AicrError: INVALID_REQUEST when the place cannot be written, INTERNAL when the disk fails.
    """
    if target in ("", "-"):
        console.write(text)
        return
    if target.startswith("cm://"):
        raise invalid(
            f"{target}: ConfigMaps are not written by this command",
            hint="write a file, then: kubectl create configmap NAME --from-file=recipe.yaml=FILE",
        )
    folder = os.path.dirname(target) or "."
    if os.path.isdir(target):
        raise invalid(f"{target} is a folder", hint="name a file in it")
    if not os.path.isdir(folder):
        raise invalid(f"the folder {folder} does not exist", hint=f"create it: mkdir -p {folder}")
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "w", encoding="utf-8") as device:
            device.write(text)
        return
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except OSError as error:
        raise invalid(
            f"cannot write {target}: {error.strerror}", hint="choose a folder that you may write to"
        ) from None
    try:
        with open(handle, "wb", closefd=True) as file:
            file.write(text.encode("utf-8"))
            os.fchmod(file.fileno(), 0o644)
        os.replace(temporary, target)
    except OSError as error:
        _remove(temporary)
        raise AicrError(INTERNAL, f"cannot write {target}: {error.strerror}") from None
    except BaseException:
        _remove(temporary)
        raise


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
