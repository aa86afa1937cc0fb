// What Python's operators do with values.
#pragma once

#include <optional>
#include <vector>

#include "tokenizer/chat_template/ast.h"
#include "tokenizer/chat_template/value.h"

namespace minisgl::jinja {

Value binary(Heap& heap, BinaryOp op, const Value& a, const Value& b);
Value negate(const Value& value);
// item in container
bool contains(Heap& heap, const Value& container, const Value& item);

// The items that a loop sees. A generator gives them once. Fails on what cannot be iterated.
std::vector<Value> iterate(Heap& heap, const Value& value);
bool is_iterable(const Value& value);
// len(value), or nothing for what has no length.
std::optional<int64_t> length_of(const Value& value);

// value[start:stop:step], bounds null where left out. Nothing where Python cannot slice it.
std::optional<Value> slice(Heap& heap, const Value& value, const Value* start, const Value* stop,
                           const Value* step);
// value[index] of a list, tuple, range or string; nothing where out of range or not indexable.
std::optional<Value> element(Heap& heap, const Value& value, const Value& index);

// `value` as an integer that fits a size: clamped far outside of every limit. Fails on
// non-integers.
int64_t to_index(const Value& value);
// `value` within ± (2^126 - 1), or an error.
Integer checked(Integer value);
Integer checked_product(Integer a, Integer b);
Integer floor_div(Integer a, Integer b);
Value power(const Value& a, const Value& b);

}  // namespace minisgl::jinja
