"""Runs a page from top to bottom, in the folder and with the package and the PATH of who calls: its Python, and the
commands of its blocks without a language, lines that begin with "$ ". A block whose first line is a file's name as a
comment becomes that file. What a block expects, it asserts. Tracebacks name the page's lines.

usage: page.py PAGE.md"""

import re
import subprocess
import sys
from pathlib import Path

LEAST_BLOCKS = 15  # fewer were read than there are: the page is read wrongly
INSTALLED = "pip install ."  # by who calls


def run_command(command):
    if command != INSTALLED:
        print("$", command, flush=True)
        subprocess.run(command, shell=True, check=True)


def save(name, text):
    Path(name).write_text(text)


def code_of(page):
    """Of the page's text: Python that does it all, a line for each line of the page."""
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
