"""Cuts attention goldens to their first KV heads, for the copies that are committed here.

python3 slice_goldens.py FOLDER_OF_GOLDENS: heads are independent of each other, so a cut case is a
case of its own. Needs nothing but Python.
"""

import json
import math
import struct
import sys
from pathlib import Path

KEPT_KV_HEADS = {
    "d80_p1": 1,
    "mixed_p1_d128_gqa2": 1,
    "sinks_window_p16_d64": 1,
    "softcap_p1_d128": 1,
    "worked_example": 2,
}


def cut(values, shape, heads):
    """The first `heads` of dimension 1, of float32 values in row-major order."""
    inner = 4 * math.prod(shape[2:])
    row = shape[1] * inner
    return b"".join(values[at : at + heads * inner] for at in range(0, len(values), row))


def main(source):
    for name, kv_heads in KEPT_KV_HEADS.items():
        raw = (source / f"{name}.safetensors").read_bytes()
        header_size = struct.unpack("<Q", raw[:8])[0]
        header = json.loads(raw[8 : 8 + header_size])
        group = header["q"]["shape"][1] // header["k"]["shape"][1]
        kept = {key: kv_heads * group for key in ("q", "out", "lse", "sinks")}
        kept |= {key: kv_heads for key in ("k", "v", "k_pool", "v_pool")}
        new_header, data = {"__metadata__": header["__metadata__"]}, b""
        for key, entry in header.items():
            if key == "__metadata__":
                continue
            begin, end = (8 + header_size + at for at in entry["data_offsets"])
            values, shape = raw[begin:end], entry["shape"]
            if key == "sinks":
                values, shape = values[: 4 * kept[key]], [kept[key]]
            elif key in kept:
                values, shape = cut(values, shape, kept[key]), [shape[0], kept[key], *shape[2:]]
            new_header[key] = {
                "dtype": entry["dtype"],
                "shape": shape,
                "data_offsets": [len(data), len(data) + len(values)],
            }
            data += values
        text = json.dumps(new_header).encode()
        text += b" " * (-len(text) % 8)
        out = Path(__file__).parent / f"{name}.safetensors"
        out.write_bytes(struct.pack("<Q", len(text)) + text + data)


main(Path(sys.argv[1]))
