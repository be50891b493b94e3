#!/usr/bin/env python3
"""Counts the lines of code of the operations that combine elements, in this tree and in an older commit.

Usage: scripts/operation-lines.py [COMMIT]

A line of code is neither empty nor a comment, an import or an attribute. In this tree an operation is a file of
crates/graph/src/expr/operations. Before there were such files, the code of an operation stood in functions and match arms
of the planner: a function counts where it names one of the operations, and only its arms for them where it names
other kinds of nodes too. Files of operations alone count as a whole.

Descriptors of segments are not operations and are not counted.
"""

import re
import subprocess
import sys

BEFORE = "6112cc3"
# Files of the older code that hold nothing but operations: they count as a whole.
WHOLE = ["order", "scatter"]
FOLDER = "crates/graph/src"
OPERATIONS = "Reduce|Extreme|Scan|Product|Sort|Histogram|Pack|Scatter|SegmentedScan|SegmentedReduce"
FILES = ["reduce", "reduction", "scan", "product", "sort", "histogram", "pack", "scatter", "segmented_reduce"]
# Functions of the textual form of graphs, which the older code has not.
TEXT = r"(?:read\w*|spelling|keys_of)"
# Functions for sizes that are symbols or that only the device knows, and for predictions, which it has not either.
SIZES = r"(?:extents|alike|absent|further_work|counted)"
OWN = re.compile(rf"\b(?:Op|Kind|GroupKind|Spreading|Way|Pattern)::(?:{OPERATIONS})\b")
OTHER = re.compile(rf"\b(?:Op|Kind|GroupKind)::(?!(?:{OPERATIONS})\b)[A-Z]\w*")


def git(*arguments):
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def is_code(line):
    return bool(line.strip()) and not re.match(r"\s*(//|#\[|use |pub use )", line)


def indent(line):
    return len(line) - len(line.lstrip())


def end_of(lines, start):
    """Returns the last line of an item of formatted code: the next line that closes its indentation."""
    if re.search(r"[;,}]$", lines[start]) and not lines[start].endswith("("):
        return start
    closing = (line for line in range(start + 1, len(lines)) if lines[line].strip() and indent(lines[line]) <= indent(lines[start]))
    for line in closing:
        if not lines[line].rstrip().endswith("{"):
            return line
    return len(lines) - 1


def items(lines, pattern):
    for start, line in enumerate(lines):
        if re.match(pattern, line):
            yield start, end_of(lines, start)


def count_before(commit):
    counts = {}
    for path in git("ls-tree", "-r", "--name-only", commit, FOLDER).split():
        lines = git("show", f"{commit}:{path}").split("\n")
        tests = next((n for n, line in enumerate(lines) if line.startswith("#[cfg(test)]")), len(lines))
        lines, counted = lines[:tests], set()
        if path.removeprefix(f"{FOLDER}/").removesuffix(".rs") in WHOLE:
            counted.update(range(len(lines)))
        for start, end in items(lines, r"\s*(pub(\(\w+\))? )?fn "):
            body = "\n".join(lines[start : end + 1])
            if not OWN.search(body):
                continue
            if not OTHER.search(body):
                counted.update(range(start, end + 1))
                continue
            for number in range(start, end + 1):
                if OWN.search(lines[number]):
                    counted.update(range(number, end_of(lines, number) + 1))
        counts[path] = sum(is_code(lines[number]) for number in counted)
    return {path: count for path, count in counts.items() if count}


def count_now(commit):
    """Returns for each file its lines of code, and how many of them are for what the older code has not: the textual form, symbolic sizes
    and predictions, and functions of users."""
    older = set(re.findall(r"\bfn (\w+)", git("grep", "-hE", r"\bfn \w+", commit, "--", FOLDER)))
    counts = {}
    for name in FILES:
        path = f"{FOLDER}/expr/operations/{name}.rs"
        with open(path) as file:
            lines = file.read().split("\n")
        text, sizes, new = set(), set(), set()
        for start, end in items(lines, r"\s*(pub(\(\w+\))? )?fn "):
            name = re.search(r"fn (\w+)", lines[start])[1]
            if re.fullmatch(TEXT, name):
                text.update(range(start, end + 1))
            elif re.fullmatch(SIZES, name):
                sizes.update(range(start, end + 1))
            elif lines[start].strip().startswith("pub fn") and name not in older:
                new.update(range(start, end + 1))
        counts[path] = [sum(is_code(lines[number]) for number in part) for part in (range(len(lines)), text, sizes, new)]
    return counts


commit = sys.argv[1] if len(sys.argv) > 1 else BEFORE
before, now = count_before(commit), count_now(commit)
for path, count in before.items():
    print(f"before {count:5} {path}")
for path, (count, text, sizes, new) in now.items():
    print(f"now    {count:5} {path}: textual form {text}, sizes and predictions {sizes}, new functions of users {new}")
total, *added = (sum(counts) for counts in zip(*now.values()))
print(f"before {sum(before.values()):5} in {len(before)} files")
print(f"now    {total:5} in {len(now)} files, {total - sum(added)} without what is new: {' + '.join(map(str, added))}")
