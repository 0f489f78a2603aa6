#!/usr/bin/env python3
"""How fair the estimate of a study's time is: what it says at a quarter of the study, against what came.

    bench/remaining_time.py PROGRAM [-- STUDY OPTIONS ..]

Runs `PROGRAM study --quick` (or with the options given instead of --quick) in a pipe, where it writes a line each tenth, and
prints for each of them how many seconds it said were left, how many there were, and the ratio. No bound is asserted: other
programs change both.
"""

import re
import subprocess
import sys
import tempfile
import time

LINE = re.compile(r"^  \w+ +\S+/\S+ .* (\d+) %   ([\d:]+) < ([\d:]+)$")


def seconds(clock):
    total = 0
    for part in clock.split(":"):
        total = 60 * total + int(part)
    return total


def main(program, options):
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        said = []
        words = [program, "study", *options, "--out", folder + "/study"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            ended = began
            for line in process.stdout:
                found = LINE.match(line.rstrip("\n"))
                if found:
                    said.append((time.monotonic() - began, seconds(found[3])))
                if re.match(r"^  \w+ +[✓✗]", line):  # of a part: the last one is where the cells end
                    ended = time.monotonic()
    whole = ended - began
    print(f"the cells took {whole:.0f} s")
    for at, left in said:
        truth = whole - at
        print(f"at {at:6.1f} s ({100 * at / whole:3.0f} %): {left:4} s left were said, {truth:6.1f} s came, ratio {left / max(truth, 1):.2f}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[3:] if len(sys.argv) > 3 else ["--quick"])
