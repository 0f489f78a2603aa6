#include "data/formats/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/word_of.h"
#include "data/file_bytes.h"

namespace paceline::data {
namespace {

constexpr std::size_t kLongestName = 1000;

std::string_view word(Pickle::Kind kind) {
  return base::word_of<Pickle::Kind::stored>(
      kind, {"None", "a truth value", "a whole number", "a string", "a list", "a tuple", "a dictionary",
             "a name", "an object", "a number", "a storage"});
}

}  // namespace

Pickle::Pickle(std::string file, std::span<const std::uint8_t> bytes, Dialect dialect)
    : file_(std::move(file)), bytes_(bytes), dialect_(std::move(dialect)) {
  // The first protocols have no such beginning.
  const bool has_protocol = bytes.size() >= 2 && bytes[0] == 0x80;
  if (dialect_.takes_all_protocols ? has_protocol && bytes[1] > 5 : !has_protocol || bytes[1] != 2)
    fail(0, "a pickle of protocol 2 begins with the bytes 128 and 2, and this file does not");
  next_ = has_protocol ? 2 : 0;
  while (root_ < 0) {
    const std::size_t offset = next_;
    step(take(1).front(), offset);
    if (stack_.size() + marks_.size() + memo_.size() > 3 * kMostValues)
      fail(offset, fmt::format("it holds more than {} values", kMostValues));
  }
  if (next_ != bytes.size()) fail(next_, "the pickle is at its end, but the file goes on");
}

void Pickle::fail(std::size_t offset, std::string_view rule) const {
  base::fail(base::ErrorKind::data, "{}: at byte {}: {}; {}", file_, offset, rule, dialect_.next_step);
}

void Pickle::step(std::uint8_t operation, std::size_t offset) {
  if (read_value(operation, offset) || remember_or_recall(operation, offset) || collect(operation, offset) ||
      (dialect_.takes_all_protocols && read_more(operation, offset)))
    return;
  fail(offset, fmt::format("the operation {:#04x} is not one that this program reads", operation));
}

/// Operations that push a value read from the file.
bool Pickle::read_value(std::uint8_t operation, std::size_t offset) {
  const auto number = [&](std::int64_t value) {
    push({.kind = Kind::integer, .offset = offset, .number = value});
  };
  switch (operation) {
    case 'N':
      push({.kind = Kind::none, .offset = offset});
      return true;
    case 0x88:
    case 0x89:
      push({.kind = Kind::truth, .offset = offset, .number = operation == 0x88 ? 1 : 0});
      return true;
    case 'K':
    case 'M':
      number(take_number(operation == 'K' ? 1 : 2));
      return true;
    case 'J':
      number(static_cast<std::int32_t>(take_number(4)));
      return true;
    case 'U':  // a byte string of Python 2, its length in one byte
      push({.kind = Kind::text, .offset = offset, .text = take_text(take_number(1))});
      return true;
    case 'T':  // the same, its length in four
    case 'X':  // UTF-8
      push({.kind = Kind::text, .offset = offset, .text = take_text(take_number(4))});
      return true;
    case 'c': {  // module and name, a line each
      const std::string_view module = take_line();
      const std::string_view name = take_line();
      push_name({module.data(), module.size() + 1 + name.size()}, offset);
      return true;
    }
    default:
      return false;
  }
}

/// Operations on the memo (the numbered memory of values) and on marks.
bool Pickle::remember_or_recall(std::uint8_t operation, std::size_t offset) {
  switch (operation) {
    case 'q':
    case 'r': {
      const auto key = take_number(operation == 'q' ? 1 : 4);
      if (stack_.empty()) fail(offset, "a value is to be stored in the memo, but the stack is empty");
      memo_[key] = stack_.back();
      return true;
    }
    case 'h':
    case 'j': {
      const auto key = take_number(operation == 'h' ? 1 : 4);
      const auto found = memo_.find(key);
      if (found == memo_.end()) fail(offset, fmt::format("memo entry {} was never stored", key));
      stack_.push_back(found->second);
      return true;
    }
    case '(':
      marks_.push_back(stack_.size());
      return true;
    default:
      return false;
  }
}

/// Operations that make or fill containers, and the end.
bool Pickle::collect(std::uint8_t operation, std::size_t offset) {
  const auto tuple_of = [&](std::size_t count) {
    std::vector<int> members(count);
    for (std::size_t i = count; i-- > 0;) members[i] = pop(offset);
    push({.kind = Kind::tuple, .offset = offset, .members = std::move(members)});
  };
  const auto extend = [&](Kind kind, const std::vector<int>& more) {
    const bool is_object = !stack_.empty() && at(stack_.back()).kind == Kind::call;
    auto& members = top_of(is_object ? Kind::call : kind, offset).members;
    members.insert(members.end(), more.begin(), more.end());
  };
  switch (operation) {
    case '}':
    case ']':
    case ')':
      push({.kind = operation == '}'   ? Kind::dictionary
                    : operation == ']' ? Kind::list
                                       : Kind::tuple,
            .offset = offset});
      return true;
    case 0x85:
    case 0x86:
    case 0x87:
      tuple_of(operation - 0x84u);
      return true;
    case 't':
      push({.kind = Kind::tuple, .offset = offset, .members = pop_to_mark(offset)});
      return true;
    case 'a':
      extend(Kind::list, {pop(offset)});
      return true;
    case 'e':
      extend(Kind::list, pop_to_mark(offset));
      return true;
    case 's': {
      const int value = pop(offset), key = pop(offset);
      extend(Kind::dictionary, {key, value});
      return true;
    }
    case 'u': {
      const auto pairs = pop_to_mark(offset);
      if (pairs.size() % 2 != 0) fail(offset, "a dictionary is given a key without a value");
      extend(Kind::dictionary, pairs);
      return true;
    }
    case 'R':
      push_call(offset);
      return true;
    case 'b': {
      const int state = pop(offset);
      top_of(Kind::call, offset).state = state;
      return true;
    }
    case '.':
      root_ = pop(offset);
      if (!stack_.empty() || !marks_.empty()) fail(offset, "the pickle ends with values left over");
      return true;
    default:
      return false;
  }
}

/// Operations of all protocols but the second, of values outside the pickle, and of numbers beyond 32 bits.
bool Pickle::read_more(std::uint8_t operation, std::size_t offset) {
  switch (operation) {
    case 'Q':  // what stands before it says where the value is
      push({.kind = Kind::stored, .offset = offset, .members = {pop(offset)}});
      return true;
    case 0x81:  // a class that is called
      push_call(offset);
      return true;
    case 'G':  // a double
      (void)take(8);
      push({.kind = Kind::number, .offset = offset});
      return true;
    case 0x8a: {  // its length in bytes comes first
      const auto bytes = take(take_number(1));
      std::uint64_t value = !bytes.empty() && bytes.back() >= 0x80 ? ~std::uint64_t{0} : 0;
      for (std::size_t i = std::min<std::size_t>(bytes.size(), 8); i-- > 0;) value = value << 8 | bytes[i];
      push({.kind = bytes.size() > 8 ? Kind::number : Kind::integer,
            .offset = offset,
            .number = static_cast<std::int64_t>(value)});
      return true;
    }
    case 'C':
    case 0x8c:
    case 'B':
      push({.kind = Kind::text, .offset = offset, .text = take_text(take_number(operation == 'B' ? 4 : 1))});
      return true;
    case 0x8f:  // a set
      push({.kind = Kind::list, .offset = offset});
      return true;
    case 0x90:
      return collect('e', offset);
    case 0x93: {
      constexpr std::string_view kWhat = "module and name are strings";
      const Value &name = expect(at(pop(offset)), Kind::text, kWhat),
                  &module = expect(at(pop(offset)), Kind::text, kWhat);
      if (name.text.size() + module.text.size() > kLongestName) fail(offset, "a name is too long");
      push_name(joined_names_.emplace_back(fmt::format("{}\n{}", module.text, name.text)), offset);
      return true;
    }
    case 0x94:
      if (stack_.empty()) fail(offset, "a value is to be stored in the memo, but the stack is empty");
      memo_[static_cast<std::uint32_t>(memo_.size())] = stack_.back();
      return true;
    case 0x95:  // how long the next part is, for readers of streams
      (void)take(8);
      return true;
    default:
      return false;
  }
}

/// Of the name and the arguments on the stack.
void Pickle::push_call(std::size_t offset) {
  const int arguments = pop(offset), name = pop(offset);
  (void)expect(at(name), Kind::name, "a call needs the name of a function");
  push({.kind = Kind::call, .offset = offset, .members = {name, arguments}});
}

void Pickle::push_name(std::string_view name, std::size_t offset) {
  if (dialect_.check_name) dialect_.check_name(name);
  push({.kind = Kind::name, .offset = offset, .text = name});
}

std::span<const std::uint8_t> Pickle::take(std::size_t count) {
  if (count > bytes_.size() - next_)
    fail(next_, fmt::format("{} bytes more are announced, but the file ends after {}: it is truncated", count,
                            bytes_.size() - next_));
  const auto taken = bytes_.subspan(next_, count);
  next_ += count;
  return taken;
}

/// Little-endian.
std::uint32_t Pickle::take_number(std::size_t bytes) {
  return static_cast<std::uint32_t>(number_at(take(bytes), 0, bytes));
}

std::string_view Pickle::take_text(std::size_t bytes) { return as_chars(take(bytes)); }

std::string_view Pickle::take_line() {
  const auto rest = bytes_.subspan(next_);
  const void* end = rest.empty() ? nullptr : std::memchr(rest.data(), '\n', rest.size());
  if (end == nullptr) fail(next_, "a name must be a line, but the file ends within it: it is truncated");
  const auto line = take_text(static_cast<std::size_t>(static_cast<const std::uint8_t*>(end) - rest.data()));
  (void)take(1);
  return line;
}

int Pickle::make(Value value) {
  if (values_.size() == kMostValues)
    fail(value.offset, fmt::format("it holds more than {} values", kMostValues));
  values_.push_back(std::move(value));
  return static_cast<int>(values_.size()) - 1;
}

int Pickle::pop(std::size_t offset) {
  if (stack_.size() == (marks_.empty() ? 0 : marks_.back()))
    fail(offset, "a value is needed, but the stack is empty");
  const int value = stack_.back();
  stack_.pop_back();
  return value;
}

std::vector<int> Pickle::pop_to_mark(std::size_t offset) {
  if (marks_.empty()) fail(offset, "values after a mark are needed, but there is no mark");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<int> values(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return values;
}

Pickle::Value& Pickle::top_of(Kind kind, std::size_t offset) {
  if (stack_.empty()) fail(offset, fmt::format("{} is to be filled, but there is none", word(kind)));
  auto& value = values_[static_cast<std::size_t>(stack_.back())];
  (void)expect(value, kind, "another kind of value is to be filled");
  return value;
}

const Pickle::Value& Pickle::member(const Value& dictionary, std::string_view key) const {
  (void)expect(dictionary, Kind::dictionary, fmt::format("a dictionary with '{}' is needed", key));
  for (std::size_t i = 0; i < dictionary.members.size(); i += 2) {
    const Value& name = at(dictionary.members[i]);
    if (name.kind == Kind::text && name.text == key) return at(dictionary.members[i + 1]);
  }
  fail(dictionary.offset, fmt::format("the dictionary has no '{}'", key));
}

const Pickle::Value& Pickle::expect(const Value& value, Kind kind, std::string_view what) const {
  if (value.kind != kind) fail(value.offset, fmt::format("{}, but this is {}", what, word(value.kind)));
  return value;
}

}  // namespace paceline::data
