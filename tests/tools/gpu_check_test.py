#!/usr/bin/env python3
"""tools/gpu_check with a made-up program in place of paceline: what it finds wrong, and that no part can hold up the rest."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "gpu_check"

# A paceline whose training writes a record and two checkpoints; BITS are their contents, a line of Python.
PROGRAM = """#!{python}
import json, os, pathlib, sys, time
if sys.argv[1] == "doctor":
    print("GPU 0: made up")
    sys.exit(0)
if "200000" in sys.argv:
    print({refusal!r})
    sys.exit({refusal_code})
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir(parents=True)
for name in ("1", "2"):
    (out / (name + ".safetensors")).write_bytes(({bits}))
    time.sleep(0.01)
record = {{"schema": "paceline-record-1", "memory": {{"plan_bytes": 1}}, "window": {{"samples": 10, "wall_s": 2.0}},
          "ranks": [{{"wall_s": 2.0, "phases_s": {{"forward": {forward_s}}}}}], "epochs": [{{"test_accuracy": 0.99, "seconds": 1}}]}}
(out / "record.json").write_text(json.dumps(record))
"""


def check(only, bits="b'same'", forward_s=2.0, refusal="memory: the plan is 9 GB and the device has 8 GB", refusal_code=4):
    """Exit code, record and output of the tool over a made-up program."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "paceline"
        program.write_text(PROGRAM.format(python=sys.executable, bits=bits, forward_s=forward_s, refusal=refusal,
                                          refusal_code=refusal_code))
        program.chmod(0o755)
        out = Path(folder) / "check.json"
        done = subprocess.run([sys.executable, str(TOOL), "--programs", folder, "--out", str(out), "--quick", "--only", *only],
                              capture_output=True, text=True)
        return done.returncode, json.loads(out.read_text()), done.stdout + done.stderr


class GpuCheck(unittest.TestCase):
    def test_all_is_well(self):
        code, record, text = check(["start", "repeat", "workers", "resume", "memory", "too_large", "speed"])
        self.assertEqual(code, 0, text)
        self.assertEqual([part["outcome"] for part in record["parts"]], ["passed"] * 7, text)
        self.assertIn("7 passed, 0 failed, 0 skipped", text)
        self.assertEqual(record["parts"][-1]["figures"]["bf16 16"]["images_per_s"], 5)

    def test_other_bits_are_found(self):
        code, record, text = check(["repeat", "workers"], bits="os.urandom(8)")
        self.assertEqual(code, 1, text)
        self.assertEqual([part["outcome"] for part in record["parts"]], ["failed", "failed"])
        self.assertIn("checkpoints workers-1 and workers-2 differ", text)

    def test_a_ledger_that_does_not_close_is_found(self):
        code, record, text = check(["speed"], forward_s=1.9)
        self.assertEqual(code, 1, text)
        self.assertIn("the ledger holds 0.9500 of the wall time", record["parts"][0]["reason"])

    def test_a_large_batch_must_be_refused_with_both_sizes(self):
        self.assertIn("ended with 0, not 4", check(["too_large"], refusal_code=0)[2])
        self.assertIn("names no two sizes", check(["too_large"], refusal="no memory")[2])

    def test_a_part_that_cannot_run_is_skipped_with_the_reason(self):
        code, record, text = check(["mnist", "engine"])
        self.assertEqual(code, 0, text)
        self.assertIn("no MNIST files", text)
        self.assertIn("test_engine is not in", text)

    def test_without_a_program_there_is_nothing_to_check(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, str(TOOL), "--programs", folder], capture_output=True, text=True, cwd=folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no program", done.stderr)

    def test_limits_of_the_parts_are_within_eight_minutes(self):
        text = TOOL.read_text()
        namespace = {"__file__": str(TOOL), "__name__": "gpu_check"}
        exec(compile(text, str(TOOL), "exec"), namespace)  # a script without .py has no import
        self.assertLessEqual(sum(limit for _, limit in namespace["PARTS"]), namespace["TOTAL_S"])

    def test_a_part_that_hangs_is_ended_with_all_that_it_started(self):
        namespace = {"__file__": str(TOOL), "__name__": "gpu_check"}
        exec(compile(TOOL.read_text(), str(TOOL), "exec"), namespace)
        with tempfile.TemporaryDirectory() as folder:
            hanging = Path(folder) / "paceline"
            hanging.write_text("#!/bin/sh\nsleep 100 & echo waiting\nwait\n")
            hanging.chmod(0o755)

            class Arguments:
                device, quick, programs, mnist = "cuda", True, folder, ""

            row = namespace["run_part"](namespace["Check"](Arguments, Path(folder)), namespace["start"], 1)
        self.assertEqual(row["outcome"], "failed")
        self.assertIn("did not end in time; its last words: waiting", row["reason"])
        self.assertLess(row["seconds"], 60)  # and not 100


if __name__ == "__main__":
    unittest.main()
