#!/usr/bin/env python3
"""What nvcc made of the CUDA kernels: no contraction, loads of 16 bytes, no spills.

    ptx_test.py FOLDER            the folder cuda/ of a build, where cmake/cuda.cmake leaves PTX and ptxas's remarks
    ptx_test.py FOLDER PTXAS      also compiles the PTX for chips that run the code of others (about 20 s)

Ends with 77 and the reason where there is no toolkit, or the kernels were not built for all chips.
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

TARGETS = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
COMPILED_HERE = {"sm_86": "sm_80", "sm_89": "sm_80"}  # from the PTX of which target
MULTIPROCESSORS = {"sm_80": 108, "sm_90": 132}  # of an A100 and an H100
# The vendor's erff, expf and tanhf are made of fma. Nothing else may be; exp and log in double are fma.rn.f64.
MAY_FMA_F32 = ("GeluFunction", "GeluGradient", "SiluFunction", "SiluGradient", "SigmoidFunction", "TanhFunction",
               "Attention")
MAY_FMA_F64 = ("SoftmaxLoss",)
# Kernels that move whole tensors, and how many 16-byte loads and stores they have at least, in bf16.
VECTORS = {
    "InputImages<Bf16>": (0, 1), "GatherImages<Bf16>": (0, 1), "BatchNormSums<Bf16>": (1, 0), "BatchNormApply<Bf16>": (2, 1),
    "BatchNormGradientSums<Bf16, (ReluMask)1, true, true>": (4, 1), "BatchNormGradientSums<Bf16, (ReluMask)2, false, false>": (2, 0),
    "BatchNormGradientApply<Bf16, (ReluMask)0>": (2, 1), "BatchNormGradientApply<Bf16, (ReluMask)2>": (2, 1), "BiasAdd<Bf16>": (1, 1),
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


def remarks_of(text):
    """What `ptxas -v` said: {(mangled kernel, target): (registers, bytes of stack and spills)}."""
    found = re.findall(r"Compiling entry function '(\w+)' for '(\w+)'\n.*?\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, "
                       r"(\d+) bytes spill loads\n.*?Used (\d+) registers", text)
    return {(mangled, target): (int(registers), list(map(int, memory))) for mangled, target, *memory, registers in found}


class Kernels(unittest.TestCase):
    folder = Path()
    ptxas = None

    @classmethod
    def setUpClass(cls):
        cls.ptx = {re.search(r"\.target (sm_\d+)", path.read_text())[1]: path for path in cls.folder.glob("device*.ptx")}
        bodies = dict(re.findall(r"\.entry (\w+)\((.*?)\n\}\n", cls.ptx["sm_90"].read_text(), re.S))
        cls.names = readable(list(bodies))
        cls.kernels = {cls.names[mangled]: body for mangled, body in bodies.items()}
        cls.remarks = remarks_of((cls.folder / "device.ptxas.txt").read_text())

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

    def expect_no_spills(self, remarks, targets):
        for (mangled, target), (_, memory) in remarks.items():
            self.assertEqual(memory, [0, 0, 0], f"{self.names[mangled]} for {target}: stack, spill stores, spill loads")
        for target in targets:
            self.assertEqual(sum(of == target for _, of in remarks), len(self.kernels), target)

    def test_no_kernel_spills(self):
        self.expect_no_spills(self.remarks, TARGETS)

    def test_no_kernel_spills_where_others_code_runs(self):
        if self.ptxas is None:
            self.skipTest("long: give ptxas")
        for target, source in COMPILED_HERE.items():
            done = subprocess.run([self.ptxas, "-v", f"-arch={target}", "-o", "/dev/null", self.ptx[source]], capture_output=True,
                                  text=True, check=True)
            self.expect_no_spills(remarks_of(done.stdout + done.stderr), [target])

    def test_blocks_that_write_sums_run_in_one_wave(self):
        sums = {"BatchNormSums": 0, "BatchNormGradientSums": 0, "BiasGradientSums": 0}
        for (mangled, target), (registers, _) in self.remarks.items():
            kernel = self.names[mangled].split("<")[0]
            if kernel not in sums or target not in MULTIPROCESSORS:
                continue
            sums[kernel] += 1
            at_once = 65536 // (256 * ((registers + 7) // 8 * 8)) * MULTIPROCESSORS[target]
            said = f"{self.names[mangled]} for {target}, {registers} registers"
            self.assertGreaterEqual(at_once, 256, said)
        self.assertTrue(all(count >= 4 for count in sums.values()), sums)  # float and bf16, both targets


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    Kernels.ptxas = sys.argv.pop() if len(sys.argv) == 3 else None
    Kernels.folder = Path(sys.argv.pop())
    remarks_file = Kernels.folder / "device.ptxas.txt"
    if not remarks_file.is_file() or any(f"for '{target}'" not in remarks_file.read_text() for target in TARGETS):
        print("skipped: this build has no kernels for all chips (no CUDA toolkit, PACELINE_GPUS=here, or paceline_cuda_kernels was not built)")
        sys.exit(77)
    unittest.main()
