#!/usr/bin/env python3
"""tools/check_tests on made-up trees: what has weight, and that each line of the list is held to be true."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_tests"
HEAVY = "int x;\n" * 81
LIST = "tests/without_own_test.txt"


def check(files, listed=""):
    """Exit code and output of the tool on a tree of these files and this list."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in {"src/z.cc": "", LIST: listed, **files}.items():
            path = Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, str(TOOL), root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


class CheckTests(unittest.TestCase):
    def test_a_heavy_source_wants_a_test_of_its_name(self):
        code, text = check({"src/a/b.cc": HEAVY})
        self.assertEqual(code, 1)
        self.assertIn("src/a/b.cc: has 81 lines of code and no tests/a/b_test.cc", text)
        code, text = check({"src/a/b.cc": HEAVY, "tests/a/b_test.cc": ""})
        self.assertEqual(code, 0, text)
        self.assertIn("of 1 sources with more than 80 lines of code 1 have a test file of their name", text)

    def test_comments_braces_and_empty_lines_weigh_nothing(self):
        light = "int x;\n" * 80 + "\n// a\n/* b\nint y;\n*/\n{\n}\n"
        self.assertEqual(check({"src/a/b.cc": light})[0], 0)
        self.assertEqual(check({"src/a/b.h": HEAVY})[0], 0)

    def test_a_listed_source_is_held_by_what_is_named(self):
        listed = "# a comment\n[by its users]\ntests/c_test.cc\n    src/b.cc\n"
        self.assertEqual(check({"src/b.cc": HEAVY, "tests/c_test.cc": ""}, listed)[0], 0)
        code, text = check({"src/b.cc": HEAVY}, listed)
        self.assertEqual(code, 1)
        self.assertIn(f"{LIST}:4: src/b.cc: tests/c_test.cc is not there", text)

    def test_another_name_must_include_the_sources_header(self):
        listed = "[by another name]\ntests/c_test.cc tests/d.h\n    src/b.cc\n"
        tree = {"src/b.cc": HEAVY, "src/b.h": "", "tests/c_test.cc": ""}
        code, text = check({**tree, "tests/d.h": ""}, listed)
        self.assertEqual(code, 1)
        self.assertIn("none of its tests includes src/b.h", text)
        self.assertEqual(check({**tree, "tests/d.h": '#include "b.h"\n'}, listed)[0], 0)

    def test_untested_needs_a_reason_and_no_test(self):
        self.assertEqual(check({"src/b.cc": HEAVY}, "[untested]\nneeds a tape drive\n    src/b.cc\n")[0], 0)
        code, text = check({"src/b.cc": HEAVY}, "[untested]\n    src/b.cc\n")
        self.assertEqual(code, 1)
        self.assertIn("below no test", text)

    def test_lines_that_are_no_longer_true_are_refused(self):
        listed = "[by its users]\ntests/c_test.cc\n    src/b.cc\n"
        tests = {"tests/c_test.cc": ""}
        for files, sentence in (
            ({}, "there is no such source"),
            ({"src/b.cc": "int x;\n"}, "has at most 80 lines of code"),
            ({"src/b.cc": HEAVY, "tests/b_test.cc": ""}, "has a test of its own, tests/b_test.cc"),
        ):
            code, text = check({**tests, **files}, listed)
            self.assertEqual(code, 1)
            self.assertIn(sentence, text)
        code, text = check({**tests, "src/b.cc": HEAVY}, listed + "    src/b.cc\n")
        self.assertEqual(code, 1)
        self.assertIn("stands here twice, first in line 3", text)
        self.assertIn("the headings are", check({"src/b.cc": HEAVY}, "[elsewhere]\nx\n    src/b.cc\n")[1])


if __name__ == "__main__":
    unittest.main()
