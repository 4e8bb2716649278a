"""Writes the results of gpu-check: report.json, report.md, and one archive for the developers."""

import io
import json
import tarfile

STATUSES = ("passed", "failed", "skipped")
MOST_BYTES = 15_000_000  # of the archive
MOST_OF_A_FILE = 2_000_000  # of a log, from its beginning and its end
ARCHIVE = "gpu-report.tar.gz"


def count(report):
    """Counts parts and single checks by status."""
    checks = [check for part in report["parts"] for check in part["checks"]]
    counts = {}
    for what, results in (("parts", report["parts"]), ("checks", checks)):
        counts[what] = {status: sum(result["status"] == status for result in results)
                        for status in STATUSES}
    counts["checks"]["left_out"] = sum(len(part["left_out"]) for part in report["parts"])
    return counts


def in_words(counts):
    return ", ".join(f"{number} {status.replace('_', ' ')}" for status, number in counts.items())


def table(rows):
    def row(cells):
        return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return [row(rows[0]), "|" + "---|" * len(rows[0])] + [row(cells) for cells in rows[1:]] + [""]


def page_of(report, tables):
    """Returns the page, with failures first, because they matter most to readers."""
    lines = [f"# GPU report, {report['date']}", "",
             f"LibTorch {report['torch']}, Pipewright {report['pipewright']}, "
             f"{report['seconds']:.0f} s of {report['within_s']:.0f}.", ""]
    if report["interrupted"]:
        lines += ["It was interrupted: what follows is all there was by then.", ""]
    lines += table([["", *STATUSES, "left out"]]
                   + [[what, *(counts[status] for status in STATUSES), counts.get("left_out", "")]
                      for what, counts in report["counts"].items()])
    failed = [(part, check) for part in report["parts"] for check in part["checks"]
              if check["status"] == "failed"]
    if failed:
        lines += ["## What failed", ""]
    for part, check in failed:
        lines += [f"### {part['name']}: {check['name']}", "", check["reason"], "", "```",
                  *check.get("log_tail", "").replace("```", "'''").splitlines(), "```", ""]
    for part in report["parts"]:
        lines += [f"## {part['title']}", "",
                  f"`{part['name']}` {part['status']} in {part['seconds']:.1f} s of {part['limit_s']:.0f}"
                  + (f": {part['reason']}" if part["reason"] else ""), ""]
        lines += checks_of(part)
        if part["left_out"]:
            lines += ["left out, for there was no time: " + "; ".join(part["left_out"]), ""]
        if tables.get(part["name"]):
            lines += table(tables[part["name"]])
    return "\n".join(lines)


def checks_of(part):
    """Returns the number of checks by status and their names; of those that passed, only the ones that no
    table names."""
    if len(part["checks"]) < 2:
        return []
    lines = [", ".join(f"{sum(check['status'] == status for check in part['checks'])} {status}"
                       for status in STATUSES), ""]
    named = [f"- {check['status']}: {check['name']}" + (f" ({check['reason']})" if check["reason"] else "")
             for check in part["checks"] if check["status"] != "passed" or part["name"] == "tests"]
    return lines + (named + [""] if named else [])


def write(out, report, tables):
    """Writes the report. Called after each part, so that a run that is cut off keeps its results."""
    report["counts"] = count(report)
    for name, text in (("report.json", json.dumps(report, indent=2) + "\n"),
                       ("report.md", page_of(report, tables))):
        new = out / f"{name}.new"
        new.write_text(text)
        new.replace(out / name)


def pack(out):
    """Writes the archive and returns what was too large for it. The most informative files go in first."""
    patterns = ["report.md", "report.json", "golden/**/*", "logs/*", "kernels*.json",
                "runs/**/*.csv", "runs/**/costs.json", "runs/**/steps.jsonl"]
    files = []
    for pattern in patterns:
        files += sorted(file for file in out.glob(pattern) if file.is_file())
    left_out = []
    while True:
        data = archive_of(out, files, left_out)
        if len(data) <= MOST_BYTES or not files:
            break
        left_out.append(files.pop())
    (out / ARCHIVE).write_bytes(data)
    return out / ARCHIVE, [str(file.relative_to(out)) for file in left_out]


def archive_of(out, files, left_out):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for file in files:
            data = file.read_bytes()
            if file.parent.name == "logs":
                data = cut(data)
            add(archive, f"gpu-report/{file.relative_to(out)}", data)
        if left_out:
            names = "".join(f"{file.relative_to(out)}\n" for file in left_out)
            add(archive, "gpu-report/left-out.txt", names.encode())
    return buffer.getvalue()


def add(archive, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def cut(data):
    if len(data) <= MOST_OF_A_FILE:
        return data
    half = MOST_OF_A_FILE // 2
    return data[:half] + b"\n... cut ...\n" + data[-half:]
