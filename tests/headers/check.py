"""Checks that every header begins with a comment of at least a few words that says what it provides. Run as:
check.py PROJECT"""

import pathlib
import re
import sys

MODULES = ["plan", "models", "sim", "search", "trace", "draw", "exec", "engine", "profiler", "loop", "gui", "cli"]
OPENING = re.compile(r"\A#pragma once\n\n// ?(.*)")
LEAST_HEADERS = 400  # minimum number of headers; with fewer, the test searches the wrong folder
LEAST_WORDS = 3


def main():
    project = pathlib.Path(sys.argv[1]).resolve()
    headers = sorted(path for module in MODULES for path in (project / module).rglob("*.hpp"))
    faults = 0
    for header in headers:
        opening = OPENING.match(header.read_text())
        if not opening or len(opening.group(1).split()) < LEAST_WORDS:
            print(f"{header.relative_to(project)}: does not open with its idea, in a comment below #pragma once")
            faults += 1
    print(f"{len(headers)} headers read")
    sys.exit(1 if faults or len(headers) < LEAST_HEADERS else 0)


main()
