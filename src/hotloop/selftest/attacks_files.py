"""Attacks on files: reading secrets, changing what is not the cage's, tricks with links."""

from __future__ import annotations

import os
import stat
from functools import partial

from hotloop.sandbox import kernel
from hotloop.selftest.case import Case, Target, read, say, write

_SETXATTR = 188


def read_home(target: Target) -> None:
    """Read a planted private key and what commonly lies in a home folder."""
    home = f"{target.hidden}/home"
    target.attempt_all(
        {
            "private key": lambda: read(f"{home}/.ssh/id_rsa"),
            "by descriptor": lambda: os.read(os.open(f"{target.hidden}/secret", os.O_RDONLY), 99),
            "by path of /proc/self": lambda: read(f"/proc/self/root{target.hidden}/secret"),
            "by working folder": lambda: read(f"../../{target.hidden}/secret"),
            "by parent folder": lambda: read("../hidden/secret"),
        }
    )


def list_folders(target: Target) -> None:
    """List a folder that holds a secret as a file name."""
    target.attempt("list", lambda: "\n".join(os.listdir(f"{target.hidden}/open")))
    target.attempt("walk", lambda: "\n".join(n for _, _, names in os.walk("..") for n in names))


def stat_hidden(target: Target) -> None:
    """Ask for the time of a hidden file."""
    target.attempt("stat", lambda: str(os.stat(f"{target.hidden}/secret").st_mtime_ns))


def change_outside(target: Target) -> None:
    """Create, overwrite, truncate, link, rename and remove files that lie open by their modes."""
    folder, precious = f"{target.hidden}/open", f"{target.hidden}/open/precious"
    target.attempt_all(
        {
            "create": lambda: write(f"{folder}/new"),
            "overwrite": lambda: write(precious),
            "truncate": lambda: os.truncate(precious, 0),
            "folder": lambda: os.mkdir(f"{folder}/folder"),
            "symlink": lambda: os.symlink("/", f"{folder}/link"),
            "fifo": lambda: os.mkfifo(f"{folder}/fifo"),
            "rename": lambda: os.rename(precious, f"{folder}/mine"),
            "move away": lambda: os.rename(precious, "moved"),
            "move in": lambda: _move_in(f"{folder}/own"),
            "remove": lambda: os.unlink(precious),
            "remove secret": lambda: os.unlink(f"{target.hidden}/secret"),
        }
    )


def _move_in(path: str) -> None:
    write("own")
    os.rename("own", path)


def change_attributes(target: Target) -> None:
    """Change modes, times, owners and attributes, which Landlock does not guard."""
    path = f"{target.hidden}/secret"
    public = f"{target.allowed}/public"
    name, value = b"user.hotloop\0", b"x"
    buffers = [kernel.buffer(public.encode() + b"\0"), kernel.buffer(name), kernel.buffer(value)]
    address = [kernel.address_of(b) for b in buffers]
    for where in (path, public):
        target.attempt_all(
            {
                f"chmod {os.path.basename(where)}": partial(os.chmod, where, 0o600),
                f"utime {os.path.basename(where)}": partial(os.utime, where, (1, 1)),
                f"chown {os.path.basename(where)}": partial(os.chown, where, os.getuid(), -1),
            }
        )
    target.attempt("setxattr", lambda: kernel.syscall(_SETXATTR, *address, 1, 0))
    target.attempt("chmod of an open file", lambda: os.fchmod(os.open(public, os.O_RDONLY), 0o600))


def follow_link(target: Target) -> None:
    """Make a link to a secret in the work folder and read through it."""
    os.symlink(f"{target.hidden}/secret", "result.json")
    os.symlink(target.hidden, "folder")
    target.attempt("link", lambda: read("result.json"))
    target.attempt("link to a folder", lambda: read("folder/secret"))
    target.attempt("write through a link", lambda: write("folder/open/new"))


def hard_link(target: Target) -> None:
    """Give a secret a second name in the work folder."""
    for name in ("secret", "open/precious"):
        path = f"{target.hidden}/{name}"
        target.attempt(f"link {name}", partial(_link_and_read, path))
    public = f"{target.allowed}/public"
    target.attempt("link out", lambda: os.link(public, f"{target.hidden}/open/public"))


def _link_and_read(path: str) -> bytes:
    os.link(path, "mine")
    return read("mine")


def make_nodes(target: Target) -> None:
    """Make device nodes, in the work folder and outside."""
    null, kmsg = os.makedev(1, 3), os.makedev(1, 11)
    target.attempt_all(
        {
            "null": lambda: os.mknod("null", stat.S_IFCHR | 0o666, null),
            "kernel log": lambda: os.mknod("kmsg", stat.S_IFCHR | 0o666, kmsg),
            "outside": lambda: os.mkfifo(f"{target.hidden}/open/fifo"),
        }
    )
    for name in ("null", "kmsg"):
        if os.path.exists(name):
            say(read(f"{target.hidden}/secret"))  # only where nothing is refused at all


def odd_paths(target: Target) -> None:
    """Use path names that have confused filters: long, not UTF-8, with dots and slashes."""
    secret = f"{target.hidden}/secret"
    dots = f"{target.allowed}/" + "../" * 30 + secret
    slashes = "/" * 3000 + secret
    target.attempt_all(
        {
            "dots": lambda: read(dots),
            "slashes": lambda: read(slashes),
            "too long": lambda: read("/" + "a" * 5000),
            "not UTF-8": lambda: write("\udcff\n\x1b]52;c;x\x07"),
            "null": lambda: kernel.syscall(2, 0, 0, 0),
            "folder descriptor": lambda: os.read(
                os.open("hidden/secret", os.O_RDONLY, dir_fd=os.open("..", os.O_PATH)), 99
            ),
        }
    )


def read_as_owner(target: Target) -> None:
    """Read a file of root on the allow-list."""
    target.attempt("root's", lambda: read(f"{target.allowed}/root.key"))
    target.attempt("shadow", lambda: read("/etc/shadow"))


def read_of_others(target: Target) -> None:
    """Read a file of another user on the allow-list, as a capability would allow."""
    target.attempt("other's", lambda: read(f"{target.allowed}/other.key"))
    target.attempt("public", lambda: read(f"{target.allowed}/public"))


def poison(target: Target) -> None:
    """Change what the next candidate would import from a folder that is only to be read."""
    folder = f"{target.allowed}/cache"
    target.attempt_all(
        {
            "module": lambda: write(f"{folder}/module.py", b"import os"),
            "cache": lambda: os.mkdir(f"{folder}/__pycache__"),
            "start file": lambda: write(f"{folder}/poison.pth"),
            "remove": lambda: os.unlink(f"{folder}/module.py"),
        }
    )


CASES = (
    Case(1, "read private files", (read_home,)),
    Case(2, "list hidden folders", (list_folders,)),
    Case(2, "stat of hidden files", (stat_hidden,), tiers=("T2",)),
    Case(5, "change files outside", (change_outside,)),
    Case(6, "change attributes of files", (change_attributes,)),
    Case(7, "link to a secret", (follow_link,)),
    Case(8, "second name for a secret", (hard_link,)),
    Case(9, "device nodes and pipes", (make_nodes,)),
    Case(11, "odd path names", (odd_paths,)),
    Case(37, "poison a folder of packages", (poison,)),
    Case(1, "read files of root on the allow-list", (read_as_owner,), needs="dropped_user"),
    Case(1, "read files of other users on the allow-list", (read_of_others,), needs="root"),
)
