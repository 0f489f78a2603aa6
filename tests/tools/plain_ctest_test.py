#!/usr/bin/env python3
"""Plain ctest leaves out the tests labelled long, and says so; with PACELINE_LONG=1 they are there.

    plain_ctest_test.py CTEST BUILD
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CTEST, BUILD = sys.argv[1:3]


def listed(*words, long=False):
    """What ctest would run, and says before it."""
    environment = {key: value for key, value in os.environ.items() if key != "PACELINE_LONG"}
    if long:
        environment["PACELINE_LONG"] = "1"
    # In a folder of its own: in the build's it would write over the log of the ctest that runs this.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "CTestTestfile.cmake").write_text(f'subdirs("{BUILD}")\n')
        Path(folder, "CTestCustom.cmake").write_text(Path(BUILD, "CTestCustom.cmake").read_text())
        done = subprocess.run([CTEST, "--test-dir", folder, "-N", *words], env=environment, text=True, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout


def names(said):
    return set(re.findall(r"^ *Test +#\d+: (.*)$", said, re.MULTILINE))


class PlainCtest(unittest.TestCase):
    def test_leaves_out_the_long_ones_and_says_so(self):
        said = listed("-L", "^long$")
        self.assertIn("Total Tests: 0\n", said)
        self.assertIn("long tests are left out; PACELINE_LONG=1", said)

    def test_runs_them_when_asked(self):
        said = listed("-L", "^long$", long=True)
        self.assertNotIn("left out", said)
        self.assertIn(": ranks.kills.4\n", said)

    def test_leaves_out_nothing_else(self):
        self.assertEqual(names(listed()), names(listed("-LE", "^long$", long=True)))
        self.assertIn("layers", names(listed()))


unittest.main(argv=sys.argv[:1])
