"""Checks scenarios/tokenize_text.py: documents, their ends, the pair of files byte by byte, and invalid inputs.
Run as: tokenize_text_check.py PROJECT"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(sys.argv[1]).resolve()
WORDS = {"<end>": 0, "to": 1, "be": 2, "or": 3, "not": 4}


def tokenize_text(folder, *words):
    return subprocess.run(
        [sys.executable, "-B", str(PROJECT / "scenarios/tokenize_text.py"), str(folder / "model"), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT / "tests/hugging_face/standin"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got!r}, expected {wanted!r}")


def index_of(lengths, code, size):
    begins = [size * sum(lengths[:n]) for n in range(len(lengths))]
    return (
        b"MMIDIDX\0\0"
        + struct.pack("<QBQQ", 1, code, len(lengths), len(lengths) + 1)
        + struct.pack(f"<{len(lengths)}i", *lengths)
        + struct.pack(f"<{len(lengths)}q", *begins)
        + struct.pack(f"<{len(lengths) + 1}q", *range(len(lengths) + 1))
    )


def write_model(folder, vocabulary):
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model/tokenizer.json").write_text(json.dumps({"model": {"vocab": WORDS}}))
    (folder / "model/config.json").write_text(json.dumps({"vocab_size": vocabulary, "eos_token_id": 0}))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_model(folder, vocabulary=5)
        (folder / "a.txt").write_text("to be\nor not\n\nto be\n\n\nnot\n")
        done = tokenize_text(folder, "a.txt")
        expect("a file is a document", done.stdout, "tokens.bin: 8 tokens of 1 documents, 2 bytes each\n")
        expect("its tokens", struct.unpack("<8H", (folder / "tokens.bin").read_bytes()), (1, 2, 3, 4, 1, 2, 4, 0))

        done = tokenize_text(folder, "a.txt", "--split", "", "--evaluation", "2", "-o", "split")
        expect("split at blank lines", done.returncode, 0)
        expect("documents", struct.unpack("<7H", (folder / "split.bin").read_bytes()), (1, 2, 3, 4, 0, 4, 0))
        expect("where they end", (folder / "split.idx").read_bytes(), index_of([5, 2], 8, 2))
        expect("the second is left out", struct.unpack("<3H", (folder / "split-evaluation.bin").read_bytes()), (1, 2, 0))

        write_model(folder, vocabulary=70_000)
        tokenize_text(folder, "a.txt", "-o", "wide")
        expect("four bytes", struct.unpack("<8i", (folder / "wide.bin").read_bytes()), (1, 2, 3, 4, 1, 2, 4, 0))
        expect("and its index", (folder / "wide.idx").read_bytes(), index_of([8], 4, 4))

        write_model(folder, vocabulary=4)
        refused = tokenize_text(folder, "a.txt")
        expect("another model's tokenizer", refused.returncode, 1)
        expect("is named", "it has 5 tokens, but vocab_size of config.json is 4" in refused.stderr, True)
        for words, what in [(["none.txt"], "none.txt"), (["a.txt", "-o", "none/x"], "none/x")]:
            write_model(folder, vocabulary=5)
            refused = tokenize_text(folder, *words)
            expect(f"{what} is refused", refused.returncode, 1)
            expect(f"{what} is named", what in refused.stderr and "Traceback" not in refused.stderr, True)
    print("tokenize_text.py: documents, pairs and refusals are as they should be")


main()
