"""The C API from C (examples/c_api.c) and from Python's ctypes."""

import ctypes
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("MINISGL_BUILD", ROOT / "build/release"))
MODEL = os.environ.get(
    "MINISGL_SMOLLM2", str(ROOT / "build/models/SmolLM2-135M-Instruct.Q4_1.gguf")
)
QUESTION = "What is the capital of France?"
CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32
)


class Minisgl:
    """As small as a binding can be."""

    def __init__(self, **options):
        self.lib = ctypes.CDLL(str(BUILD / "lib/libminisgl_c.so"))
        for name, result, arguments in [
            ("open", ctypes.c_void_p, [ctypes.c_char_p]),
            ("description", ctypes.c_void_p, [ctypes.c_void_p]),
            ("encode", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]),
            ("decode", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]),
            (
                "generate",
                ctypes.c_void_p,
                [ctypes.c_void_p, ctypes.c_char_p, CALLBACK, ctypes.c_void_p],
            ),
        ]:
            function = getattr(self.lib, f"minisgl_{name}")
            function.restype = result
            function.argtypes = [*arguments, ctypes.POINTER(ctypes.c_void_p)]
        self.lib.minisgl_error_message.restype = ctypes.c_char_p
        for name in ("error_message", "error_code", "free_error", "free_string", "close"):
            getattr(self.lib, f"minisgl_{name}").argtypes = [ctypes.c_void_p]
        self.llm = None
        self.llm = self.call("open", json.dumps(options).encode())

    def call(self, name, *arguments):
        error = ctypes.c_void_p()
        result = getattr(self.lib, f"minisgl_{name}")(*arguments, ctypes.byref(error))
        if error.value:
            message = self.lib.minisgl_error_message(error).decode()
            code = self.lib.minisgl_error_code(error)
            self.lib.minisgl_free_error(error)
            assert not result
            raise RuntimeError(code, message)
        return result

    def text(self, name, *arguments):
        pointer = self.call(name, self.llm, *arguments)
        text = ctypes.string_at(pointer).decode()
        self.lib.minisgl_free_string(pointer)
        return text

    def generate(self, request, on_piece=None):
        callback = CALLBACK(on_piece) if on_piece else CALLBACK()
        return json.loads(self.text("generate", json.dumps(request).encode(), callback, None))

    def close(self):
        self.lib.minisgl_close(self.llm)
        self.llm = None


@pytest.fixture(scope="module")
def llm():
    model = Minisgl(model=MODEL, max_seq_len=1024)
    yield model
    model.close()


def test_from_c():
    done = subprocess.run(
        [str(BUILD / "examples/c_api"), MODEL, QUESTION], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    streamed, answer = done.stdout.rstrip("\n").split("\n")
    assert streamed == "The capital of France is Paris."
    assert json.loads(answer)[0]["text"] == streamed


def test_a_wrong_model_from_c():
    done = subprocess.run(
        [str(BUILD / "examples/c_api"), "/nowhere", "x"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 3 and "/nowhere" in done.stderr


def test_a_batch_streams_and_agrees(llm):
    pieces = {}

    def on_piece(_, output, text, length, token):
        pieces.setdefault(output, []).append(ctypes.string_at(text, length))
        return 1

    answers = llm.generate(
        [
            {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 32},
            {"prompt": "Once upon a time", "max_tokens": 8, "ignore_eos": True},
            {"prompt": [28, 260], "max_tokens": 4, "temperature": 1.0, "seed": 3},
        ],
        on_piece,
    )
    assert answers[0]["text"] == "The capital of France is Paris."
    assert answers[0]["finish_reason"] == "stop"
    assert len(answers[1]["token_ids"]) == 8 and answers[1]["finish_reason"] == "length"
    for i, answer in enumerate(answers):
        assert b"".join(pieces[i]).decode() == answer["text"]


def test_scores_a_given_text(llm):
    request = {"prompt": "The capital of France is Paris.", "max_tokens": 1, "prompt_logprobs": 0}
    logprobs = [p["logprob"] for p in llm.generate(request)[0]["prompt_logprobs"]]
    request["prompt"] = "The capital of France is banana."
    others = [p["logprob"] for p in llm.generate(request)[0]["prompt_logprobs"]]
    assert sum(logprobs) / len(logprobs) > sum(others) / len(others)


def test_a_callback_ends_an_answer(llm):
    answer = llm.generate({"prompt": "Once", "max_tokens": 50}, lambda *_: 0)[0]
    assert answer["finish_reason"] == "abort" and len(answer["token_ids"]) < 5


def test_encode_and_decode(llm):
    ids = json.loads(llm.text("encode", "naïve 鱻 text".encode()))
    assert llm.text("decode", json.dumps(ids).encode()) == "naïve 鱻 text"
    assert "LlamaForCausalLM" in llm.text("description")


@pytest.mark.parametrize(
    "request_json, message",
    [
        (b"{", "JSON"),
        (b"5", "expected a JSON object"),
        (b"{}", "prompt"),
        (b'{"prompt": "x", "max_tokenz": 1}', "max_tokenz"),
        (b'{"prompt": "x", "max_tokens": "many"}', "max_tokens"),
        (b'{"prompt": "x", "max_tokens": 1.5}', "max_tokens"),
        (b'{"prompt": "x", "max_tokens": 0}', "max_tokens"),
        (b'{"prompt": [1.5]}', "1.5"),
        (b'{"prompt": [99999999999]}', "99999999999"),
        (b'{"prompt": [60000]}', "60000"),
        (b'{"prompt": "x", "logit_bias": {"abc": 1}}', "logit_bias"),
        (b'{"prompt": "x", "temperature": -1}', "temperature"),
        (b'{"messages": [{"role": "user"}]}', "messages"),
        (b"[" * 1000, "nested"),
        (None, "NULL"),
    ],
)
def test_bad_requests_are_errors_and_the_next_one_works(llm, request_json, message):
    with pytest.raises(RuntimeError) as caught:
        llm.text("generate", request_json, CALLBACK(), None)
    assert caught.value.args[0] == 2 and message in caught.value.args[1]
    assert len(llm.generate({"prompt": "x", "max_tokens": 2})[0]["token_ids"]) <= 2


def test_bad_options_are_errors():
    for options, message in [({}, "no model"), ({"modell": "x"}, "modell"), ({"model": 5}, "model")]:
        with pytest.raises(RuntimeError) as caught:
            Minisgl(**options)
        assert message in caught.value.args[1]
