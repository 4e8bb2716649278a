"""Checks that the targets in README.md, CONTRIBUTING.md and docs/ exist: the files and headings of links, the files
that are named in code, and those that are shown: a fence such as ```cpp tests/a.cpp contains all of that file. Run as:
check.py PROJECT"""

import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^```\w+ (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
# A file of the project, named by its path; `<name>` and globs stand for several.
OWN_FILE = re.compile(r"^(?:plan|models|sim|search|trace|draw|exec|engine|profiler|loop|gui|cli|scenarios|tests|bench|docs|cmake)/[\w./+-]+\.\w+$")
# A test, named as in ctest.
OWN_TEST = re.compile(r"^(?:plan|models|sim|search|trace|draw|exec|engine|profiler|loop|loop/torch|gui|cli)/\w+_test$")
LEAST_LINKS = 100  # minimum number of links; with fewer, the test searches the wrong folder


def anchor_of(heading):
    """Returns the anchor as GitHub makes it."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors_of(page):
    return {anchor_of(heading) for heading in HEADING.findall(FENCE.sub("", page.read_text()))}


def check_link(page, target):
    """Returns what is wrong with a link, or nothing."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return f"{target}: there is no such file"
    if anchor and file.suffix == ".md" and anchor not in anchors_of(file):
        return f"{target}: {file.name} has no such heading"
    return None


def check(page, project):
    """Returns the faults of a page, and the number of its links."""
    whole = page.read_text()
    text = FENCE.sub("", whole)
    links = [target for target in LINK.findall(text) if not re.match(r"\w+:", target)]
    faults = [fault for fault in (check_link(page, target) for target in links) if fault]
    for named in CODE.findall(text):
        if OWN_FILE.match(named) and not any((project / base / named).exists() for base in places_of(named)):
            faults.append(f"`{named}`: there is no such file")
        if OWN_TEST.match(named) and not test_is_there(named, project):
            faults.append(f"`{named}`: there is no such test")
    for file, shown in SHOWN.findall(whole):
        if not (project / file).exists() or (project / file).read_text() != shown:
            faults.append(f"{file}: what is shown of it is not what it has")
    return [f"{page.relative_to(project)}: {fault}" for fault in faults], len(links)


def test_is_there(named, project):
    module, name = named.rsplit("/", 1)
    return any((project / "tests" / module).rglob(f"{name}.cpp"))


def places_of(named):
    """Returns the folders where a path may begin: the top, or, for a public header, an include root."""
    module = named.split("/")[0]
    return [".", f"{module}/include/pipewright"]


def main():
    project = pathlib.Path(sys.argv[1]).resolve()
    pages = [project / "README.md", project / "CONTRIBUTING.md", *sorted((project / "docs").rglob("*.md"))]
    faults, links = [], 0
    for page in pages:
        found, read = check(page, project)
        faults += found
        links += read
    if links < LEAST_LINKS:
        faults.append(f"only {links} links were read")
    for fault in faults:
        print(fault)
    print(f"{links} links of {len(pages)} pages read")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
