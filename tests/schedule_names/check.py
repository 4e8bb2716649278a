"""Checks that the product asks a schedule's descriptor what the schedule can do and compares no names: outside the
generators no string is the name of a schedule, torch's class of one or an alias. Run as: check.py PROJECT"""

import pathlib
import re
import sys

MODULES = ["plan", "models", "sim", "search", "trace", "draw", "exec", "engine", "profiler", "loop", "gui", "cli", "python"]
GENERATORS = "plan/src/generators"
# Words of other programs that are also names of schedules.
ALLOWED = {
    ("models/src/trainers/torchtitan_reader.cpp", "1F1B"),  # the default of torchtitan's option
}
WORD = re.compile(r"\w[\w -]*\w")
STRING = r'"((?:[^"\\\n]|\\.)*)"'
NAMED = re.compile(rf"\.(?:name|torch_class) = {STRING}")
ALIASES = re.compile(r"\.aliases = \{([^}]*)\}")
# Comments and characters first, so that a quote within one does not open a string.
TOKEN = re.compile(rf"//[^\n]*|/\*.*?\*/|'\\?.'|{STRING}", re.DOTALL)
PYTHON_TOKEN = re.compile(rf"#[^\n]*|\"\"\".*?\"\"\"|{STRING}|'((?:[^'\\\n]|\\.)*)'", re.DOTALL)
LEAST_NAMES = 30  # minimum number of names; with fewer, the test searches the wrong place
LEAST_FILES = 900


def bare(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


def names_of(generators):
    """Returns all names of all schedules, in lower case without dashes."""
    names = set()
    for path in generators.rglob("*.cpp"):
        text = path.read_text()
        names.update(NAMED.findall(text))
        for aliases in ALIASES.findall(text):
            names.update(re.findall(STRING, aliases))
    return {bare(name) for name in names}


def strings_of(path):
    """Returns (line, string) for each string in the file's code."""
    text = path.read_text()
    for token in (PYTHON_TOKEN if path.suffix == ".py" else TOKEN).finditer(text):
        for string in token.groups():
            if string is not None:
                yield text.count("\n", 0, token.start()) + 1, string


def main():
    project = pathlib.Path(sys.argv[1]).resolve()
    names = names_of(project / GENERATORS)
    files = sorted(path for module in MODULES for ending in ("*.?pp", "*.py") for path in (project / module).rglob(ending))
    faults = set()
    for path in files:
        file = path.relative_to(project).as_posix()
        if file.startswith(GENERATORS):
            continue
        for line, string in strings_of(path):
            if WORD.fullmatch(string) and bare(string) in names and (file, string) not in ALLOWED:
                faults.add((file, line, string))
    for file, line, string in sorted(faults):
        print(f'{file}:{line}: "{string}" names a schedule: ask its descriptor (plan/generators/schedule_catalog.hpp)')
    print(f"{len(names)} names, {len(files)} files, {len({fault[:2] for fault in faults})} lines that name a schedule")
    sys.exit(1 if faults or len(names) < LEAST_NAMES or len(files) < LEAST_FILES else 0)


main()
