#!/usr/bin/env python3
"""What a person sees of a study while it runs: under a terminal of some widths, and in a pipe.

    tests/cli/progress_test.py PROGRAM

Kept lines are counted, no line may be wider than the terminal (it would wrap), and no escape code may stand in a pipe.
Ends with 1 and a sentence for what is wrong.
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
CELLS = ["--model", "resnet8-cifar", "--data", "synthetic,train=64,test=16", "--batches", "2,4,8", "--repeats", "3",
         "--mode", "both", "--workers", "1,2", "--threads", "1", "--no-with-converge"]


def check(holds, sentence):
    if not holds:
        sys.exit(f"progress_test: {sentence}")


def on_terminal(words, columns, folder, code=0):
    """Everything that the program, which ends with `code`, writes to a terminal of so many columns."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(words, stdin=child, stdout=child, stderr=child, cwd=folder)
    os.close(child)
    text = b""
    while True:
        if not select.select([parent], [], [], 120)[0]:
            process.kill()
            sys.exit("progress_test: nothing was written for two minutes")
        try:
            part = os.read(parent, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(parent)
    check(process.wait() == code, f"exit {process.returncode}\n{text.decode(errors='replace')}")
    return text.decode()


def study(program, columns):
    with tempfile.TemporaryDirectory() as folder:
        text = on_terminal([program, "study", *CELLS, "--out", "o"], columns, folder)
    # What was drawn in place: each ends where the line is erased.
    bars = [part for part in re.split(r"[\r\n]|\x1b\[K", text) if "━" in part or "─" in part]
    plain = [line.split("\r")[-1] for line in ESCAPE.sub("", text).replace("\r\n", "\n").split("\n")]
    # The report begins with its title, after an empty line.
    end = next(i for i, line in enumerate(plain) if i > 0 and not line.strip())
    return bars, plain[:end]


def main(program):
    program = os.path.abspath(program)
    for columns in (60, 100):
        bars, kept = study(program, columns)
        check(bars, f"no bar was drawn on a terminal of {columns} columns")
        widest = max(len(ESCAPE.sub("", bar)) for bar in bars)
        check(widest < columns, f"a bar of {widest} columns wraps on a terminal of {columns}")
        too_wide = [line for line in kept if len(line) > columns and " " in line.strip()]
        check(not too_wide, f"lines wrap at {columns} columns: {too_wide}")
        parts = [line.split()[0] for line in kept if "✓" in line]
        check(parts[:2] == ["scale", "comm"], f"no line a part, in order: {kept}")
        check(len(kept) <= 12, f"{len(kept)} lines are kept of a study's cells:\n" + "\n".join(kept))
        check(any(" < " in bar for bar in bars), "no bar has an estimate")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, "study", *CELLS, "--out", "o"], cwd=folder, capture_output=True, text=True)
    check(done.returncode == 0, f"exit {done.returncode}\n{done.stderr}")
    said = done.stdout + done.stderr
    check("\x1b" not in said and "\r" not in said, "an escape code stands in a pipe")
    # Three of them are the scaling's one worker too, which are run there.
    check("  scale     ✓ 21 cells" in said and "0 cells" not in said, f"no line of the scaling in a pipe:\n{said[:2000]}")
    with tempfile.TemporaryDirectory() as folder:
        words = [program, "train", "--model", "resnet8-cifar", "--data", "synthetic,train=256,test=16", "--global-batch", "8",
                 "--epochs", "3", "--threads", "1", "--out", "t"]
        text = on_terminal(words, 100, folder)
    check("images/s" in text and "loss" in text and "/96 steps" in text, f"no bar of a training:\n{text}")
    lines = [line for line in ESCAPE.sub("", text).replace("\r\n", "\n").split("\n") if "epoch " in line]
    check(len(lines) == 3, f"not a line an epoch: {lines}")
    print("progress_test: bars do not wrap, a line a part, no escape code in a pipe")


if __name__ == "__main__":
    main(sys.argv[1])
