"""Sessions of the guide and of docstrings print what they show."""

import doctest
import os
import pathlib
import re
import subprocess
import sys
import unittest

import broadloom as bl
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = ["PYTHON.md", "PYTHON_NUMPY.md", "PYTHON_JAX.md", "PYTHON_RAGGED.md"]
NAMES = {"bl": bl, "np": np}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def failures(tests):
    report = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for test in tests:
        runner.run(test, out=report.append)
    return runner.tries, "".join(report)


class Guide(unittest.TestCase):
    def test_pages(self):
        for page in PAGES:
            blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)
            text = "\n".join(blocks)
            tries, report = failures([doctest.DocTestParser().get_doctest(text, dict(NAMES), page, page, 0)])
            self.assertEqual(report, "")
            self.assertGreater(tries, 3)

    def test_docstrings(self):
        finder = doctest.DocTestFinder(recurse=False)
        tests = [test for name in dir(bl) for test in finder.find(getattr(bl, name), name, globs=dict(NAMES)) if test.examples]
        self.assertGreater(len(tests), 4)
        self.assertEqual(failures(tests)[1], "")

    def test_stubs_are_those_of_the_functions(self):
        made = subprocess.run([sys.executable, ROOT / "crates/python/stubs.py"], capture_output=True, text=True, check=True)
        path = ROOT / "crates/python/package/broadloom/__init__.pyi"
        if os.environ.get("BLESS", "0") != "0":
            path.write_text(made.stdout)
        self.assertEqual(made.stdout, path.read_text(), "BLESS=1 rewrites the stubs")

    def test_public_names_have_docstrings(self):
        silent = [name for name in dir(bl) if callable(getattr(bl, name)) and not getattr(bl, name).__doc__]
        self.assertEqual(silent, [])


if __name__ == "__main__":
    os.chdir(ROOT)
    unittest.main()
