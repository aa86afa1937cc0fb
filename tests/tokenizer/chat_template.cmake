# The chat template's tests, relative to tests/tokenizer.
set(CHAT_TEMPLATE_TESTS chat_template_test.cpp tokenize_jsonl_test.cpp)
