#!/usr/bin/env python3
"""Makes the small tokenizers and cases of this folder with Hugging Face tokenizers (0.23.3) and
sentencepiece (0.2.3, with protobuf).

    python make_cases.py        (needs the Python packages of these names)

NAME.json is a tokenizer.json, trained on the text below; NAME.jsonl holds texts and the ids and
decoded texts that the library gives. parts.jsonl holds single normalizers, pre-tokenizers and
decoders with what they make of a text. Training breaks ties at random: another run makes other,
equally good files.
"""
import io
import json
import pathlib
import random

import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

HERE = pathlib.Path(__file__).parent
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
CORPUS = ["The quick brown fox jumps over the lazy dog, don't you think? It's 1234 o'clock.",
          "def encode(text):\n    return [vocab[c] for c in text]  # naïve\n\n",
          "你好，世界！ 日本語のテキスト。 Привет, мир! Ελληνικά 🦙 emoji 👩‍👩‍👧 café ",
          "the theory of the thing is that there is nothing there, said the other one",
          "HELLO World hello WORLD 2024-12-31 3.14159 1,000,000 x == y && z != w"] * 4

TEXTS = [
    "", " ", "  ", "\n", "Hello, world!", " leading", "trailing ", "  two  spaces  ", "don't DON'T we'll",
    "12345 3.14 1,000 ١٢٣ Ⅷ ½", "a\nb\r\n\tc\n\n\n", "naïve café", "cafe\u0301 A\u030a ﬁ ①",
    "你好 world", "日本語のテキスト", "Привет мир", "😀 emoji 👩‍👩‍👧 🏳️‍🌈", "x" * 100, "!!!???...",
    "nbsp\u00a0here\u3000wide\u200bzero\u2028line\u0085nel\u180emvs", "mixed中文123abc", "\u0000\u0001\u007f",
    "<s>hi</s>", "<s> <tool> x <tool>y", "<|user|>  hello  <|end|>\n", "a<word>b <word> <word>.", "▁under▁score",
    " ▁ ▁▁ ", "İstanbul ŞİŞLİ ß ẞ ΑΣ", "e\u0301\u0301 \u1e9b\u0323 가각 \u1100\u1161\u11a8", "tab\ttab\t\t",
    "word<mask>word", "  <mask>  x", "THE THE the The", "it''s 's 'S 'ſ", "a" * 50 + "b" * 50 + " " * 30 + "c",
    "\U0001F999.cpp", "ﷺ ㎏ ﬃ Å", "पढ़ना क्षि", "שָׁלוֹם עולם", "مرحبا بالعالم", "\ufeffbom", "\ufffd",
]


def random_texts(count, seed):
    rng = random.Random(seed)
    alphabet = list("abcdeTHE  \n\r\t'.,!019_▁-/\\") + ["é", "e\u0301", "中", "あ", "😀", "\u200d", "٣", "Ⅷ", "<s>",
                                                      "<tool>", "<word>", "<mask>", "the", "ing", "\u00a0", "Ж", "ß"]
    return ["".join(rng.choices(alphabet, k=rng.randint(1, 60))) for _ in range(count)]


def write_jsonl(name, lines):
    with open(HERE / name, "w", encoding="utf-8") as out:
        for line in lines:
            out.write(json.dumps(line, ensure_ascii=True) + "\n")


def save(name, tokenizer):
    tokenizer.save(str(HERE / f"{name}.json"), pretty=False)
    tokenizer = Tokenizer.from_file(str(HERE / f"{name}.json"))
    plain = Tokenizer.from_file(str(HERE / f"{name}.json"))
    plain.encode_special_tokens = True
    lines = []
    for text in TEXTS + random_texts(60, name):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        lines.append({"text": text, "ids": ids, "ids_special": tokenizer.encode(text).ids,
                      "ids_plain": plain.encode(text, add_special_tokens=False).ids,
                      "decoded": tokenizer.decode(ids, skip_special_tokens=False),
                      "decoded_skip": tokenizer.decode(ids)})
    rng = random.Random(name)
    for _ in range(20):  # ids in any order: broken characters too
        ids = [rng.randrange(tokenizer.get_vocab_size()) for _ in range(rng.randint(1, 12))]
        lines.append({"ids_only": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False),
                      "decoded_skip": tokenizer.decode(ids)})
    write_jsonl(f"{name}.jsonl", lines)


