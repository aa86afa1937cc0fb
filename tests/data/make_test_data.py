#!/usr/bin/env python3
"""Copies a selection of the reference data into tests/data, small enough to commit.

usage: make_test_data.py GOLDENS_FOLDER

The folders are those of the reference data. Models and their configs are copied as they are, and
all expected tokens. Of each case's expected logits (logits.I) a few rows are kept; logit_rows.I
says of which positions.
Needs nothing but Python's standard library.
"""
import json
import pathlib
import shutil
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ["llama", "llama_plain", "mistral", "mistral_window", "qwen2", "qwen3", "qwen3_yarn",
          "qwen3_moe"]
GGUF_MODELS = ["llama-q4_0", "llama-q4_1", "qwen3-q4_k_m", "qwen3-q8_0-split", "qwen3moe-q4_k"]


def read_safetensors(path):
    """Returns the metadata and name -> (dtype, shape, bytes)."""
    content = path.read_bytes()
    (header_size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + header_size])
    data = content[8 + header_size:]
    metadata = header.pop("__metadata__", None)
    return metadata, {
        name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
        for name, entry in header.items()
    }


def write_safetensors(path, metadata, tensors):
    header = {} if metadata is None else {"__metadata__": metadata}
    offset = 0
    for name, (dtype, shape, content) in tensors.items():
        end = offset + len(content)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text +
                     b"".join(content for _, _, content in tensors.values()))


def copy_file(source, target):
    shutil.copyfile(source, target)  # without the source's permissions


def kept_rows(prompt, total):
    """The first and last position of the prompt, one in the middle of the reply, the last one."""
    return sorted({0, prompt - 1, (prompt + total) // 2, total - 1})


def cut_logits(source, target, prompts):
    metadata, tensors = read_safetensors(source)
    kept = {}
    for i, prompt in enumerate(prompts):
        dtype, (total, vocab), content = tensors[f"logits.{i}"]
        rows = kept_rows(prompt, total)
        size = len(content) // total
        kept[f"logits.{i}"] = (dtype, [len(rows), vocab],
                               b"".join(content[r * size:(r + 1) * size] for r in rows))
        kept[f"logit_rows.{i}"] = ("I32", [len(rows)], struct.pack(f"<{len(rows)}i", *rows))
    write_safetensors(target, metadata, kept)


def copy_model(source, target):
    target.mkdir(parents=True, exist_ok=True)
    for file in sorted(source.iterdir()):
        if file.name != "expected.safetensors":
            copy_file(file, target / file.name)
    cases = json.loads((source / "expected.json").read_text())["cases"]
    cut_logits(source / "expected.safetensors", target / "expected.safetensors",
               [len(case["prompt"]) for case in cases])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    goldens = pathlib.Path(sys.argv[1])
    for name in MODELS:
        copy_model(goldens / "models" / name, HERE / "models" / name)
    for name in GGUF_MODELS:
        copy_model(goldens / "gguf" / "models" / name, HERE / "gguf" / "models" / name)
    (HERE / "gguf" / "blocks").mkdir(exist_ok=True)
    for file in sorted((goldens / "gguf" / "blocks").iterdir()):
        copy_file(file, HERE / "gguf" / "blocks" / file.name)


if __name__ == "__main__":
    main()
