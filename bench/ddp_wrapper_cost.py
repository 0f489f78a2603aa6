#!/usr/bin/python3
"""What share/paceline/paceline_ddp.py costs: steps of two processes of PyTorch under it over steps of plain DistributedDataParallel.

    ddp_wrapper_cost.py [--turns 80] [--width 64] [--batch 32]

Both train one network in the same processes, in turns of five steps that change places. Prints a JSON line: the median
ratio of the pairs with its 95 % interval, and the median step. Needs PyTorch.
"""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
from step_vs_torch import median_interval  # noqa: E402

TRAINER = Path(__file__).resolve().parents[1] / "tests/tools/ddp_trainer.py"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=80)
    parser.add_argument("--width", type=int, default=64, help="channels of the network, which make the step long")
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args()
    sizes = {"TURNS": str(options.turns), "WIDTH": str(options.width), "BATCH": str(options.batch)}
    with socket.socket() as one, tempfile.TemporaryDirectory() as folder:
        one.bind(("127.0.0.1", 0))
        words = [str(one.getsockname()[1]), folder]
        one.close()
        ranks = [subprocess.Popen(["/usr/bin/python3", "-W", "ignore", TRAINER, "cost", str(rank), "2", *words], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **sizes}) for rank in range(2)]
        said = [rank.communicate() for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit(said[0][1] + said[1][1])
    wrapped, plain = json.loads(said[0][0])
    ratios = [a / b for a, b in zip(wrapped[2:], plain[2:])]  # the first turns order DDP's buckets
    low, high, _ = median_interval(ratios)
    print(json.dumps({"ratio": round(statistics.median(ratios), 4), "low": round(low, 4), "high": round(high, 4), "pairs": len(ratios),
                      "added_ms": round(statistics.median((a - b) * 1e3 for a, b in zip(wrapped[2:], plain[2:])), 3), "step_ms": round(statistics.median(plain) * 1e3, 2)}))


if __name__ == "__main__":
    main()
