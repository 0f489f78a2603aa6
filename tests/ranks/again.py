#!/usr/bin/env python3
"""One command given again and again, and killed again and again, until it ends by itself.

    again.py --program build/release/paceline [--kills 200] [--seed 1] [--ways threads,launch,gloo]

What a job script does, `until paceline train ... --resume auto; do :; done`, while kill -9 comes at random moments: in the
first epoch, in writes, in the evaluation, while it starts. In each way the command ends with 0 and with the undisturbed
run's weights, and no kill costs more than the steps since the last checkpoint that was whole.
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from launching import MODEL, check, children, places, runs

EVERY = 40  # steps between two checkpoints
STEPS = 1000
OPTIONS = ["--data", "synthetic,train=480,test=400", "--precision", "fp32", "--threads", "1", "--global-batch", "48",
           "--lr", "0.05", "--no-pin", "--steps", str(STEPS), "--checkpoint-every", f"{EVERY}steps", "--resume", "auto"]


def tree(process):
    """`process` and all that descends from it."""
    found = [process]
    for child in children(process):
        found += tree(child)
    return found


class Run:
    """One start of the command: one process or several, which the loop waits for."""

    def __init__(self, words, environments, log):
        self.jobs = [subprocess.Popen([str(word) for word in words], stdout=log, stderr=log, env=environment)
                     for environment in environments]

    def is_over(self):
        return all(job.poll() is not None for job in self.jobs)

    def codes(self):
        return [job.returncode for job in self.jobs]

    def processes(self):
        return [one for job in self.jobs if job.poll() is None for one in tree(job.pid)]

    def wait(self, seconds):
        until = time.monotonic() + seconds
        while not self.is_over():
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True


def updates_done(out):
    try:
        return int(re.search(r"\d+", (out / "updates-done").read_text()).group())
    except (OSError, AttributeError):
        return 0


def weights(out):
    checkpoints = [one for one in out.glob("checkpoint-*.safetensors")]
    check(checkpoints, f"no checkpoint in {out}")
    return sorted(checkpoints)[-1].read_bytes()


def disturbed(args, way, folder, chance, kills, expected):
    """Trainings one after the other until `kills` have hit. Returns what they came to."""
    launcher = {"threads": ["train", "--workers", "2"], "launch": ["launch", "-n", "2", "--", "train"],
                # A process that is killed before it has met the other costs that one the whole time of --meet-within.
                "gloo": ["train", "--deadline", "6", "--meet-within", "30"]}[way]
    hit = most_lost = trainings = starts = refused = 0
    while hit < kills:
        trainings += 1
        out = folder / f"{way}-{trainings}"
        log_path = folder / f"{way}-{trainings}.log"
        fruitless = 0
        while True:
            done = updates_done(out)
            with open(log_path, "w+") as log:
                environments = places(2) if way == "gloo" else [dict(os.environ)]
                run = Run([args.program, *launcher, "--model", folder / "model.toml", *OPTIONS, "--out", out], environments, log)
                starts += 1
                moment = time.monotonic() + (chance.uniform(0, args.longest) if hit < kills else 600)
                while time.monotonic() < moment and not run.is_over():
                    time.sleep(0.002)
                victims = run.processes()
                if victims and hit < kills:
                    victim = chance.choice(victims)
                    try:
                        os.kill(victim, signal.SIGKILL)
                        hit += 1
                    except ProcessLookupError:
                        pass
                check(run.wait(90), f"{way}: not ended 90 s after a kill; {log_path.read_text()}")
                # A supervisor that was killed leaves its ranks; the loop's next start is refused while they write.
                said = log_path.read_text()
            resumed = re.search(r"update (\d+) of", said)
            if resumed:
                most_lost = max(most_lost, done - int(resumed.group(1)))
            if all(code == 0 for code in run.codes()):
                break
            refused += "another run is writing to it" in said
            fruitless = 0 if updates_done(out) > done else fruitless + 1
            check(fruitless < 100, f"{way}: 100 starts without an update; the last said {said}")
            # Killed on its way out, after the run: the other has ended with 0, which it may say only of a whole run.
            if 0 in run.codes():
                check(weights(out) == expected, f"{way}: codes {run.codes()}, but the run is not over: {said}")
            check(all(code in (0, -9, 137, 2, 3, 5, 143, 70) for code in run.codes()) or "paceline:" in said,
                  f"{way}: codes {run.codes()} without a word: {said}")
        check(weights(out) == expected, f"{way}: other weights than the undisturbed run's after {hit} kills")
        check(not list(out.glob("*.partial*")), f"{way}: parts of files were left: {list(out.iterdir())}")
        shutil.rmtree(out)
    return hit, trainings, starts, refused, most_lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", default="threads,launch,gloo")
    parser.add_argument("--longest", type=float, default=2.5, help="seconds until a kill comes at the latest")
    args = parser.parse_args()
    ways = args.ways.split(",")
    if "launch" in ways and (not shutil.which("mpirun") or not (args.program.parent / "paceline_mpi.so").exists()):
        ways.remove("launch")
        print("launch is left out: no mpirun, or the program was built without MPI")
    if "gloo" in ways and not (args.program.parent / "paceline_gloo.so").exists():
        ways.remove("gloo")
        print("gloo is left out: the program was built without it")
    chance = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.toml").write_text(MODEL)
        whole = folder / "whole"
        begin = time.monotonic()
        subprocess.run([str(word) for word in [args.program, "train", "--workers", "2", "--model", folder / "model.toml", *OPTIONS,
                                               "--out", whole]], check=True, stdout=subprocess.DEVNULL)
        print(f"undisturbed: {time.monotonic() - begin:.1f} s for {STEPS} updates")
        expected = weights(whole)
        worst = 0
        for number, way in enumerate(ways):
            kills = args.kills * (number + 1) // len(ways) - args.kills * number // len(ways)
            begin = time.monotonic()
            hit, trainings, starts, refused, lost = disturbed(args, way, folder, chance, kills, expected)
            worst = max(worst, lost)
            print(f"{way}: {hit} kills in {trainings} trainings of {starts} starts ({refused} refused while orphans wrote), all with the "
                  f"undisturbed weights; most updates lost to one kill: {lost} (checkpoints every {EVERY}); "
                  f"{time.monotonic() - begin:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
