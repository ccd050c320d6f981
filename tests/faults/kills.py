"""Random kills of real runs: nothing committed is lost, the bits are those of an undisturbed run, nothing is left behind.

Each run is started, disturbed at random times (a worker or the parent; KILL, TERM, HUP, INT, STOP), resumed when it ended
too early, and compared with the same run that nobody touched. `python tests/faults/kills.py --kills 200`
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
MARK = "ESKER_CAMPAIGN"
SMALL = ["--hidden", "8,8", "--center-episodes", "1", "--checkpoint-every", "3", "--preset", "none"]
HYBRID = ["--batch-size", "8", "--initial-steps", "40", "--checkpoint-every", "1"]
RAY = ["--engine", "ray"]
ASYNCHRONOUS = [*HYBRID, "--results-per-generation", "3", "--critic-chunk", "20", "--deterministic"]
KINDS: dict[str, tuple[int, list[str]]] = {  # generations, and the options beside SMALL
    "es": (60, ["--population", "8", "--noise", "counter"]),
    "pgpe": (60, ["--algo", "pgpe", "--population", "8"]),
    "es on a device": (30, ["--algo", "es", "--population", "8", "--device", "cpu", "--world", "cpu"]),
    "td3": (20, [*HYBRID, "--generation-steps", "60"]),
    "cem-rl": (15, [*HYBRID, "--population", "4", "--rl-population", "2"]),
    "p-cem-rl": (15, [*HYBRID, "--population", "4", "--rl-population", "2"]),
    "acem-rl": (20, [*ASYNCHRONOUS, "--population", "4"]),
    "one-plus-one": (20, [*ASYNCHRONOUS, "--mean-episodes", "2"]),
    "aes-rl": (20, [*ASYNCHRONOUS, "--mean-episodes", "2", "--mean-update-param", "5.0"]),
    "evolution": (40, []),
    "es on ray": (30, ["--algo", "es", "--population", "8", "--noise", "counter", *RAY]),
}
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGSTOP]
# Ray's own processes outlive a killed Ray: its agents wait 60 s for the GCS to report the end (`report_raylet_error_logs` in
# Ray's sources), and a worker that is still starting sees it only then.
OF_RAY, SECONDS_OF_RAY = ("ray::DashboardAgent", "ray::RuntimeEnvAgent", "ray::IDLE", "/ray/"), 120

MAPPED: set[str] = set()  # shared memory that was seen in use


class Fault(AssertionError):
    """Something that must never happen."""


def command(kind: str, path: Path) -> list[str]:
    """Start a run, or resume it."""
    generations, options = KINDS[kind]
    if kind == "evolution":
        return [sys.executable, str(HERE / "evolve.py"), str(path), str(generations)]
    if (path / "config.toml").exists():
        return [sys.executable, "-m", "esker", "resume", str(path), "--quiet"]
    algo = [*([] if "--algo" in options else ["--algo", kind]), "--workers", "1" if "--deterministic" in options else "2"]
    run = ["--run-dir", str(path), "--generations", str(generations), "--quiet"]
    return [sys.executable, "-m", "esker", "train", "slow_world:Slow", *algo, *SMALL, *options, *run]


def start(kind: str, path: Path) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(HERE.parent.parent), str(HERE.parent), str(HERE)])
    environment = os.environ | {"PYTHONPATH": paths, MARK: str(path)}
    return subprocess.Popen(
        command(kind, path), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=path.parent
    )


def marked(path: Path) -> list[int]:
    """The processes that belong to a run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"{MARK}={path}\0".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def shared_memory(path: Path) -> set[str]:
    """The named shared memory that a run's processes have mapped."""
    found: set[str] = set()
    for pid in marked(path):
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
            found |= {line.split("/dev/shm/")[1].removesuffix(" (deleted)") for line in lines if "/dev/shm/" in line}
    return {name for name in found if not name.startswith("sem.")}


def committed(path: Path) -> int:
    """How far a run is: by its facts, or by its newest snapshot."""
    from esker.runs import checkpoints
    from esker.runs.folder import RunFolder

    folder = RunFolder(path)
    return max(folder.committed(), *checkpoints.generations(folder.checkpoints), 0) if folder.about_file.exists() else 0


def center(path: Path, generation: int) -> bytes:
    from esker.runs import checkpoints

    snapshot = checkpoints.read(path / "checkpoints" / checkpoints.folder_name(generation))
    return snapshot.arrays["center"].tobytes()


def undisturbed(kind: str, place: Path) -> bytes:
    """The parameters that an undisturbed run ends with."""
    path = place / f"calm-{kind}"
    process = start(kind, path)
    errors = process.communicate(timeout=600)[1]
    if process.returncode != 0:
        raise Fault(f"{kind}: an undisturbed run ended with status {process.returncode}: {errors[-500:]}")
    return center(path, KINDS[kind][0])


def disturb(kind: str, path: Path, draw: random.Random, counts: Counter[str], most: int) -> None:
    """Take one run to its end through kills."""
    while True:
        process = start(kind, path)
        before = committed(path)
        while process.poll() is None and counts["kills"] < most:
            _let_it_work(process, path, draw)
            _strike(process, path, draw, counts)
        try:
            errors = process.communicate(timeout=300)[1]
        except subprocess.TimeoutExpired:
            raise Fault(f"{kind}: hangs; {marked(path)}") from None
        _check_end(kind, path, process, errors, before, counts)
        if process.returncode == 0:
            return


