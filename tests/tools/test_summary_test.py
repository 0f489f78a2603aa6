#!/usr/bin/env python3
"""tools/test_summary on results made by hand."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "test_summary"


def summary(cases):
    """Exit code and lines of the tool; a case is (name, status, output)."""
    body = "".join(f'<testcase name="{n}" status="{s}"><system-out>{o}</system-out></testcase>' for n, s, o in cases)
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(f'<?xml version="1.0"?><testsuite tests="{len(cases)}">{body}</testsuite>')
        file.flush()
        done = subprocess.run([sys.executable, str(TOOL), file.name], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


class TestSummary(unittest.TestCase):
    def test_counts_stand_alone_on_the_last_line(self):
        code, lines = summary([("a", "run", ""), ("b", "run", "")])
        self.assertEqual((code, lines[-1]), (0, "2 passed, 0 failed, 0 skipped"))

    def test_a_failure_is_named_and_ends_with_1(self):
        code, lines = summary([("a", "run", ""), ("b", "fail", "no")])
        self.assertEqual((code, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("  b", lines)

    def test_a_failure_is_told_with_the_end_of_its_output(self):
        _, lines = summary([("b", "fail", "\n".join(f"line {i}" for i in range(100)))])
        after = lines.index("  b") + 1
        self.assertEqual(lines[after:after + 30], [f"    | line {i}" for i in range(70, 100)])

    def test_a_skipped_test_gives_its_reason(self):
        code, lines = summary([("a", "run", ""), ("g", "notrun", "x_test.cc:3: Skipped\nno data here\n\n[  SKIPPED ]"),
                               ("o", "notrun", "skipped: no PyTorch"), ("d", "disabled", "")])
        self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed, 3 skipped"))
        self.assertIn("  g: no data here", lines)
        self.assertIn("  o: no PyTorch", lines)
        self.assertIn("  d: disabled", lines)

    def test_no_tests_at_all_is_a_failure(self):
        self.assertEqual(summary([])[0], 1)


if __name__ == "__main__":
    unittest.main()
