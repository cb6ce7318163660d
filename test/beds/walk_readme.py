#!/usr/bin/env python3
"""Runs README.md in its own order on a machine with nothing installed: a bare Debian with a clone of this repository.

    walk_readme.py [--suite bookworm|trixie] [--user] [--tests NAME…] [--keep DIR]

Runs each command of README.md as it stands, one after another: quickstart, test, install, the program, one machine, Slurm. Each step
starts from the state that the earlier steps left, so a step that only passes on a developer's machine fails here. Prints each command,
its seconds, and the output of one that fails. Takes an hour, most of it for scripts/test.sh; --tests runs only those tests there.
Needs root and debootstrap, and the package sources that this machine uses. The exit status is that of the first step that fails.
"""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("RONDA_BARE_ROOTS", "/var/tmp/ronda_bare_roots"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
# This machine's settings and certificates of apt: a mirror behind a proxy needs them.
COPIED = ["etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"]
PROXIES = ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"]


def mirror():
    """The address of the first package source that this machine uses."""
    for path in [*pathlib.Path("/etc/apt/sources.list.d").glob("*.sources"), pathlib.Path("/etc/apt/sources.list")]:
        if path.exists() and (found := re.search(r"^(?:URIs: *|deb +(?:\[.*\] *)?)(\S+)", path.read_text(), re.M)):
            return found[1]
    sys.exit("walk_readme.py: /etc/apt names no package source")


def bare_root(suite):
    """An archive of a minimal Debian, made once."""
    archive = CACHE / f"{suite}.tar"
    if not archive.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            packages = "ca-certificates,git,sudo"
            subprocess.run(["debootstrap", "--variant=minbase", f"--include={packages}", suite, folder, mirror()], check=True,
                           stdout=subprocess.DEVNULL)
            subprocess.run(["tar", "-C", folder, "-cf", f"{archive}.part", "."], check=True)
        os.rename(f"{archive}.part", archive)
    return archive


class Machine:
    """A bare root with a clone, in which commands run."""

    def __init__(self, root, user):
        self.root, self.user = root, user
        self.home = "/home/someone" if user else "/root"
        self.clone = f"{self.home}/ronda_source"
        self.mounts = []

    def prepare(self, suite):
        subprocess.run(["mount", "--bind", self.root, self.root], check=True)  # `unshare --mount` needs / to be a mount
        self.mounts.append(self.root)
        subprocess.run(["tar", "-C", self.root, "-xf", bare_root(suite)], check=True)
        self.root.chmod(0o755)
        for name in COPIED:
            shutil.copy(f"/{name}", self.root / name)
        for settings in pathlib.Path("/etc/apt/apt.conf.d").glob("99*"):
            shutil.copy(settings, self.root / "etc/apt/apt.conf.d")
        for name in ["proc", "sys", "dev"]:
            self.mount("--rbind", f"/{name}", name)
        self.mount("-t", "tmpfs", "tmpfs", "dev/shm")
        if self.user:
            self.run("useradd --create-home --shell /bin/bash someone", as_root=True)
            (self.root / "etc/sudoers.d/someone").write_text("someone ALL=(ALL) NOPASSWD:ALL\n")
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", REPOSITORY, f"{self.root}{self.clone}"], check=True)
        if self.user:
            self.run(f"chown -R someone {self.clone}", as_root=True)

    def mount(self, *arguments):
        *options, name = arguments
        place = self.root / name
        subprocess.run(["mount", *options, place], check=True)
        subprocess.run(["mount", "--make-rslave", place], check=True)
        self.mounts.append(place)

    def leave(self):
        for place in reversed(self.mounts):
            subprocess.run(["umount", "--lazy", "--recursive", place], check=False)

    def run(self, command, folder="/", as_root=False, output=None):
        user = [] if as_root or not self.user else ["--userspec=someone:someone"]
        home = "/root" if as_root else self.home
        environment = {name: os.environ[name] for name in PROXIES if name in os.environ}
        environment |= {"HOME": home, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
        command = f'cd "{folder}" && {command}'
        return subprocess.run(["chroot", *user, self.root, "bash", "-c", command], env=environment, stdin=subprocess.DEVNULL,
                              stdout=output, stderr=output and subprocess.STDOUT).returncode


def steps(readme, clone, tests):
    """(command, folder, needs root) of README.md, in its order."""
    program = "$HOME/program"
    blocks = BLOCK.findall(readme)
    texts = {language: text for language, text in reversed(blocks)}  # the first block of each language
    exports = []
    for text in (text for language, text in blocks if language == "sh"):
        lines = [line.split("    #")[0].rstrip() for line in text.splitlines() if line.strip()]
        if lines[0].startswith("export "):  # holds for all commands behind it
            exports += lines
            continue
        folder = program if "-S ." in text else clone
        if folder == program:
            for name, language in [("main.cpp", "cpp"), ("CMakeLists.txt", "cmake")]:
                yield f"mkdir -p {program} && cat >{program}/{name} <<'END'\n{texts[language]}END", clone, False
        for line in lines:
            if line == "scripts/test.sh" and tests:
                line = " ".join([line, *tests])
            yield " && ".join([*exports, line]), folder, False
    for where, how in re.findall(r"^\| (one process|one machine|Slurm) \| (.*) \|$", readme, re.M):
        command = re.search("`([^`]+)`", how)[1]
        if where == "Slurm":  # a cluster of two nodes that are this machine
            yield "apt-get install -y -qq slurm-wlm munge iproute2 procps >/dev/null", "/", True
            command = command.replace("sbatch ", "test/beds/slurm.sh 2 4 sbatch --wait --output=/tmp/job.out ") + " && cat /tmp/job.out"
        yield " && ".join([*exports, command]), clone, where == "Slurm"


def main():
    parser = argparse.ArgumentParser(description="Walk README.md on a bare Debian.")
    parser.add_argument("--suite", default="bookworm", help="Debian's release (bookworm, trixie)")
    parser.add_argument("--user", action="store_true", help="an ordinary user with sudo instead of root")
    parser.add_argument("--tests", nargs="+", default=[], help="run only these tests in scripts/test.sh")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the root in this folder, which must not exist")
    options = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        print("walk_readme.py: needs root and debootstrap")
        return 77
    with contextlib.ExitStack() as stack:
        if options.keep:
            options.keep.mkdir(parents=True)
            root = options.keep
        else:
            CACHE.mkdir(parents=True, exist_ok=True)
            root = pathlib.Path(tempfile.mkdtemp(dir=CACHE))
            stack.callback(subprocess.run, ["rm", "-rf", "--one-file-system", root])
        machine = Machine(root, options.user)
        stack.callback(machine.leave)
        machine.prepare(options.suite)
        log = stack.enter_context(tempfile.TemporaryFile("w+"))
        for command, folder, as_root in steps((REPOSITORY / "README.md").read_text(), machine.clone, options.tests):
            shown = command.splitlines()[0].split(" && ")[-1]
            print(f"{shown:100}", end="", flush=True)
            log.seek(0)
            log.truncate()
            begin = time.monotonic()
            status = machine.run(command, folder, as_root, log)
            print(f" {time.monotonic() - begin:6.0f} s, status {status}", flush=True)
            if status:
                log.seek(0)
                print("".join(log.readlines()[-60:]))
                return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
