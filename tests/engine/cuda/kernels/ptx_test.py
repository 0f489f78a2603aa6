#!/usr/bin/env python3
"""What nvcc made of the CUDA kernels: no contraction, loads of 16 bytes, no spills.

    ptx_test.py FOLDER     the folder cuda/ of a build, where cmake/cuda.cmake leaves PTX and ptxas's remarks

Ends with 77 and the reason where there is no toolkit, or the kernels were not built.
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

TARGETS = ("sm_80", "sm_90", "sm_100")
# The vendor's erff, expf and tanhf are made of fma. Nothing else may be; exp and log in double are fma.rn.f64.
MAY_FMA_F32 = ("GeluFunction", "GeluGradient", "SiluFunction", "SiluGradient", "SigmoidFunction", "TanhFunction")
MAY_FMA_F64 = ("SoftmaxLoss",)
# Kernels that move whole tensors, and how many 16-byte loads and stores they have at least, in bf16.
VECTORS = {
    "InputImages<Bf16>": (0, 1), "GatherImages<Bf16>": (0, 1), "BatchNormSums<Bf16>": (1, 0), "BatchNormApply<Bf16>": (2, 1),
    "BatchNormGradientSums<Bf16>": (4, 1), "BatchNormGradientApply<Bf16>": (4, 1), "BiasAdd<Bf16>": (1, 1),
    "BiasGradientSums<Bf16>": (2, 1), "Map1<ReluFunction, Bf16>": (1, 1), "Map2<ReluGradient, Bf16>": (2, 1),
    "Map1<GeluFunction, Bf16>": (1, 1), "Map2<GeluGradient, Bf16>": (2, 1), "Map2<AddFunction, Bf16>": (2, 1),
    "Map2<AddReluFunction, Bf16>": (2, 1), "MaxPoolForward<Bf16>": (1, 2), "MaxPoolBackward<Bf16>": (2, 1),
    "AveragePoolForward<Bf16>": (1, 1), "AveragePoolBackward<Bf16>": (1, 1), "GlobalAveragePoolForward<Bf16>": (1, 1),
    "GlobalAveragePoolBackward<Bf16>": (1, 1), "Dropout<Bf16>": (1, 1), "PackWeights<Bf16>": (0, 1),
    "Map1<SiluFunction, Bf16>": (1, 1), "Map2<HardSwishGradient, Bf16>": (2, 1), "Scale<Bf16>": (2, 1), "ScaleGradient<Bf16>": (2, 1),
    "StochasticDepth<Bf16>": (1, 1), "Update<SgdRule, Bf16>": (3, 3), "Update<AdamRule<true>, Bf16>": (4, 4),
}


def readable(names):
    """Mangled entry: "BatchNormSums<Bf16>"."""
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    found = {}
    for name, line in zip(names, text.splitlines()):
        line = line.replace("paceline::engine::cuda::", "").replace("(anonymous namespace)::", "")
        found[name] = re.sub(r"^void run_kernel<(.*?) ?>\(.*", r"\1", line)
    return found


class Kernels(unittest.TestCase):
    folder = Path()

    @classmethod
    def setUpClass(cls):
        ptx = [path.read_text() for path in sorted(cls.folder.glob("device*.ptx"))]
        ptx = [text for text in ptx if ".target sm_90" in text]
        assert ptx, f"no PTX for sm_90 in {cls.folder}"
        bodies = dict(re.findall(r"\.entry (\w+)\((.*?)\n\}\n", ptx[0], re.S))
        names = readable(list(bodies))
        cls.kernels = {names[mangled]: body for mangled, body in bodies.items()}

    def test_every_kernel_of_the_table_is_there(self):
        table = (Path(__file__).resolve().parents[4] / "src/engine/cuda/kernels/table.h").read_text()
        self.assertGreaterEqual(len(self.kernels), 60)
        for name in ("Dropout<float>", "Dropout<Bf16>", "ArrayAdd"):
            self.assertIn(name, self.kernels)
            self.assertIn(name.split("<")[0], table)

    def test_nothing_is_contracted(self):
        for name, body in self.kernels.items():
            if not any(allowed in name for allowed in MAY_FMA_F32):
                self.assertNotIn("fma.rn.f32", body, name)
            if not any(allowed in name for allowed in MAY_FMA_F64):
                self.assertNotIn("fma.rn.f64", body, name)
            self.assertNotRegex(body, r"\b(mul|add|sub)\.f(32|64)\b", f"{name}: without .rn ptxas may contract it")

    def test_tensors_move_by_16_bytes(self):
        for name, (loads, stores) in VECTORS.items():
            with self.subTest(kernel=name):
                body = self.kernels[name]
                self.assertGreaterEqual(len(re.findall(r"\bld\.global\S*\.v4\.\w32", body)), loads)
                self.assertGreaterEqual(len(re.findall(r"\bst\.global\S*\.v4\.\w32", body)), stores)

    def test_no_kernel_spills(self):
        remarks = (self.folder / "device.ptxas.txt").read_text()
        found = re.findall(r"Compiling entry function '(\w+)' for '(\w+)'\n.*?\n"
                           r"\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", remarks)
        names = readable([mangled for mangled, *_ in found])
        for mangled, target, *numbers in found:
            self.assertEqual(numbers, ["0", "0", "0"], f"{names[mangled]} for {target}: stack, spill stores, spill loads")
        for target in TARGETS:
            self.assertEqual(sum(entry[1] == target for entry in found), len(self.kernels), target)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    Kernels.folder = Path(sys.argv.pop())
    if not (Kernels.folder / "device.ptxas.txt").is_file():
        print("skipped: no kernels for devices in this build (no CUDA toolkit, or paceline_cuda_kernels was not built)")
        sys.exit(77)
    unittest.main()
