#!/usr/bin/env python3
"""cuda_probe where no GPU can be used: it starts, says so, writes what can be found without one, and ends with 2.

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


class Probe(unittest.TestCase):
    def probe(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "probe.json"
            # Hidden, so that a machine with a GPU tests the same.
            run = subprocess.run([PROGRAM, "--out", str(file), *options], capture_output=True, text=True, timeout=120,
                                 env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
            self.assertEqual(os.listdir(folder), ["probe.json"])
            return run, json.loads(file.read_text())

    def test_without_a_gpu_it_ends_with_2_and_what_could_be_found(self):
        run, found = self.probe("--only", "libraries", "copies")
        self.assertEqual(run.returncode, 2, run.stdout + run.stderr)
        self.assertIn("no usable GPU: --device cuda", run.stdout)
        self.assertEqual(list(found), ["libraries", "device", "copies"])
        self.assertIn("--device cuda", found["device"]["ended"])
        self.assertEqual(found["copies"]["ended"], "not run: there is no usable GPU")
        libraries = found["libraries"]
        if "cudnn" not in libraries:
            self.skipTest(libraries["ended"])
        self.assertEqual(libraries["ended"], "done")
        plans = libraries["plans_for_described_h100"]
        self.assertEqual(len(plans), 36)  # 12 convolutions and dense layers, three directions
        for problem, engines in plans.items():
            self.assertEqual(len(engines), 8, problem)
            self.assertEqual(len({plan["engine"] for plan in engines}), 8, problem)

    def test_a_part_past_its_limit_is_ended_and_the_rest_goes_on(self):
        run, found = self.probe("--only", "libraries", "--limit", "0")
        self.assertEqual(run.returncode, 2, run.stdout + run.stderr)
        self.assertEqual(found["libraries"]["ended"], "killed after 0 s")
        self.assertIn("device", found)

    def test_unknown_options_are_refused(self):
        run = subprocess.run([PROGRAM, "--fast"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 64)
        self.assertIn("usage: cuda_probe", run.stderr)


if __name__ == "__main__":
    unittest.main()
