#!/usr/bin/env python3
"""tools/check_instructions on made-up disassemblies: every rule is broken once, and one that keeps them all passes."""

import importlib.machinery
import importlib.util
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_instructions"
loader = importlib.machinery.SourceFileLoader("check_instructions", str(TOOL))
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_instructions", loader))
loader.exec_module(tool)


def listing(objects):
    """Lines as objdump writes them, for {object: instructions with operands}."""
    for name, instructions in objects.items():
        yield f"{name}:     file format elf64-x86-64"
        yield "0000000000000000 <multiply>:"
        for at, instruction in enumerate(instructions):
            yield f"  {at:x}:\t{instruction}"


GOOD = {
    "tiles_amx.cc.o": [f"{word} %tmm0" for word in sorted(tool.TABLE["tiles_amx.cc.o"])] + ["vaddps %zmm1,%zmm2,%zmm3"],
    "tiles_avx512_bf16.cc.o": [f"{word} %zmm1,%zmm2" for word in sorted(tool.TABLE["tiles_avx512_bf16.cc.o"])],
    "avx512_bf16.cc.o": ["vcvtneps2bf16 %zmm1,%ymm2"],
    "avx2.cc.o": ["vaddps %ymm1,%ymm2,%ymm3"],
    "program.cc.o": ["addss  %xmm1,%xmm0", "ret"],
}


def breaches(changes):
    return list(tool.breaches(*tool.scan(listing({**GOOD, **changes}))))


class CheckInstructions(unittest.TestCase):
    def test_accepts_what_keeps_the_rules(self):
        self.assertEqual(breaches({}), [])

    def test_wants_each_instruction_in_its_object(self):
        self.assertEqual(breaches({"avx512_bf16.cc.o": ["ret"]}), ["avx512_bf16.cc.o: vcvtneps2bf16 is missing"])

    def test_wants_it_nowhere_else(self):
        self.assertEqual(breaches({"tiles.cc.o": ["tdpbf16ps %tmm7,%tmm5,%tmm3"]}),
                         ["tiles.cc.o: tdpbf16ps belongs to another file alone"])

    def test_wants_no_wide_registers_in_shared_code(self):
        self.assertEqual(breaches({"program.cc.o": ["vmovups %ymm0,(%rdi)"]}),
                         ["program.cc.o: wide registers in a file that every processor runs"])


if __name__ == "__main__":
    unittest.main()
