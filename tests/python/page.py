"""Runs a page from top to bottom, in the caller's folder and with its package and PATH: the Python code, and the
commands of blocks without a language, which are lines that begin with "$ ". A block whose first line is a file name
as a comment becomes that file. The assertions in the blocks are checked. Tracebacks name the page's lines.

usage: page.py PAGE.md"""

import re
import subprocess
import sys
from pathlib import Path

LEAST_BLOCKS = 15  # minimum number of blocks; with fewer, the page is read incorrectly
INSTALLED = "pip install ."  # done by the caller


def run_command(command):
    if command != INSTALLED:
        print("$", command, flush=True)
        subprocess.run(command, shell=True, check=True)


def save(name, text):
    Path(name).write_text(text)


def code_of(page):
    """Returns Python code that does what the page says, with one line for each line of the page."""
    code, blocks = [], 0
    lines = page.split("\n")
    while len(code) < len(lines):
        fence = re.fullmatch(r"```(\w*)", lines[len(code)])
        code.append("")
        if not fence:
            continue
        end = lines.index("```", len(code))
        block = lines[len(code):end]
        blocks += 1
        file = re.fullmatch(r"# (\w+\.py)", block[0])
        if file:
            text = "\n".join(block) + "\n"
            code += [f"save({file[1]!r}, {text!r})", *[""] * (len(block) - 1)]
        elif fence[1] == "python":
            code += block
        else:
            code += [f"run_command({line[2:]!r})" if not fence[1] and line.startswith("$ ") else "" for line in block]
        code.append("")
    assert blocks >= LEAST_BLOCKS, f"{blocks} blocks"
    return "\n".join(code)


file = sys.argv[1]
exec(compile(code_of(Path(file).read_text()), file, "exec"), {"run_command": run_command, "save": save})