def _let_it_work(process: subprocess.Popen[str], path: Path, draw: random.Random) -> None:
    """Wait for a row of the journal and a moment more; one time in five only for some moment, while it starts."""
    before, until = _size(path), time.monotonic() + (draw.uniform(0, 5) if draw.random() < 0.2 else 60)
    while process.poll() is None and _size(path) == before and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(draw.uniform(0, 1))


def _actor(pid: int) -> bool | None:
    """Whether a process is a Ray actor; None where it is one of Ray's own, without which nothing works."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None
    return True if line.startswith(b"ray::") else None if b"/ray/" in line else False


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
    return str(pid)


def _size(path: Path) -> int:
    journal = path / "journal.jsonl"
    return journal.stat().st_size if journal.exists() else 0


def _strike(process: subprocess.Popen[str], path: Path, draw: random.Random, counts: Counter[str]) -> None:
    MAPPED.update(shared_memory(path))
    actors = {pid: _actor(pid) for pid in marked(path) if pid != process.pid}
    workers = [pid for pid, actor in actors.items() if actor is not None]
    number = draw.choice(SIGNALS)
    target, name = (draw.choice(workers), "worker") if workers and draw.random() < 0.5 else (process.pid, "parent")
    if number == signal.SIGSTOP and (name == "parent" or actors[target]):  # nobody else could do what a node's actor does
        return
    if process.poll() is not None:
        return
    try:
        os.kill(target, number)
    except ProcessLookupError:
        return
    counts["kills"] += 1
    counts[f"{name} {number.name}"] += 1


def _check_end(
    kind: str, path: Path, process: subprocess.Popen[str], errors: str, before: int, counts: Counter[str]
) -> None:
    """Nothing is lost and nothing is left behind, however it ended."""
    if "Traceback" in errors and kind != "evolution":
        raise Fault(f"{kind}: a traceback: {errors[-800:]}")
    ended = (0, 130, *(-number for number in SIGNALS), *([int(signal.SIGTERM)] if "ray" in kind else []))  # Ray's own exit
    if process.returncode not in ended and kind != "evolution":
        counts[f"status {process.returncode}"] += 1
        excused = ("3 times in a row", "cannot start", *(("Ray", "ray", "SIGTERM received at") if "ray" in kind else ()))
        if not any(text in errors for text in excused):
            raise Fault(f"{kind}: status {process.returncode}: {errors[-500:]}")
    until = time.monotonic() + 15
    while (left := marked(path)) and time.monotonic() < until:
        for pid in left:  # one that was stopped cannot see that its parent is gone
            _wake(pid, counts)
        time.sleep(0.2)
    _check_left(kind, path, counts)
    if committed(path) < before:
        raise Fault(f"{kind}: {before} generations were committed, and {committed(path)} are left")


def _check_left(kind: str, path: Path, counts: Counter[str]) -> None:
    """Of what was marked nothing is left, now or, of Ray's own, soon."""
    until = time.monotonic() + SECONDS_OF_RAY
    while left := [name for name in map(_command, marked(path)) if name and not name.isdigit()]:
        if not all(any(text in name for text in OF_RAY) for name in left) or time.monotonic() > until:
            raise Fault(f"{kind}: processes are left behind: {left}")
        counts["seconds in which only processes of Ray itself were left"] += 1
        time.sleep(1)


def _wake(pid: int, counts: Counter[str]) -> None:
    from esker.engines.supervisor import is_stopped

    if is_stopped(pid):
        counts["stopped workers that outlived their parent"] += 1
        os.kill(pid, signal.SIGCONT)


def campaign(place: Path, given: argparse.Namespace, counts: Counter[str], failures: list[str]) -> None:
    """Runs of every kind, one after the other, until there were enough kills."""
    draw, calm, number = random.Random(given.seed), dict[str, bytes](), 0
    while counts["kills"] < given.kills:
        kinds = given.only or list(KINDS)
        kind = kinds[number % len(kinds)]
        path, number = place / f"run-{number}", number + 1
        try:
            calm[kind] = calm.get(kind) or undisturbed(kind, place)
            disturb(kind, path, draw, counts, given.kills)
            counts["runs"] += 1
            if center(path, KINDS[kind][0]) != calm[kind]:
                raise Fault(f"{kind}: other bits than those of the undisturbed run")
        except Fault as fault:
            failures.append(f"run {number - 1}: {fault}")
            print("FAULT", failures[-1], flush=True)
            if counts["kills"] == 0:
                return
        print(f"{counts['kills']} kills, {counts['runs']} runs, {len(failures)} faults ({kind})", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=sorted(KINDS), metavar="KIND")
    given = parser.parse_args()
    counts, failures = Counter[str](), list[str]()
    with tempfile.TemporaryDirectory(prefix="esker-kills-") as place:
        os.environ["XDG_STATE_HOME"] = place
        with contextlib.suppress(KeyboardInterrupt):  # what was seen until then is printed
            campaign(Path(place), given, counts, failures)
        left = MAPPED & set(os.listdir("/dev/shm"))
    print("\n".join(f"{count:5}  {name}" for name, count in sorted(counts.items())))
    print(f"left in shared memory: {sorted(left) or 'nothing'}; faults: {len(failures)}")
    return 1 if failures or left else 0


if __name__ == "__main__":
    sys.exit(main())
