#!/usr/bin/env python3
"""Writes chat_template/cases.jsonl: templates with what Jinja 2 makes of them.

Sources: chat_template/snippets.txt (one feature each) and chat_template/families/*.jinja (templates in
the style of the big model families), each rendered for several conversations.

    python3 -m venv venv && venv/bin/pip install 'jinja2==3.1.6'
    venv/bin/python tests/data/make_chat_template_cases.py

The environment is set up as Hugging Face transformers does for chat templates. One difference: lists
and dicts may be changed by their methods, which transformers' sandbox refuses and minisgl allows.
A line is {"template" or "family", "variables"} with one of "expected" (the text), "raised" (the message of
raise_exception) or "fails" (any other error: only that it is one).
"""

import json
import pathlib
from datetime import datetime

import jinja2
import jinja2.ext
from jinja2.ext import Extension
from jinja2.sandbox import SandboxedEnvironment

FOLDER = pathlib.Path(__file__).parent / "chat_template"
NOW = datetime(2024, 7, 26, 14, 5, 9)


class Raised(jinja2.exceptions.TemplateError):
    pass


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(lineno)

    def _render(self, caller):
        return caller()


def raise_exception(message):
    raise Raised(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def expectation(template, variables):
    try:
        text = environment().from_string(template).render(**variables)
        text.encode("utf-8")
        return {"expected": text}
    except Raised as error:
        return {"raised": str(error)}
    except Exception as error:  # noqa: BLE001: every failure of the template is a case
        return {"fails": type(error).__name__}


VARIABLES = {
    "name": "World", "empty": "", "n": 7, "zero": 0, "f": 2.5, "t": True, "no": False, "nil": None,
    "xs": [3, 1, 2], "words": ["banana", "Apple", "cherry"], "none_list": [],
    "text": "  Hello, World!  ", "uni": "héllo wörld 日本語 🦙", "lines": "one\ntwo\r\nthree\n\nfive",
    "d": {"b": 2, "a": 1, "C": 3}, "nested": {"x": {"y": [1, {"z": "deep"}]}},
    "users": [{"name": "ann", "age": 30, "admin": True}, {"name": "Bob", "age": 25, "admin": False},
              {"name": "cid", "age": 30}],
    "quote": "it's \"q\" \\ \n\t\x07é\u200b", "html": "<b>\"x\" & 'y'</b>",
    "tool": {"type": "function", "function": {"name": "get_weather", "description": "Wetter für <Ort> & \"mehr\"",
             "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer", "maximum": 18446744073709551615}},
                            "required": ["city"]}}},
    "floats": [1.0, 0.1, 1e16, 1e15, 123456789.125, 1e-5, 0.0001, -0.0, 1e300, 3.0e-10, 100000.0],
}

CALL = {"id": "abc123def", "type": "function",
        "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 2, "opts": {"units": ["C"], "x": None}}}}
CONVERSATIONS = [
    [{"role": "user", "content": "Hello"}],
    [{"role": "system", "content": "You are terse. "}, {"role": "user", "content": " What is 2+2? "},
     {"role": "assistant", "content": "<think>\nsum\n</think>\n\n 4\n"}, {"role": "user", "content": "And 'é' & <b>?"}],
    [{"role": "user", "content": "weather?"}, {"role": "assistant", "content": "", "tool_calls": [CALL]},
     {"role": "tool", "tool_call_id": "abc123def", "content": "{\"temp\": 21}"}, {"role": "assistant", "content": "21 degrees"}],
    [{"role": "user", "content": "weather?"}, {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]},
     {"role": "tool", "tool_call_id": "abc123def", "content": "1"}, {"role": "tool", "tool_call_id": "abc123def", "content": "2"}],
    [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
    [{"role": "system", "content": "s"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}],
    [{"role": "user", "content": [{"type": "text", "text": "part "}, {"type": "image"}]}],
    [{"role": "alien", "content": "x"}],
]


def cases():
    for snippet in (FOLDER / "snippets.txt").read_text()[:-1].split("\n====\n"):
        yield {"template": snippet}, {k: v for k, v in VARIABLES.items() if k in snippet}
    for extra, variables in EXTRA:
        yield {"template": extra}, variables
    for path in sorted((FOLDER / "families").glob("*.jinja")):
        for messages in CONVERSATIONS:
            for tools in (None, [VARIABLES["tool"]]):
                for add in (False, True):
                    yield {"family": path.stem}, {
                        "messages": messages, "tools": tools, "documents": None, "add_generation_prompt": add,
                        "bos_token": "<s>", "eos_token": "</s>"}


EXTRA = [
    ("a\n", {}), ("a\n\n", {}), ("a\r\nb\rc\r\n", {}), ("", {}), ("\n", {}), ("{{ x }}\n", {"x": "v\n"}),
    ("{% if true %}\n\n  a\n{% endif %}\n\nb", {}), ("{{ '\r\n' }}|", {}),
    ("{% for x in xs %}\n  {{ x }}\n{% endfor %}\n", {"xs": [1, 2]}),
    ("x {% if true %} y {% endif %} z\n  {# c #}\n  w\n", {}),
    ("{{ a }}{{ b }}", {"a": 18446744073709551615, "b": -9223372036854775808}),
    ("{{ range }}{{ x }}", {"range": "shadow", "x": 1}),
    ("{% set loop_messages = messages %}{% for m in loop_messages if m.role == 'user' and not ns.found %}{% set ns.found = true %}{{ m.content }}{% endfor %}".replace("{% set loop", "{% set ns = namespace(found=false) %}{% set loop"),
     {"messages": [{"role": "user", "content": "1"}, {"role": "user", "content": "2"}]}),
    ("{{ x.items.y }}|{{ x['items'].y }}", {"x": {"items": {"y": 1}}}),
    ("{% for k, v in x.items() %}{{ k }}:{{ v }} {% endfor %}", {"x": {"z": 1, "a": [1, None]}}),
    ("{{ 'a' if x is none else x }}", {"x": None}),
    ("{{ x | trim | length }}", {"x": " \u00a0\u3000a\u2003 "}),
    ("{{ x }}", {"x": {"a": [1, {"b": None}], "c": "it's", "d": 1.5, "e": True}}),
    ("{{ x | string | replace(\"'\", '\"') }}", {"x": {"a": "b"}}),
]


def main():
    lines = []
    for source, variables in cases():
        template = source.get("template") or source.get("family") and (
            FOLDER / "families" / (source["family"] + ".jinja")).read_text() or ""
        lines.append(json.dumps({**source, "variables": variables, **expectation(template, variables)}))
    (FOLDER / "cases.jsonl").write_text("\n".join(lines) + "\n")
    kinds = [next(k for k in ("expected", "raised", "fails") if k in json.loads(line)) for line in lines]
    print(len(lines), "cases:", {k: kinds.count(k) for k in sorted(set(kinds))})


if __name__ == "__main__":
    main()
