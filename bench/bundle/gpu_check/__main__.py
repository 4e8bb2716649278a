"""Checks on this machine what needs a GPU, within a time that is divided among the parts, and writes a
report for the developers. A part that fails is named and the others continue. Called by gpu-check;
needs Python 3.8 and no packages. Exit code: 1 if something failed, 130 on an interrupt."""

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path

import report as reports
from machine import find_devices
from parts import PARTS
from running import Check

FORMAT = "pipewright/gpu-report/2"
PACKING_SECONDS = 5


def run_part(check, part, limit):
    """Returns the part's result and the rows of its table. An interrupt ends the part and is raised
    again."""
    check.begin(part.name, limit)
    started = time.monotonic()
    result = {"name": part.name, "title": part.title, "status": "passed", "reason": "",
              "limit_s": round(limit, 1), "figures": None}
    rows, stopped = None, None
    try:
        value, _ = check.one(part.name, part.work, check)
        # The part itself counts as a check if it has no others, or if it did not finish.
        if check.checks[-1]["status"] == "passed" and len(check.checks) + len(check.left_out) > 1:
            check.checks.pop()
        result["figures"], rows = value or (None, None)
    except KeyboardInterrupt as interrupt:
        stopped = interrupt
        check.note(part.name, "failed", "interrupted")
    statuses = [one["status"] for one in check.checks]
    result["status"] = next(word for word in ("failed", "passed", "skipped") if word in statuses)
    telling = [one for one in check.checks if one["status"] == result["status"] != "passed"]
    if telling:
        more = f" (and {len(telling) - 1} more)" if len(telling) > 1 else ""
        name = f"{telling[0]['name']}: " if telling[0]["name"] != part.name else ""
        result["reason"] = name + telling[0]["reason"] + more
    result.update(checks=check.checks, left_out=check.left_out,
                  seconds=round(time.monotonic() - started, 2))
    return result, rows, stopped


def torch_version(torch_dir):
    for name in ("version.py", "build-version"):
        if (torch_dir / name).exists():
            for line in (torch_dir / name).read_text().splitlines():
                if line.startswith("__version__"):
                    return line.split("'")[1]
                if name == "build-version":
                    return line.strip()
    return "unknown"


def interrupt(*_):
    raise KeyboardInterrupt


def parse_options():
    parser = argparse.ArgumentParser(prog="gpu-check", description=__doc__.split(". ")[0] + ".")
    parser.add_argument("bundle", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("torch_dir", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("out", nargs="?", type=Path, default=Path("gpu-report"))
    parser.add_argument("--within", type=float, default=480, metavar="SECONDS",
                        help="all of it takes no longer (480)")
    parser.add_argument("--only", default="", metavar="PART,…",
                        help="of " + ", ".join(part.name for part in PARTS))
    parser.add_argument("--small", action="store_true",
                        help="tiny models, and a quarter of the tests: to try gpu-check itself "
                             "where a CPU stands in for a GPU")
    options = parser.parse_args()
    wanted = [name for name in options.only.split(",") if name]
    for name in wanted:
        if name not in [part.name for part in PARTS]:
            parser.error(f"--only: there is no part {name}; there are "
                         + ", ".join(part.name for part in PARTS))
    if options.within < 1:
        parser.error(f"--within: {options.within:g} seconds are too few: at least 1")
    if options.out.exists() and (not options.out.is_dir() or any(options.out.iterdir())):
        sys.exit(f"gpu-check: {options.out} is there already and not empty: name another folder")
    return options, [part for part in PARTS if not wanted or part.name in wanted]


def main():
    options, parts = parse_options()
    started = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    check = Check(options.bundle.resolve(), options.torch_dir, options.out.resolve(), *find_devices(),
                  small=options.small)
    version = subprocess.run([check.program("pipewright"), "--version"], capture_output=True, text=True,
                             check=False).stdout.strip()
    report = {"format": FORMAT, "date": check.date,
              "pipewright": version or "does not start", "torch": torch_version(options.torch_dir),
              "within_s": options.within, "small": options.small, "interrupted": False, "parts": []}
    tables, end = {}, started + options.within - min(PACKING_SECONDS, options.within / 10)
    for index, part in enumerate(parts):
        print(f"{part.title} …", file=sys.stderr)
        share = part.share / sum(later.share for later in parts[index:])
        limit = max(end - time.monotonic(), 0.1) * share
        result, tables[part.name], stopped = run_part(check, part, limit)
        report["parts"].append(result)
        print(f"  {result['status']} ({result['seconds']:.0f} s)"
              + (f": {result['reason']}" if result["reason"] else ""), file=sys.stderr)
        report["seconds"] = round(time.monotonic() - started, 1)
        report["interrupted"] = stopped is not None
        reports.write(check.out, report, tables)
        if stopped:
            break
    archive, too_large = reports.pack(check.out)
    print(f"{options.out}/report.md: parts: {reports.in_words(report['counts']['parts'])}; "
          f"checks: {reports.in_words(report['counts']['checks'])}")
    print(f"{options.out}/{archive.name}: {archive.stat().st_size / 1e6:.1f} MB to send home"
          + (f", without {', '.join(too_large)}" if too_large else ""))
    if report["interrupted"]:
        return 130
    return 1 if report["counts"]["checks"]["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