ADDED = [AddedToken("<tool>", lstrip=True, rstrip=True, normalized=False),
         AddedToken("<word>", single_word=True, normalized=False),
         AddedToken("<mask>", lstrip=True, special=True, normalized=False),
         AddedToken("The", normalized=True), AddedToken("<|user|>", rstrip=True, normalized=True)]


def byte_level():
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=420, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    t.add_tokens(ADDED)
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])])
    save("byte_level", t)


def mapped_bytes():
    """ByteLevel in the middle, so that later steps see its alphabet; add_prefix_space."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=True),
        pre_tokenizers.Digits(), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=380, special_tokens=["<s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    t.add_tokens(ADDED)
    t.post_processor = processors.RobertaProcessing(("<s>", 0), ("<s>", 0))
    save("mapped_bytes", t)


def sentencepiece_like(name, prefix, byte_fallback):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=byte_fallback))
    steps = [normalizers.Prepend("▁")] if prefix else []
    t.normalizer = normalizers.Sequence(steps + [normalizers.Replace(" ", "▁")])
    if not prefix:
        t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    bytes_ = [f"<0x{i:02X}>" for i in range(256)] if byte_fallback else []
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=520 if byte_fallback else 240, special_tokens=["<unk>", "<s>", "</s>"] + bytes_,
        show_progress=False, limit_alphabet=40))
    data = json.loads(t.to_str())
    data["added_tokens"] = [a for a in data["added_tokens"] if not a["content"].startswith("<0x")]
    t = Tokenizer.from_str(json.dumps(data))
    t.add_tokens(ADDED)
    chain = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    t.decoder = decoders.Sequence(chain + ([decoders.Strip(" ", 1, 0)] if prefix else []))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    save(name, t)


def unigram(name, scheme, byte_fallback):
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("▁", -3.0)]
    if byte_fallback:
        pieces += [(f"<0x{i:02X}>", -20.0) for i in range(256)]
    rng = random.Random(1)
    words = sorted({w for line in CORPUS for w in line.split()})
    subs = sorted({("▁" if i == 0 else "") + w[i:j] for w in words for i in range(len(w))
                   for j in range(i + 1, min(len(w), i + 5) + 1) if w.isascii()})
    pieces += [(s, -round(4 + 6 * rng.random() / len(s), 4)) for s in subs if len(s) < 3 or rng.random() < 0.3]
    t = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=byte_fallback))
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=scheme == "always")
    t.decoder = (decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme=scheme)])
                 if byte_fallback else decoders.Metaspace(prepend_scheme=scheme))
    t.add_special_tokens(["<s>"])
    t.add_tokens(ADDED)
    save(name, t)


def no_decoder():
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace()])
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=200, special_tokens=["<unk>"], show_progress=False,
                                                      limit_alphabet=50))
    save("no_decoder", t)


def charsmap():
    from sentencepiece import sentencepiece_model_pb2
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString((HERE / "spm_nfkc.model").read_bytes())
    return model.normalizer_spec.precompiled_charsmap


def parts():
    lines = []
    texts = TEXTS + random_texts(12, "parts")
    N, P, D = normalizers, pre_tokenizers, decoders
    for part in [N.NFC(), N.NFD(), N.NFKC(), N.NFKD(), N.Lowercase(), N.StripAccents(), N.Strip(),
                 N.Strip(left=False), N.Prepend("▁"), N.Replace(" ", "▁"), N.Replace(Regex(r"\s+"), "_"),
                 N.BertNormalizer(), N.BertNormalizer(clean_text=False, strip_accents=False),
                 N.Sequence([N.NFD(), N.StripAccents(), N.NFC()]), N.Precompiled(charsmap())]:
        config = json.loads(part.__getstate__())
        lines.append({"kind": "normalizer", "config": config,
                      "cases": [[text, part.normalize_str(text)] for text in texts]})
    splits = [(Regex(LLAMA3), "isolated"), (Regex(r"\p{N}{1,3}"), "removed"), (Regex(r"\d"), "merged_with_previous"),
              (Regex(r"\d"), "merged_with_next"), (Regex(r"[\d.]"), "contiguous"), (" ", "merged_with_previous"),
              (" ", "merged_with_next"), (Regex(r"\w+"), "isolated"), (Regex(r"\W"), "removed"),
              (Regex(r"\b"), "isolated"), (Regex(r"\h+"), "isolated"), (Regex(r"[\h]{,2}x"), "isolated"),
              (Regex(r"\p{N}{1,2}+"), "isolated"), (Regex(r"(?:ab|a){1,2}+b"), "isolated"), (Regex(r"^\s|\s$"), "isolated"),
              (Regex(r"(?m:b.c)"), "isolated"), (Regex(r"[^\s\S]|[\u4e00-\u9fa5]+"), "isolated"),
              (Regex(r"[^\s\w]+"), "isolated"), (Regex(r"x*"), "isolated"), (Regex(r"\p{Han}+|[[:digit:]]+"), "isolated"),
              (Regex(r"(?i)[THE]+"), "contiguous"), (Regex(r"(?<=e)\s"), "isolated"), (Regex(r"\x{4e2d}|\."), "isolated"),
              (Regex(r"'(?i:[sdmt]|ll|ve|re)|\p{Lu}?+\p{Ll}++"), "isolated"), (Regex(r"\A.|.\z"), "isolated")]
    made = [P.Split(pattern, behavior, invert) for pattern, behavior in splits for invert in (False, True)]
    made += [P.ByteLevel(), P.ByteLevel(add_prefix_space=False), P.ByteLevel(use_regex=False), P.Digits(), P.Digits(True),
             P.Punctuation(), P.Punctuation("removed"), P.Whitespace(), P.WhitespaceSplit(), P.BertPreTokenizer(),
             P.CharDelimiterSplit("a"), P.Metaspace(), P.Metaspace(prepend_scheme="never"),
             P.Metaspace(prepend_scheme="first", split=False), P.Metaspace("_"),
             P.Sequence([P.WhitespaceSplit(), P.Metaspace(prepend_scheme="first"), P.Digits(True)])]
    for part in made:
        config = json.loads(part.__getstate__())
        lines.append({"kind": "pre_tokenizer", "config": config,
                      "cases": [[text, [piece for piece, _ in part.pre_tokenize_str(text)]] for text in texts if text]})
    tokens = ["▁Hello", "▁▁wor", "ld", "<0xE4>", "<0xBD>", "<0xA0>", "▁", "Ġthe", "<0xFF>", "<0x41>", "é", "Ċ", " a ",
              "  ", "<0x0A>", "中", "ä½ł", "😀", "x", "", "ðŁ", "¤", "Ļ"]
    rng = random.Random(2)
    for part in [D.ByteLevel(), D.ByteFallback(), D.Fuse(), D.Metaspace(), D.Metaspace(prepend_scheme="never"),
                 D.Metaspace("_"), D.Strip(" ", 1, 0), D.Replace("▁", " "), D.Replace("wor", "WOR"),
                 D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]),
                 D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()]),
                 D.Sequence([D.Fuse(), D.Replace("▁", " "), D.Strip(" ", 2, 0)]),
                 D.Sequence([D.ByteFallback(), D.Metaspace()])]:
        config = json.loads(part.__getstate__())
        chosen = [rng.choices(tokens, k=rng.randint(1, 10)) for _ in range(30)]
        lines.append({"kind": "decoder", "config": config, "cases": [[t, part.decode(t)] for t in chosen]})
    write_jsonl("parts.jsonl", lines)


def sentencepiece_model(name, kind, extra_spaces, rules="identity"):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, vocab_size=360 if kind == "unigram" else 420,
        model_type=kind, byte_fallback=True, normalization_rule_name=rules, character_coverage=0.98,
        remove_extra_whitespaces=not extra_spaces, hard_vocab_limit=False, minloglevel=2)
    (HERE / f"{name}.model").write_bytes(model.getvalue())
    spm = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    lines = []
    for text in TEXTS + random_texts(60, name):
        if "\u0000" in text:
            continue
        ids = spm.encode(text)
        lines.append({"text": text, "ids": ids, "decoded": spm.decode(ids)})
    write_jsonl(f"{name}.model.jsonl", lines)


byte_level()
mapped_bytes()
sentencepiece_model("spm_bpe", "bpe", True)
sentencepiece_model("spm_unigram", "unigram", False)
sentencepiece_model("spm_nfkc", "unigram", False, "nmt_nfkc")
sentencepiece_like("llama_like", prefix=True, byte_fallback=True)
sentencepiece_like("gemma_like", prefix=False, byte_fallback=True)
sentencepiece_like("unk", prefix=True, byte_fallback=False)
unigram("unigram", "always", False)
unigram("unigram_bytes", "first", True)
no_decoder()
parts()
