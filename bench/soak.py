#!/usr/bin/env python3
"""Half an hour of training, checkpoints, resumes and reports: what grows that must not.

    bench/soak.py --program build/release/paceline [--minutes 30] [--samples 480000] [--out soak.csv]

Beside one another: a training without end that writes a checkpoint a second; `serve` over all of it, asked for its list, a page
and its metrics every second; a loop of train, resume, report and verify. Once a minute a line: resident memory, open
descriptors and threads of the long training and of serve, bytes on disk. The last lines give each column's median over the second
and the last quarter.
"""

import argparse
import json
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "ranks"))
from launching import MODEL, check  # noqa: E402

SMALL = ["--data", "synthetic,train=96,test=48", "--local-batch", "24", "--threads", "1", "--no-pin"]
# A record and a page have a line for each epoch and grow with it, as they must. So that this does not hide a leak, an epoch has 20,000 steps.
# With `--samples 24000` it has 1,000, which shows what an epoch costs.
LONG = ["--data", "synthetic,train={samples},test=48", "--lr", "0.001", "--epochs", "100000000", "--checkpoint-every", "1s", "--evaluate-every",
        "10", "--out", "long"]
COLUMNS = ["minute", "rounds", "train_rss_kB", "train_descriptors", "train_threads", "serve_rss_kB", "serve_descriptors", "serve_threads",
           "long_run_kB", "loop_kB"]


def figures(process):
    text = Path(f"/proc/{process}/status").read_text()
    return [int(re.search(r"VmRSS:\s+(\d+)", text).group(1)), len(list(Path(f"/proc/{process}/fd").iterdir())),
            int(re.search(r"Threads:\s+(\d+)", text).group(1))]


def kilobytes(folder):
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_blocks // 2
        except OSError:  # a checkpoint that has gone meanwhile
            pass
    return total


def run(words, folder):
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True)
    check(done.returncode == 0, f"{words}: exit {done.returncode}: {done.stdout}{done.stderr}")


def ask_again_and_again(address, over):
    while not over.wait(1):
        for path in ("", "metrics", "run/long"):
            try:
                urllib.request.urlopen(address + path, timeout=10).read()
            except OSError:
                pass  # a page that is not there yet: memory is what is looked at


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--samples", type=int, default=480000, help="in an epoch of the long training; 24 make a step")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    program = args.program.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.toml").write_text(MODEL)
        train = [program, "train", "--model", "model.toml", *SMALL]
        with open(folder / "long.log", "w") as log, open(folder / "serve.log", "w+") as served:
            long = subprocess.Popen([*map(str, train), *(word.format(samples=args.samples) for word in LONG)], cwd=folder, stdout=log, stderr=log)
            serve = subprocess.Popen([str(program), "serve", ".", "--port", "0", "--no-token"], cwd=folder, stdout=served, stderr=served)
            over = threading.Event()
            try:
                time.sleep(2)
                found = re.search(r"http://\S+:\d+/", Path(served.name).read_text())
                check(found, f"serve says no address: {Path(served.name).read_text()}")
                asking = threading.Thread(target=ask_again_and_again, args=(found.group(), over), daemon=True)
                asking.start()
                lines, rounds, begin = [], 0, time.monotonic()
                print(",".join(COLUMNS), flush=True)
                while (minutes := (time.monotonic() - begin) / 60) < args.minutes:
                    out = folder / "short"
                    shutil.rmtree(out, ignore_errors=True)
                    for epochs in (2, 4):
                        run([*train, "--epochs", epochs, "--resume", "auto", "--out", out], folder)
                    run([program, "report", out, "--html", out / "report.html"], folder)
                    run([program, "verify", out], folder)
                    rounds += 1
                    check(long.poll() is None, f"the long training has ended: {Path(log.name).read_text()[-2000:]}")
                    if len(lines) <= minutes:
                        lines.append([round(minutes, 1), rounds, *figures(long.pid), *figures(serve.pid), kilobytes(folder / "long"),
                                      kilobytes(out)])
                        print(",".join(map(str, lines[-1])), flush=True)
            finally:
                over.set()
                long.send_signal(signal.SIGTERM)
                long.wait(timeout=60)
                serve.terminate()
                serve.wait(timeout=60)
        check(long.returncode == 143, f"the long training ended with {long.returncode}")
        run([program, "verify", "long"], folder)
        updates = json.loads((folder / "long" / "record.json").read_text())["window"]["steps"]
        quarter = max(1, len(lines) // 4)
        print(f"{rounds} rounds; the long training came to update {updates}")
        for column, text in list(enumerate(COLUMNS))[2:]:
            early = statistics.median(line[column] for line in lines[quarter:2 * quarter] or lines)
            late = statistics.median(line[column] for line in lines[-quarter:])
            print(f"{text}: {early:.0f} in the second quarter, {late:.0f} in the last")
        if args.out:
            args.out.write_text("\n".join(",".join(map(str, line)) for line in [COLUMNS, *lines]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
