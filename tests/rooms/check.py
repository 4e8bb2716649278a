"""Checks the order of the folders of each module that docs/architecture.md states: a file includes only files of its
own folder or of one listed before it. Run as: check.py PROJECT"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)
ORDER = re.compile(r"^```rooms\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEAST_FILES = 500  # minimum number of files; with fewer, the test searches the wrong folder


def stated_orders(project):
    """Returns module → its folders in order, with '.' for files that are in no folder."""
    text = (project / "docs/architecture.md").read_text()
    block = ORDER.search(text)
    if not block:
        sys.exit("docs/architecture.md: no block ```rooms")
    orders = {}
    for line in block.group(1).splitlines():
        module, _, rooms = line.partition(":")
        orders[module.strip()] = rooms.split()
    return orders


def bases_of(module, project):
    """Returns where a module's files are, and how an include of one of its public headers begins."""
    if module == "loop_torch":
        return [project / "loop/torch/include/pipewright/loop_torch", project / "loop/torch/src"]
    if module == "cli":
        return [project / "cli"]
    return [project / module / "include/pipewright" / module, project / module / "src"]


def rooms_of_files(bases):
    """Returns file → its folder below include or src."""
    return {
        path: str(path.parent.relative_to(base))
        for base in bases
        for path in sorted(base.rglob("*.?pp"))
    }


def room_of_include(text, path, module, bases, rooms):
    """Returns the module's folder from which a file includes `text`; None if it is not the module's."""
    prefix = f"pipewright/{module}/"
    if text.startswith("pipewright/"):
        return str(pathlib.PurePath(text.removeprefix(prefix)).parent) if text.startswith(prefix) else None
    for folder in (path.parent, bases[-1]):
        if (folder / text).resolve() in rooms:
            return rooms[(folder / text).resolve()]
    return None


def check(module, order, project):
    """Returns the violations of the order, and the number of files read."""
    bases = bases_of(module, project)
    rooms = rooms_of_files(bases)
    faults = [f"{module}: the room '{room}' has no place in the order" for room in sorted(set(rooms.values()) - set(order))]
    faults += [f"{module}: no room '{room}'" for room in order if room not in rooms.values()]
    if faults:
        return faults, len(rooms)
    for path, room in rooms.items():
        for text in INCLUDE.findall(path.read_text()):
            target = room_of_include(text, path, module, bases, rooms)
            if target is None or target == room:
                continue
            if target not in order:
                faults.append(f"{path.relative_to(project)}: '{text}' lies in no room of {module}")
            elif order.index(target) > order.index(room):
                faults.append(f"{path.relative_to(project)}: in '{room}', which stands before '{target}', includes {text}")
    return faults, len(rooms)


def main():
    project = pathlib.Path(sys.argv[1]).resolve()
    faults, files = [], 0
    for module, order in stated_orders(project).items():
        found, read = check(module, order, project)
        faults += found
        files += read
    for fault in faults:
        print(fault)
    if files < LEAST_FILES:
        sys.exit(f"only {files} files were read, of at least {LEAST_FILES}")
    print(f"{files} files, {len(faults)} includes against the order of rooms")
    sys.exit(1 if faults else 0)


main()
