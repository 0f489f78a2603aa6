#!/usr/bin/env python3
"""tools/sizes on made-up trees: what it counts as a file and a function, and that each limit is held."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "sizes"


def sizes(files):
    """Exit code and output of the tool on a tree of these files."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, str(TOOL), root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def function(name, lines):
    return f"int {name}() {{\n" + "  h();\n" * (lines - 2) + "}\n"


class Sizes(unittest.TestCase):
    def test_distribution_of_files(self):
        code, text = sizes({f"src/a/{n}.cc": "\n" * n for n in range(1, 12)})
        self.assertEqual(code, 0, text)
        self.assertIn("11 files: median 6, p90 10, longest 11 (src/a/11.cc)", text)

    def test_inc_files_and_scripts_count_and_corpora_do_not(self):
        code, text = sizes({"src/a.inc": "\n" * 30, "tools/b": "#!/bin/sh\n", "tests/c": "data\n",
                            "tests/fuzz/corpus/d.h": "\n" * 9999})
        self.assertEqual(code, 0, text)
        self.assertIn("2 files: median 30, p90 30, longest 30 (src/a.inc)", text)

    def test_a_long_file_is_named_and_a_longer_one_refused(self):
        code, text = sizes({"src/a.inc": "\n" * 400})
        self.assertNotIn("   400 ", text)
        code, text = sizes({"src/a.inc": "\n" * 440})
        self.assertEqual(code, 0, text)
        self.assertIn("   440 src/a.inc", text)
        code, text = sizes({"src/a.inc": "\n" * 441})
        self.assertEqual(code, 1, text)
        self.assertIn("src/a.inc:1: 441 lines", text)

    def test_a_short_header_serves_another_folder(self):
        header = {"src/a/x.h": "int x();\n" * 39, "src/a/x.cc": '#include "a/x.h"\n'}
        code, text = sizes({**header, "src/a/y.cc": '#include "a/x.h"\n', "tests/a/x_test.cc": '#include "a/x.h"\n'})
        self.assertEqual(code, 1, text)
        self.assertIn("src/a/x.h:1: 39 lines, and no other folder includes it", text)
        self.assertEqual(sizes({**header, "src/b/y.cc": '#include "a/x.h"\n'})[0], 0)
        self.assertEqual(sizes({**header, "src/a/x.h": "int x();\n" * 40})[0], 0)

    def test_functions_are_found_wherever_they_stand(self):
        source = ("namespace a {\n" + function("f", 3) + "struct S {\n  S() : a_{1}, b_(2) {\n    if (x) { y(); }\n  }\n"
                  "  int one() const { return 1; }\n};\ntemplate <typename T>\n" + function("S::g", 4) +
                  "const auto table = [] {\n  return 1;\n}();\nint declared();\n}\n")
        code, text = sizes({"src/a.cc": source, "tests/a_test.cc": "TEST(A, B) {\n  h();\n}\n"})
        self.assertEqual(code, 0, text)
        self.assertIn("4 functions in src: median 3, p90 5, longest 5 (src/a.cc:11 S::g)", text)
        self.assertIn("1 functions in tests and bench: median 3, p90 3, longest 3 (tests/a_test.cc:1 A.B)", text)

    def test_a_long_function_is_refused(self):
        code, text = sizes({"src/a.cc": "\n" + function("f", 100)})
        self.assertEqual(code, 0, text)
        code, text = sizes({"src/a.cc": "\n" + function("f", 101)})
        self.assertEqual(code, 1, text)
        self.assertIn("src/a.cc:2: f has 101 lines", text)
        self.assertEqual(sizes({"src/a.cc": function("training_rows", 101)})[0], 0)

    def test_a_missing_tree_is_said(self):
        code = subprocess.run([sys.executable, str(TOOL), "/nonexistent"], capture_output=True).returncode
        self.assertNotEqual(code, 0)


if __name__ == "__main__":
    unittest.main()
