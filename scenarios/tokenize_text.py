"""Makes tokens of texts, with the tokenizer of a Hugging Face folder: a pair of files as Megatron-LM writes them, which a
scenario names as its data ("kind": "tokens", "path": "tokens.bin").

    pip install tokenizers
    python3 tokenize_text.py FOLDER text.txt more.txt -o tokens

FOLDER has tokenizer.json and config.json. Each file is a document, or with --split each part of a file between two lines
that are that text; `--split ""` takes what lies between blank lines. Behind each document stands its end, where config.json
says one (eos_token_id). `--evaluation N` leaves every Nth document out and writes them to a pair of their own,
tokens-evaluation."""

import argparse
import json
import pathlib
import struct
import sys

MAGIC = b"MMIDIDX\x00\x00"
TWO_BYTES, FOUR_BYTES = (8, "H", 2), (4, "i", 4)  # the format's word for the type, struct's, and bytes


def fail(text):
    sys.exit(f"tokenize_text.py: {text}")


def read_json(file):
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError) as error:
        fail(f"{file}: {error}")


def tokenizer_of(folder):
    try:
        import tokenizers
    except ImportError:
        fail("the package tokenizers is missing: pip install tokenizers")
    file = folder / "tokenizer.json"
    if not file.exists():
        fail(f"{file}: there is no such file; it lies in the folder of a model that transformers has saved")
    try:
        return tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # what the package throws has no type of its own
        fail(f"{file}: {error}")


def documents_of(file, split):
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file}: {error}")
    if split is None:
        return [text]
    parts, lines = [], []
    for line in text.split("\n") + [split]:
        if line.strip() != split.strip():
            lines.append(line)
        elif lines:
            parts.append("\n".join(lines))
            lines = []
    return parts


def end_of_document(config):
    end = config.get("eos_token_id")
    return end[0] if isinstance(end, list) else end


def write_pair(name, documents, vocabulary):
    """`documents`: a list of tokens each."""
    code, letter, size = TWO_BYTES if vocabulary <= 1 << 16 else FOUR_BYTES
    count, begins = len(documents), [0]
    for tokens in documents:
        begins.append(begins[-1] + len(tokens) * size)
    try:
        with open(f"{name}.bin", "wb") as file:
            for tokens in documents:
                file.write(struct.pack(f"<{len(tokens)}{letter}", *tokens))
        with open(f"{name}.idx", "wb") as file:
            file.write(MAGIC + struct.pack("<QBQQ", 1, code, count, count + 1))
            file.write(struct.pack(f"<{count}i", *map(len, documents)))
            file.write(struct.pack(f"<{count}q", *begins[:-1]))
            file.write(struct.pack(f"<{count + 1}q", *range(count + 1)))
    except OSError as error:
        fail(f"{name}: {error}")
    print(f"{name}.bin: {begins[-1] // size} tokens of {count} documents, {size} bytes each")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="with tokenizer.json and config.json")
    parser.add_argument("texts", type=pathlib.Path, nargs="+", help="UTF-8 files")
    parser.add_argument("-o", "--out", default="tokens", help="the pair's name without .bin and .idx (default tokens)")
    parser.add_argument("--split", metavar="LINE", help="documents end at lines that are this text; empty: at blank lines")
    parser.add_argument("--evaluation", type=int, metavar="N", help="every Nth document is written to another pair")
    options = parser.parse_args()

    config = read_json(options.folder / "config.json")
    vocabulary = config.get("vocab_size") or fail(f"{options.folder / 'config.json'}: vocab_size is missing")
    tokenizer = tokenizer_of(options.folder)
    if tokenizer.get_vocab_size() > vocabulary:
        fail(
            f"{options.folder / 'tokenizer.json'}: it has {tokenizer.get_vocab_size()} tokens, but vocab_size of "
            f"config.json is {vocabulary}: the tokenizer is that of another model"
        )
    end = end_of_document(config)
    documents = []
    for file in options.texts:
        for text in documents_of(file, options.split):
            tokens = tokenizer.encode(text).ids
            documents.append(tokens if end is None or tokens[-1:] == [end] else tokens + [end])
    every = options.evaluation or len(documents) + 1
    write_pair(options.out, [d for n, d in enumerate(documents, 1) if n % every != 0], vocabulary)
    if options.evaluation:
        write_pair(f"{options.out}-evaluation", documents[every - 1 :: every], vocabulary)


main()
