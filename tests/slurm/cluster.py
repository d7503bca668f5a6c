"""A Slurm of one node on loopback, in one folder, for as long as a test or a command runs.

``python tests/slurm/cluster.py COMMAND...`` runs a command beside it. Needs Debian's slurm-wlm and munge, no root and
no accounting; jobs over their memory are killed by polling, since control groups are not there everywhere.
"""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "sinfo")
READY_SECONDS = 60
CONFIG = """
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2
MinJobAge=3600
KillWait=5
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} Gres=gpu:{gpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
# The executor takes all SLURM_ variables from a job's steps; they then read /etc/slurm, where this cluster is not.
SRUN = '#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {srun} "$@"\n'
# Files that are no GPUs: jobs may ask for one, and find none.
GPUS = ("null", "zero", "full")


@dataclass(frozen=True)
class Asked:
    """A job as Slurm knows it: its id, rule and wildcards as a comment, state, memory, extras such as a GPU."""

    jobid: str
    comment: str
    state: str
    memory: str
    extras: str


@dataclass(frozen=True)
class Cluster:
    """A running Slurm and the folder that holds all of it."""

    folder: Path

    def environment(self) -> dict[str, str]:
        """What lets a command find this cluster, and its own ``srun`` first."""
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}

    def command(self, *words: str) -> str:
        done = subprocess.run(words, env=os.environ | self.environment(), capture_output=True, text=True, timeout=30)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def jobs(self) -> list[Asked]:
        """Every job since the start, those that ended among them, in the order of their submission."""
        columns = "JobArrayID:|,Comment:|,State:|,MinMemory:|,tres-per-job:|"
        lines = self.command("squeue", "--array", "--noheader", "--states=all", "--sort=i", f"--Format={columns}")
        return [Asked(*line.split("|")[:5]) for line in lines.splitlines()]


def missing() -> list[str]:
    """The programs that are not here."""
    return [name for name in NEEDED if shutil.which(name, path=_path()) is None]


def _path() -> str:
    """Daemons lie where the search path of an ordinary user does not look."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def _free_ports(n: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def _daemon(words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as stream:
        process = subprocess.Popen(words, stdout=stream, stderr=stream, env=os.environ | {"PATH": _path()})
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(cluster: Cluster, daemons: list[subprocess.Popen[bytes]]) -> None:
    """Until the node is idle; RuntimeError with the end of every log if a daemon ends or time runs out."""
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until and all(daemon.poll() is None for daemon in daemons):
        try:
            if cluster.command("sinfo", "--noheader", "--format=%T").strip() == "idle":
                return
        except (RuntimeError, subprocess.TimeoutExpired):
            pass
        time.sleep(0.2)
    logs = [log for log in sorted(cluster.folder.glob("*.log")) if log.stat().st_size]
    ends = [f"{log.name}: {line}" for log in logs for line in log.read_text(errors="replace").splitlines()[-8:]]
    raise RuntimeError("\n".join(["Slurm did not start", *ends]))


@contextmanager
def running(*, cpus: int, memory: int) -> Iterator[Cluster]:
    """A cluster of one node with ``cpus`` processors and ``memory`` MB; all its files go when it stops."""
    # Not below pytest's folders: the path of a socket may have 107 characters.
    with tempfile.TemporaryDirectory(prefix="slurm-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("state", "spool", "bin"):
            (folder / part).mkdir()
        step = folder / "bin" / "srun"
        step.write_text(SRUN.format(folder=folder, srun=shutil.which("srun")))
        step.chmod(0o755)
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        known = {"host": socket.gethostname().partition(".")[0], "user": pwd.getpwuid(os.getuid()).pw_name}
        sized = {"cpus": cpus, "memory": memory, "ports": _free_ports(2), "folder": folder, "gpus": len(GPUS)}
        config = folder / "slurm.conf"
        config.write_text(CONFIG.format(**known, **sized))
        (folder / "gres.conf").write_text("".join(f"Name=gpu File=/dev/{name}\n" for name in GPUS))
        of_munge = [f"--{what}={folder}/munge.{end}" for what, end in _MUNGE.items()]
        stack.enter_context(_daemon(["munged", "--foreground", "--force", *of_munge], folder / "munged.log"))
        while not (folder / "munge.socket").exists():
            time.sleep(0.05)
        daemons = [
            stack.enter_context(_daemon([name, "-D", "-f", str(config)], folder / f"{name}.out.log"))
            for name in ("slurmctld", "slurmd")
        ]
        found = Cluster(folder)
        _wait(found, daemons)
        yield found


_MUNGE = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}


def main(words: list[str]) -> int:
    """Run a command, a shell if none is named, beside a cluster as large as this machine."""
    if absent := missing():
        print(f"not here: {', '.join(absent)}; on Debian: apt-get install slurm-wlm munge", file=sys.stderr)
        return 1
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    with running(cpus=os.cpu_count() or 1, memory=pages * size // 2**20) as cluster:
        command = words or [os.environ.get("SHELL", "sh")]
        return subprocess.run(command, env=os.environ | cluster.environment()).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
