#!/usr/bin/env python3
"""Encoding speed beside Hugging Face tokenizers, one thread each, taking turns.

    tokenizer_peer.py --bench build/release/benchmark/tokenizer --model FOLDER_OR_TOKENIZER_JSON
                      [--text FILE] [--results benchmark/results/tokenizer.jsonl]

Needs the Python package tokenizers. Without --text it makes 10 MB: the Python library's own sources
(code and English), then words drawn by Zipf's law from five scripts. Both must give the same ids.
"""
import argparse
import json
import os
import pathlib
import platform
import random
import subprocess
import sys
import sysconfig
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

DOCUMENT_BYTES = 64 << 10


def make_text(size):
    parts, used = [], 0
    for path in sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" in path.parts:
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        parts.append(text)
        used += len(text.encode())
        if used > size * 6 // 10:
            break
    rng = random.Random(0)
    alphabets = ["abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмнопрстуфхцчшщыэюя",
                 "αβγδεζηθικλμνξοπρστυφχψω", "".join(map(chr, range(0x4E00, 0x5E00))),
                 "".join(map(chr, range(0x3042, 0x3094)))]
    words = ["".join(rng.choices(alphabets[min(4, int(rng.expovariate(0.8)))],
                                 k=rng.randint(1, 9))) for _ in range(60000)]
    weights = [1 / (i + 1) for i in range(len(words))]
    while used < size:
        line = " ".join(rng.choices(words, weights, k=12)) + rng.choice([".", ",", "!", " 42", ""]) + "\n"
        parts.append(line)
        used += len(line.encode())
    return "".join(parts).encode()[:size].decode("utf-8", errors="ignore")


def documents(data):
    while data:
        end = data.find(b"\n", DOCUMENT_BYTES)
        end = len(data) if end < 0 else end + 1
        yield data[:end].decode()
        data = data[end:]


def peer_run(tokenizer, texts):
    start = time.perf_counter()
    encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    seconds = time.perf_counter() - start
    checksum = 0
    for encoding in encodings:
        for token in encoding.ids:
            checksum = (checksum * 31 + token) & (2**64 - 1)
    return seconds, f"{checksum:016x}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results")
    args = parser.parse_args()
    import tokenizers

    with tempfile.TemporaryDirectory() as folder:
        path = args.text
        if not path:
            path = os.path.join(folder, "text")
            pathlib.Path(path).write_text(make_text(10_000_000), encoding="utf-8")
        data = pathlib.Path(path).read_bytes()
        texts = list(documents(data))
        model = pathlib.Path(args.model)
        tokenizer = tokenizers.Tokenizer.from_file(
            str(model / "tokenizer.json" if model.is_dir() else model))
        peer_run(tokenizer, texts[:4])
        ours, theirs = [], []
        for _ in range(args.rounds):
            out = json.loads(subprocess.check_output([args.bench, args.model, path, "1"]))
            ours.append(out["seconds"][0])
            seconds, checksum = peer_run(tokenizer, texts)
            theirs.append(seconds)
            if checksum != out["checksum"]:
                sys.exit("the ids differ")
    megabytes = len(data) / 1e6
    median = lambda values: sorted(values)[len(values) // 2]
    line = {
        "benchmark": "tokenizer", "model": model.name if model.is_dir() else model.parent.name,
        "megabytes": megabytes, "tokens": out["tokens"],
        "minisgl_mb_s": round(megabytes / median(ours), 2),
        "minisgl_mb_s_range": [round(megabytes / max(ours), 2), round(megabytes / min(ours), 2)],
        "tokenizers_mb_s": round(megabytes / median(theirs), 2),
        "tokenizers_mb_s_range": [round(megabytes / max(theirs), 2), round(megabytes / min(theirs), 2)],
        "ratio": round(median(theirs) / median(ours), 2), "tokenizers_version": tokenizers.__version__,
        "machine": cpu_name(), "command": "benchmark/tokenizer_peer.py",
    }
    print(json.dumps(line))
    print(f"minisgl {line['minisgl_mb_s']} MB/s | tokenizers {line['tokenizers_mb_s']} MB/s | "
          f"{line['ratio']} x")
    if args.results:
        with open(args.results, "a", encoding="utf-8") as results:
            results.write(json.dumps(line) + "\n")


def cpu_name():
    try:
        for line in open("/proc/cpuinfo", encoding="utf-8"):
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


if __name__ == "__main__":
    main()
