# The chat template's sources, relative to src/tokenizer.
set(CHAT_TEMPLATE_SOURCES
    chat_template/builtins.cpp chat_template/chat_template.cpp chat_template/filters.cpp
    chat_template/interpreter.cpp chat_template/lexer.cpp chat_template/methods.cpp
    chat_template/operators.cpp chat_template/parser.cpp chat_template/python_format.cpp
    chat_template/python_text.cpp chat_template/render_chat.cpp chat_template/tests.cpp
    chat_template/tojson.cpp chat_template/value.cpp)
