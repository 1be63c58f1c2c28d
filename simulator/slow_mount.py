"""A read-only FUSE mount of a folder, as slow as you say: the storage rig for any program, not only Python.

    python simulator/slow_mount.py data /mnt/far --open-ms 20 --mb-per-s 50

    with slow_mount.mounted("data", open_ms=20, read_ms=2) as far:
        train(far)

Speaks the kernel's FUSE protocol by itself, so it needs no library, but it needs Linux, /dev/fuse and the
right to mount (`unavailable` tells why not). It runs in a process of its own. Opening a file or a folder and
every read that the page cache cannot answer pay; opening a file again drops its pages.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import os
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storage_rig import Disk, Speed, add_speed_options

_IN = struct.Struct("<IIQQIIIHH")  # length, opcode, unique, node, uid, gid, pid, extensions, padding
_OUT = struct.Struct("<IiQ")  # length, error, unique
_ATTRIBUTES = struct.Struct("<6Q10I")
_ENTRY = struct.Struct("<4Q2I")
_READ = struct.Struct("<QQI")  # handle, offset, size (and more that does not matter here)
_INIT_OUT = struct.Struct("<4I2H2I2HI7I")
_STATFS = struct.Struct("<5Q4I6I")

_PROTOCOL = 7, 31
_REQUEST_BYTES = 64 * 1024
_READ_AHEAD_BYTES = 128 * 1024
_WORKERS = 32  # so many requests wait at the same time
_MOUNT_FLAGS = 1 | 2 | 4  # read-only, no set-user-id, no devices
_DETACH = 2


def unavailable() -> str | None:
    """Why this machine cannot mount, or None."""
    if not sys.platform.startswith("linux"):
        return "not Linux"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse is missing or closed to this user"
    if os.geteuid() != 0:
        return "mounting needs root"
    return None


class SlowFolder:
    """Answers the kernel's requests from a real folder, each after the time that the disk takes."""

    def __init__(self, source: Path, disk: Disk) -> None:
        self._disk = disk
        self._paths = {1: os.fsencode(source.resolve())}
        self._nodes = {path: node for node, path in self._paths.items()}
        self._lock = threading.Lock()
        self._answers: dict[int, Callable[[int, bytes], bytes]] = {
            1: self._lookup,
            3: self._get_attributes,
            5: lambda node, _: os.readlink(self._paths[node]),  # noqa: PTH115
            14: self._open,
            15: self._read,
            17: lambda node, _: self._statfs(node),
            18: self._release,
            25: lambda node, _: b"",  # flush
            26: self._init,
            27: self._open_folder,
            28: self._read_folder,
            29: lambda node, _: b"",  # close folder
            34: lambda node, _: b"",  # access
            38: lambda node, _: b"",  # destroy
        }
        self._silent = {2, 36, 42}  # forget, interrupt, forget many: the kernel awaits no answer

    def serve(self, device: int) -> None:
        workers = [threading.Thread(target=self._work, args=(device,), daemon=True) for _ in range(_WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _work(self, device: int) -> None:
        while True:
            try:
                request = os.read(device, _REQUEST_BYTES)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                    continue
                return  # unmounted
            if not request:
                return
            self._answer(device, request)

    def _answer(self, device: int, request: bytes) -> None:
        _, opcode, unique, node, *_ = _IN.unpack_from(request)
        if opcode in self._silent:
            return
        error, body = 0, b""
        try:
            answer = self._answers.get(opcode)
            if answer is None:
                error = errno.ENOSYS
            else:
                body = answer(node, request[_IN.size :])
        except OSError as problem:
            error = problem.errno or errno.EIO
        try:
            os.write(device, _OUT.pack(_OUT.size + len(body), -error, unique) + body)
        except OSError:
            pass  # the asker was interrupted

    def _init(self, node: int, body: bytes) -> bytes:
        read_ahead = struct.unpack_from("<4I", body)[2]
        most = min(read_ahead, _READ_AHEAD_BYTES)
        return _INIT_OUT.pack(*_PROTOCOL, most, 0, 0, 0, 4096, 1, 0, 0, 0, *[0] * 7)

    def _node_of(self, path: bytes) -> int:
        with self._lock:
            node = self._nodes.setdefault(path, len(self._nodes) + 1)
            self._paths[node] = path
        return node

    def _lookup(self, node: int, body: bytes) -> bytes:
        path = os.path.join(self._paths[node], body.rstrip(b"\0"))  # noqa: PTH118
        attributes = self._attributes(path)
        return _ENTRY.pack(self._node_of(path), 0, 1, 1, 0, 0) + attributes

    def _get_attributes(self, node: int, body: bytes) -> bytes:
        return struct.pack("<QII", 1, 0, 0) + self._attributes(self._paths[node])

    def _attributes(self, path: bytes) -> bytes:
        s = os.lstat(path)
        times = s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns
        seconds, nanoseconds = [t // 10**9 for t in times], [t % 10**9 for t in times]
        rest = s.st_mode, s.st_nlink, s.st_uid, s.st_gid, 0, 4096, 0
        return _ATTRIBUTES.pack(s.st_ino, s.st_size, s.st_blocks, *seconds, *nanoseconds, *rest)

    def _open(self, node: int, body: bytes) -> bytes:
        self._disk.open()
        return struct.pack("<QII", os.open(self._paths[node], os.O_RDONLY), 0, 0)

    def _read(self, node: int, body: bytes) -> bytes:
        handle, offset, size = _READ.unpack_from(body)
        data = os.pread(handle, size, offset)
        self._disk.read(len(data))
        return data

    def _release(self, node: int, body: bytes) -> bytes:
        os.close(struct.unpack_from("<Q", body)[0])
        return b""

    def _open_folder(self, node: int, body: bytes) -> bytes:
        self._disk.open()
        return struct.pack("<QII", 0, 0, 0)

    def _read_folder(self, node: int, body: bytes) -> bytes:
        _, offset, size = _READ.unpack_from(body)
        out = b""
        names = sorted(os.listdir(self._paths[node]))  # noqa: PTH208
        for index, name in enumerate(names[offset:], offset + 1):
            mode = os.lstat(os.path.join(self._paths[node], name)).st_mode  # noqa: PTH118
            entry = struct.pack("<QQII", 2**32 + index, index, len(name), stat.S_IFMT(mode) >> 12) + name
            entry += bytes(-len(entry) % 8)
            if len(out) + len(entry) > size:
                break
            out += entry
        return out

    def _statfs(self, node: int) -> bytes:
        s = os.statvfs(self._paths[node])
        counts = s.f_blocks, s.f_bfree, s.f_bavail, s.f_files, s.f_ffree
        return _STATFS.pack(*counts, s.f_bsize, s.f_namemax, s.f_frsize, 0, *[0] * 6)


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _mount(device: int, target: Path) -> None:
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    result = _libc().mount(b"slow_mount", os.fsencode(target), b"fuse", _MOUNT_FLAGS, options.encode())
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"cannot mount: {os.strerror(code)}", str(target))


def _unmount(target: Path) -> None:
    _libc().umount2(os.fsencode(target), _DETACH)


def serve(source: Path, target: Path, speed: Speed) -> None:
    """Mount and answer until unmounted or told to end."""
    folder = SlowFolder(source, Disk(speed))  # resolved before the mount could cover it
    device = os.open("/dev/fuse", os.O_RDWR)
    _mount(device, target)
    signal.signal(signal.SIGTERM, lambda *_: _unmount(target))
    try:
        folder.serve(device)
    finally:
        _unmount(target)


@contextmanager
def mounted(source: str | os.PathLike[str], **speed: float) -> Iterator[Path]:
    """The path of a slow view of the folder, served by a child process."""
    with tempfile.TemporaryDirectory(prefix="slow_mount_") as target:
        options = [f"--{name.replace('_', '-')}={value}" for name, value in speed.items()]
        server = subprocess.Popen([sys.executable, __file__, os.fspath(source), target, *options])
        try:
            while not os.path.ismount(target):
                if server.poll() is not None:
                    raise RuntimeError("the slow mount could not start; its own message says why")
                time.sleep(0.01)
            yield Path(target)
        finally:
            server.terminate()
            server.wait()


def _main() -> None:
    parser = argparse.ArgumentParser(description="Mount a slow, read-only view of a folder.")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    add_speed_options(parser)
    options = vars(parser.parse_args())
    source, target = options.pop("source"), options.pop("target")
    if reason := unavailable():
        parser.error(reason)
    serve(source, target, Speed(**options))


if __name__ == "__main__":
    _main()
