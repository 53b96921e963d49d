"""What is planted for the attacks: secrets, files, sockets, processes; and whether they changed."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from contextlib import suppress

from hotloop.sandbox import kernel
from hotloop.sandbox.removal import remove_tree

_SHMGET, _SHMCTL, _IPC_RMID, _IPC_CREAT = 29, 31, 0, 0o1000
_OTHER_UID = 4242
_KEYCTL, _JOIN_SESSION_KEYRING = 250, 1


class Scene:
    """Everything that an attack may aim at besides its parent; made in the sacrificial process.

    `secrets` are the texts that must not come out of a cage. Some are contents, one is a file name,
    one a modification time; `outline` holds those that only private namespaces hide.
    """

    def __init__(self, token: str, uid: int | None, *, private: bool) -> None:
        """Plant everything below the current folder.

        Args:
            token: the secret that files, a file name and the bearer's environment hold.
            uid: the user of attacker and bearer; None for our own.
            private: nobody else can see our mounts, so that dangerous things may be planted.
        """
        self.base = tempfile.mkdtemp(prefix="attack-", dir=os.getcwd())
        self._private = private
        if private:
            kernel.mount("tmpfs", self.base, kind="tmpfs", flags=kernel.MS_NODEV)
        os.chmod(self.base, 0o755)
        self.hidden = f"{self.base}/hidden"
        self.allowed = f"{self.base}/allowed"
        self.token = token
        self.mark = secrets.token_hex(16)
        self.secrets = [token, self.mark]
        with suppress(OSError):  # keys that an attack leaves go with this process
            kernel.syscall(_KEYCTL, _JOIN_SESSION_KEYRING, 0)
        self._plant_files(uid)
        self._plant_sockets()
        self._plant_segment()
        self.bearer = subprocess.Popen(
            ["/bin/sleep", "600"], env={"HOTLOOP_PLANTED": token}, user=uid, group=uid
        )

    def _plant_files(self, uid: int | None) -> None:
        for folder, mode in (("", 0o755), ("/open", 0o777), ("/home/.ssh", 0o755)):
            os.makedirs(self.hidden + folder, exist_ok=True)
            os.chmod(self.hidden + folder, mode)
        for name in ("secret", "open/precious", "home/.ssh/id_rsa", f"open/{self.token}.key"):
            _put(f"{self.hidden}/{name}", self.token, 0o666)
            if uid is not None:  # the attacker's own files: modes would protect another's
                os.chown(f"{self.hidden}/{name}", uid, uid)
        moment_ns = secrets.randbelow(10**17) + 10**17
        os.utime(f"{self.hidden}/secret", ns=(moment_ns, moment_ns))
        self.moment = str(moment_ns)
        os.mkdir(self.allowed)
        os.chmod(self.allowed, 0o755)
        _put(f"{self.allowed}/public", "not a secret", 0o644)
        _put(f"{self.allowed}/root.key", self.token, 0o600)
        _put(f"{self.allowed}/other.key", self.token, 0o600)
        if self._private:
            shutil.copyfile("/bin/cat", f"{self.allowed}/set-uid-cat")
            os.chmod(f"{self.allowed}/set-uid-cat", 0o4755)
        os.mkdir(f"{self.allowed}/cache")
        os.chmod(f"{self.allowed}/cache", 0o777)
        _put(f"{self.allowed}/cache/module.py", "pass", 0o666)
        with suppress(PermissionError):  # only root can give a file away
            os.chown(f"{self.allowed}/other.key", _OTHER_UID, _OTHER_UID)

    def _plant_sockets(self) -> None:
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(type=socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.daemon = socket.socket(socket.AF_UNIX)
        self.daemon.bind(f"{self.hidden}/daemon.sock")
        self.log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.log.bind(f"{self.hidden}/log.sock")
        for name in ("daemon", "log"):
            os.chmod(f"{self.hidden}/{name}.sock", 0o777)
        self.abstract = f"hotloop-{secrets.token_hex(8)}"
        self.harness = socket.socket(socket.AF_UNIX)
        self.harness.bind("\0" + self.abstract)
        self._listeners = {"TCP": self.tcp, "Unix": self.daemon, "abstract Unix": self.harness}
        self._receivers = {"UDP": self.udp, "Unix datagram": self.log}
        for sock in self._listeners.values():
            sock.listen(8)
        for sock in (*self._listeners.values(), *self._receivers.values()):
            sock.setblocking(False)

    def _plant_segment(self) -> None:
        """Make a shared memory segment whose key is a secret of its own."""
        key = secrets.randbelow(2**30) + 2**29
        self._segment = kernel.syscall(_SHMGET, key, 4096, _IPC_CREAT | 0o666)
        self.segment_key = str(key)

    def outline(self) -> list[str]:
        """Return what is visible at T1 but not inside private namespaces.

        A command line's words stand side by side, because control characters are taken out.
        """
        port = self.tcp.getsockname()[1]
        return [self.moment, f":{port:04X} ", "sleep600", self.segment_key]

    def snapshot(self) -> dict[str, tuple[object, ...]]:
        """Return what is there, with everything that an attack could change."""
        found: dict[str, tuple[object, ...]] = {
            "host name": (socket.gethostname(),),
            "bearer": (self.bearer.poll(),),
        }
        for top in (self.hidden, self.allowed):
            for folder, folders, files in os.walk(top):
                for name in (".", *folders, *files):
                    path = os.path.join(folder, name)
                    info = os.lstat(path)
                    times = (info.st_mtime_ns, info.st_ctime_ns)
                    found[path] = (info.st_mode, info.st_uid, info.st_nlink, info.st_size, *times)
        return found

    def contacts(self) -> list[str]:
        """Return who got a connection or a message since the last call."""
        heard = []
        for name, listener in self._listeners.items():
            with suppress(BlockingIOError):
                while True:
                    listener.accept()[0].close()
                    heard.append(f"{name} connection")
        for name, receiver in self._receivers.items():
            with suppress(BlockingIOError):
                while True:
                    receiver.recv(100)
                    heard.append(f"{name} message")
        return heard

    def close(self) -> None:
        """End the bearer and remove everything that was planted."""
        self.bearer.kill()
        self.bearer.wait()
        with suppress(OSError):
            kernel.syscall(_SHMCTL, self._segment, _IPC_RMID, 0)
        for sock in (*self._listeners.values(), *self._receivers.values()):
            sock.close()
        for folder in ("/tmp", "/dev/shm"):
            with suppress(FileNotFoundError):
                os.unlink(f"{folder}/hotloop-{self.mark[:8]}")
        if self._private:
            kernel.unmount(self.base)
        remove_tree(self.base)


def _put(path: str, text: str, mode: int) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path, mode)
