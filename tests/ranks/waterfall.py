#!/usr/bin/env python3
"""Injected causes in real trainings, and where the waterfall of lost efficiency finds them.

    waterfall.py --program build/release/paceline

`scale` with 1 and 2 workers, undisturbed, with a straggler, and over a link whose time is a formula. The injected seconds stand in
their part within 10 % or its interval; the other parts differ from the undisturbed run's by less than 2 points, or their intervals
meet. Slow storage and small batches are injected into made-up records (tests/analysis/steps/waterfall_test.cc): in weak scaling a slow
loader costs one worker as much as each of two.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from launching import check

STEPS, REPEATS = 40, 5
# One bucket, which is posted when the backward pass has ended: its whole transfer is exposed.
COMMON = ["--model", "resnet8-cifar", "--data", "synthetic,train=4096,test=64", "--precision", "fp32", "--threads", "1", "--workers", "1,2",
          "--batches", "32", "--mode", "weak", "--window-steps", str(STEPS), "--repeats", str(REPEATS), "--bucket-mb", "64",
          "--window-seconds", "99", "--measure-again", "0"]
POINTS = 0.02
LATENCY_S, BYTES_PER_S = 0.002, 200e6


def measure(program, folder, name, *more):
    """Parts of the loss of 2 workers: name: (seconds, low, high), and seconds a step."""
    out = folder / name
    done = subprocess.run([str(word) for word in [program, "scale", *COMMON, *more, "--out", out]], capture_output=True, text=True)
    check(done.returncode == 0, f"{name}: exit {done.returncode}: {done.stdout}{done.stderr}")
    subprocess.run([program, "report", out, "--json", out / "report.json"], check=True, capture_output=True)
    document = json.loads((out / "report.json").read_text())
    (table,) = [block for section in document["sections"] for block in section["blocks"] if block.get("id") == "scale-weak-loss"]
    column = {one["key"]: one for one in table["columns"]}
    points, seconds = column["points"], column["time"]["value"]
    step = next(time / point for time, point in zip(seconds, points["value"]) if point)
    parts = {name: (time, low * step, high * step)
             for name, time, low, high in zip(column["part"]["text"], seconds, points["low"], points["high"])}
    return parts, step, out


def own_seconds(out):
    """Seconds of own work a step of a rank of two workers, mean over repeats."""
    records = [json.loads(path.read_text()) for path in (out / "records").glob("*-w2-*.json")]
    own = [sum(rank["own_s"]) / len(rank["own_s"]) for record in records for rank in record["ranks"]]
    return sum(own) / len(own), records[0]["communication"]["gradient_bytes"]


def look(name, parts, step, plain, plain_step, where, injected):
    found = sum(parts.get(part, (0, 0, 0))[0] - plain.get(part, (0, 0, 0))[0] for part in where)
    low = sum(parts.get(part, (0, 0, 0))[1] - plain.get(part, (0, 0, 0))[0] for part in where)
    high = sum(parts.get(part, (0, 0, 0))[2] - plain.get(part, (0, 0, 0))[0] for part in where)
    print(f"{name}: injected {injected * 1e3:.2f} ms a step, found {found * 1e3:.2f} [{low * 1e3:.2f}, {high * 1e3:.2f}] in {' and '.join(where)}")
    check(abs(found - injected) <= 0.1 * injected or low <= injected <= high, f"{name}: {injected} s were injected, and {found} found")
    for part in (set(parts) | set(plain)) - set(where):
        now, before = parts.get(part, (0, 0, 0)), plain.get(part, (0, 0, 0))
        moved = abs(now[0] / step - before[0] / plain_step)
        meet = now[1] <= before[2] and before[1] <= now[2]
        print(f"    {part}: {100 * before[0] / plain_step:.1f} to {100 * now[0] / step:.1f} points")
        check(moved < POINTS or meet, f"{name}: {part} moved by {100 * moved:.1f} points")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    program = parser.parse_args().program.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain, plain_step, out = measure(program, folder, "plain")
        own, gradient_bytes = own_seconds(out)
        slow, slow_step, _ = measure(program, folder, "straggler", "--emulate-straggler", "rank=1,slower=1.3x")
        look("a straggler, 1.3 times", slow, slow_step, plain, plain_step, ["slowest worker", "jitter", "other waiting"], 0.3 * own)
        link = f"latency={LATENCY_S * 1e6:.0f}us,bandwidth={BYTES_PER_S / 1e6:.0f}MB/s"
        far, far_step, _ = measure(program, folder, "link", "--emulate-link", link)
        # A ring of two: 2 (N - 1) hops, 2 (N - 1) / N of the bytes (docs/processes.md).
        look("a link of " + link, far, far_step, plain, plain_step, ["exposed latency", "exposed transfer"],
             2 * LATENCY_S + gradient_bytes / BYTES_PER_S)
    return 0


if __name__ == "__main__":
    sys.exit(main())
