"""Runs the bundled tests and counts each case separately. A case that crashes, hangs or leaves the GPU
unusable ends its program, and a new one continues with the later cases."""

import re
import xml.etree.ElementTree as ElementTree

from running import Failed, TimeIsUp

PROGRAMS = ("pipewright_exec_tests", "pipewright_profiler_tests")
QUIET_SECONDS = 30  # without the end of a case: it hangs
SMALL_SECONDS = 120  # … if a busy CPU stands in for the GPUs
SMALL_EVERY = 4  # of the cases: a machine without a GPU runs the others separately
MOST_LETTERS = 300  # of a failure in a line; the log has all of it


def part_tests(check):
    check.need_gpu()
    for program in PROGRAMS:
        names, status = check.one(f"{program} lists its tests", names_of, check, program,
                                  may_hang=check.left() > 10)
        if status == "passed":
            check.checks.pop()  # the cases themselves count
            if check.small:
                names = names[::SMALL_EVERY]
            run_cases(check, program, names)
    return None, None


def names_of(check, program):
    said = check.run([check.program(program), "[cuda]~[.]", "--list-test-names-only"], good=None)
    if "Unrecogni" in check.log_tail():  # renamed in Catch2 version 3
        said = check.run([check.program(program), "[cuda]~[.]", "--list-tests", "--verbosity", "quiet"])
    names = [line.strip() for line in said.splitlines() if line.strip()]
    if not names:
        raise Failed("the program has no [cuda] cases")
    return names


def run_cases(check, program, names):
    while names:
        ended = run_some(check, program, names)
        names = [name for name in names if name not in ended]
        if check.left() < 1:
            check.left_out += names
            return


def run_some(check, program, names):
    """Runs cases until all are done or one fails; the later ones then need a new process."""
    listed, found = check.out / "logs/cases.txt", check.out / "logs/cases.xml"
    listed.write_text("\n".join(re.sub(r'[\\,\["]', r"\\\g<0>", name) for name in names) + "\n")
    found.unlink(missing_ok=True)
    begin, said, why, cut_off = check.log_bytes(), "", "its program ended", False
    try:
        said = check.run([check.program(program), "-f", listed, "-r", "xml", "-o", found, "--abort"],
                         good=None, watched=found,
                         quiet_s=SMALL_SECONDS if check.small else QUIET_SECONDS)
    except TimeIsUp:
        cut_off = True
    except Failed as failed:
        why = str(failed)
    # A program that was killed could not flush its output.
    said += check.log_tail(begin)
    skipped = dict(re.findall(r'^skipped: "(.*)": (.*)$', said, re.MULTILINE))
    ended = set()
    for name, seconds, success, failure in cases_in(found):
        if success is None and cut_off:  # it has the part's time, which says nothing about it
            break
        if success is None:  # it began and did not end
            check.note(name, "failed", why, log_begin=begin)
        elif not success:
            check.note(name, "failed", failure, log_begin=begin)
        elif name in skipped:
            check.note(name, "skipped", skipped[name])
        else:
            check.note(name, "passed", "")
        check.checks[-1]["seconds"] = seconds
        ended.add(name)
    if not ended and not cut_off:  # it does not even begin
        for name in names:
            check.note(name, "failed", f"{program} has run none of its tests: {why}", log_begin=begin)
        return names
    return ended


def cases_in(file):
    """Returns name, seconds, success and first failure of each case in a document that may be
    truncated. A case that has not ended has no success."""
    parser = ElementTree.XMLPullParser(["start", "end"])
    try:
        parser.feed(file.read_bytes())
    except (OSError, ElementTree.ParseError):
        pass
    cases, failure = [], ""
    for event, element in parser.read_events():
        if event == "start" and element.tag == "TestCase":
            cases.append((element.get("name"), 0.0, None, ""))
            failure = ""
        elif event == "end" and element.tag in ("Expression", "Exception", "FatalErrorCondition",
                                                "Failure"):
            failure = failure or failure_of(element)
        elif event == "end" and element.tag == "OverallResult" and cases:
            seconds = round(float(element.get("durationInSeconds", 0)), 2)
            cases[-1] = (cases[-1][0], seconds, element.get("success") == "true", failure)
    return cases


def failure_of(element):
    """Returns place and message of a failure in one line."""
    if element.tag == "Expression" and element.get("success") == "true":
        return ""
    where = f"{(element.get('filename') or '').split('/tests/')[-1]}:{element.get('line')}: "
    what = element.findtext("Expanded") or element.text or element.tag
    inner = element.find("Exception")
    if inner is not None:
        what += f" threw {inner.text}"
    line = " ".join(what.split())
    return where + (line if len(line) <= MOST_LETTERS else line[:MOST_LETTERS] + " …")
