#pragma once

/// Reads the subset of Python's pickles that data files and weights use: dictionaries, lists, tuples,
/// strings, numbers, and function calls, by which arrays are stored.
///
/// Nothing is executed. A function call becomes a value with the function's name and its arguments; who uses
/// the Pickle checks whether it knows that function. An operation outside the subset is an error.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace paceline::data {

class Pickle {
 public:
  /// number: one that is no integer of 64 bits; stored: contents that lie outside the pickle.
  enum class Kind { none, truth, integer, text, list, tuple, dictionary, name, call, number, stored };

  struct Value {
    Kind kind = Kind::none;
    std::size_t offset = 0;      ///< of the operation that made the value, in `bytes`
    std::int64_t number = 0;     ///< of kind integer; of kind truth (a bool): 0 or 1
    std::string_view text = {};  ///< of kind text; of kind name: module and name, "numpy\ndtype"
    /// Indices for at(). list, tuple: the elements; dictionary: key, value, key, ...; call: name, arguments,
    /// then what was put into the object that it made; stored: what says where the contents are.
    std::vector<int> members = {};
    /// Of kind call: index of the argument of BUILD, which sets the object's state; -1: none.
    int state = -1;
  };

  struct Dialect {
    std::string next_step;             ///< for the reader of a message
    bool takes_all_protocols = false;  ///< else 2 alone, without values that lie outside the pickle
    /// Called with each name ("numpy\ndtype") where it stands; throws for one that the file must not have.
    std::function<void(std::string_view name)> check_name = {};
  };

  /// Parses `bytes`, which must outlive this object. `file` is for messages.
  ///
  /// Cost     about 80 bytes a value; more than kMostValues values are refused
  /// Errors   Error(data) with file, offset and the rule that the bytes break
  Pickle(std::string file, std::span<const std::uint8_t> bytes, Dialect dialect);

  [[nodiscard]] const Value& root() const { return at(root_); }
  [[nodiscard]] const Value& at(int index) const { return values_[static_cast<std::size_t>(index)]; }

  /// The value of `key` in a dictionary.
  ///
  /// Errors   Error(data): `dictionary` is of another kind or has no such key
  [[nodiscard]] const Value& member(const Value& dictionary, std::string_view key) const;
  /// `value`, which must be of `kind`; `what` is the rule for the message ("a dictionary is needed").
  ///
  /// Errors   Error(data): it is of another kind
  [[nodiscard]] const Value& expect(const Value& value, Kind kind, std::string_view what) const;
  /// Throws Error(data): "FILE: at byte OFFSET: RULE; ...".
  [[noreturn]] void fail(std::size_t offset, std::string_view rule) const;

  static constexpr std::size_t kMostValues = 1'000'000;

 private:
  void step(std::uint8_t operation, std::size_t offset);
  bool read_value(std::uint8_t operation, std::size_t offset);
  bool remember_or_recall(std::uint8_t operation, std::size_t offset);
  bool collect(std::uint8_t operation, std::size_t offset);
  bool read_more(std::uint8_t operation, std::size_t offset);
  void push_call(std::size_t offset);
  void push_name(std::string_view name, std::size_t offset);

  std::span<const std::uint8_t> take(std::size_t count);
  std::uint32_t take_number(std::size_t bytes);
  std::string_view take_text(std::size_t bytes);
  std::string_view take_line();
  int make(Value value);
  void push(Value value) { stack_.push_back(make(std::move(value))); }
  int pop(std::size_t offset);
  std::vector<int> pop_to_mark(std::size_t offset);
  Value& top_of(Kind kind, std::size_t offset);

  std::string file_;
  std::span<const std::uint8_t> bytes_;
  Dialect dialect_;
  std::size_t next_ = 0;
  std::vector<Value> values_;
  std::vector<int> stack_;
  std::vector<std::size_t> marks_;  ///< stack sizes
  std::unordered_map<std::uint32_t, int> memo_;
  std::deque<std::string> joined_names_;  ///< those that do not lie in `bytes_`
  int root_ = -1;
};

}  // namespace paceline::data
