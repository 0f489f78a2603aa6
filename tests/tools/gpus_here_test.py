#!/usr/bin/env python3
"""cmake/gpus_here.cmake beside a made-up nvidia-smi: for which GPUs the CUDA module is built where ./x study builds it."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "cmake" / "gpus_here.cmake"


def gpus_here(nvidia_smi):
    """What the script says beside this nvidia-smi, a line of shell; None: there is none."""
    with tempfile.TemporaryDirectory() as folder:
        if nvidia_smi is not None:
            (Path(folder) / "nvidia-smi").write_text(f"#!/bin/sh\n{nvidia_smi}\n")
            (Path(folder) / "nvidia-smi").chmod(0o755)
        # The real one, where there is one, stays out of sight.
        places = [place for place in os.environ["PATH"].split(":") if not (Path(place) / "nvidia-smi").exists()]
        done = subprocess.run(["cmake", "-DCMAKE_SYSTEM_PROGRAM_PATH=", "-P", SCRIPT], capture_output=True, text=True,
                              env={**os.environ, "PATH": ":".join([folder, *places])})
        return (done.stdout + done.stderr).strip()


@unittest.skipIf(any(Path("/dev").glob("nvidia[0-9]*")), "this machine has a GPU")
class GpusHere(unittest.TestCase):
    def test_each_kind_of_gpu_is_named_once(self):
        self.assertEqual(gpus_here("echo 9.0; echo 9.0; echo 8.6"), "90;86")

    def test_without_a_gpu_there_is_none(self):
        self.assertEqual(gpus_here(None), "none")
        self.assertEqual(gpus_here("echo 'NVIDIA-SMI has failed because it could not communicate with the driver 0.0'; exit 9"), "none")
        self.assertEqual(gpus_here("echo '[N/A]'"), "none")


if __name__ == "__main__":
    unittest.main()
