#!/usr/bin/env python3
"""tools/check_habits on made-up trees and histories."""

import runpy
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_habits"
HELD = runpy.run_path(str(TOOL))
HEADER = "class Ring {};\n"


def check(test, before="", words=()):
    """Exit code, output and the list afterwards, on a tree with this test and this list of exceptions."""
    with tempfile.TemporaryDirectory() as root:
        files = {"src/a/ring.h": HEADER, "tests/a/ring_buffer_test.cc": test, HELD["LIST"]: before}
        for name, text in files.items():
            path = Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, str(TOOL), *words, root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr, (Path(root) / HELD["LIST"]).read_text()


class Names(unittest.TestCase):
    def test_short_names_of_a_class_or_of_the_file(self):
        for suite in ("Ring", "RingBuffer"):
            code, text, _ = check(f"TEST({suite}, GivesEachBatchOnceInTheOrder) {{}}\n")
            self.assertEqual(code, 0, text)
            self.assertIn("subjects of commits are not checked: no .git here", text)

    def test_a_long_name(self):
        code, text, _ = check("TEST(Ring, GivesEachBatchOnceInTheOrderAsked) {}\n")
        self.assertEqual(code, 1)
        self.assertIn("tests/a/ring_buffer_test.cc: Ring.GivesEachBatchOnceInTheOrderAsked has more than 7 words", text)

    def test_a_suite_of_another_name(self):
        for kind in ("TEST", "TEST_F", "TEST_P"):
            code, text, _ = check(f"{kind}(Circle, IsRound) {{}}\n")
            self.assertEqual(code, 1)
            self.assertIn("the suite Circle is called neither", text)

    def test_the_list_excuses_and_only_shrinks(self):
        long = "TEST(Circle, GivesEachBatchOnceInTheOrderAsked) {}\n"
        listed = "# why\nCircle.\nCircle.GivesEachBatchOnceInTheOrderAsked\n"
        self.assertEqual(check(long, listed)[0], 0)
        code, text, _ = check("TEST(Circle, IsRound) {}\n", listed)
        self.assertEqual(code, 1)
        self.assertIn("Circle.GivesEachBatchOnceInTheOrderAsked is no exception any more", text)
        self.assertEqual(check("TEST(Circle, IsRound) {}\n", listed, ("--shorten",))[::2], (0, "# why\nCircle.\n"))


class Subjects(unittest.TestCase):
    def test_form_and_length(self):
        breaches = HELD["subject_breaches"]
        for good in ("train: write each checkpoint once", "engine/cuda, comm: name the lost rank", "x: install " + "a" * 61):
            self.assertEqual(list(breaches([("1", good)])), [], good)
        for bad in ("Names that say it", "train: Write it", "train:write it", "train: write", "train: write " + "a" * 60):
            self.assertEqual(len(list(breaches([("1", bad)]))), 1, bad)


if __name__ == "__main__":
    unittest.main()
