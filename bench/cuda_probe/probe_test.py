#!/usr/bin/env python3
"""cuda_probe where no GPU can be used: each part says so and ends with 2, and what needs none is found.

    bench/cuda_probe/probe_test.py PROGRAM
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)
NEED_A_GPU = ["device", "copies", "launches", "first", "more", "times", "large", "plans"]


class Probe(unittest.TestCase):
    def probe(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "found.json"
            # Hidden, so that a machine with a GPU tests the same.
            run = subprocess.run([PROGRAM, words[0], str(file), *words[1:]], capture_output=True, text=True, timeout=120,
                                 env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
            return run, json.loads(file.read_text()) if file.exists() else {}

    def test_without_a_gpu_each_part_that_needs_one_ends_with_2_and_the_reason(self):
        for part in NEED_A_GPU:
            run, found = self.probe(part)
            self.assertEqual(run.returncode, 2, f"{part}: {run.stdout}{run.stderr}")
            self.assertIn("--device cuda", found["error"], part)
            self.assertIn(f"cuda_probe: {part}: --device cuda", run.stderr)

    def test_plans_are_made_for_a_described_gpu(self):
        run, found = self.probe("libraries")
        if "cudnn" not in found:
            self.assertEqual(run.returncode, 2)
            self.skipTest(found["error"])
        self.assertEqual(run.returncode, 0, run.stderr)
        plans = found["plans_for_described_h100"]
        self.assertEqual(len(plans), 36)  # 12 convolutions and dense layers, three directions
        for problem, engines in plans.items():
            self.assertEqual(len(engines), 8, problem)
            self.assertEqual(len({plan["engine"] for plan in engines}), 8, problem)

    def test_a_part_whose_time_is_over_says_where_and_ends_with_1(self):
        run, found = self.probe("libraries", "--seconds", "0")
        if "cudnn" not in found:
            self.skipTest(found["error"])
        self.assertEqual(run.returncode, 1)
        self.assertIn("forward", found["cut_off"])

    def test_wrong_command_lines_are_refused(self):
        for words in (["fast", "x.json"], ["libraries"], ["libraries", "x.json", "--limit", "3"]):
            run = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
            self.assertEqual(run.returncode, 64, words)
            self.assertIn("usage: cuda_probe PART FILE.json", run.stderr)


if __name__ == "__main__":
    unittest.main()
