#pragma once

/// Makes texts for people, terminals and shells: counts, lines of a width, names that were nearly right,
/// foreign text that is safe to print, words quoted for a shell, the name of this host; and parses the values
/// of options and recipes.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace paceline::base {

// Parses texts of the command line and of recipes. Every function but take_number() and to_number() throws
// Error(usage) whose text is the end of a sentence that begins with the option's name: "must be a whole
// number of at least 1, got '0'".

[[nodiscard]] std::int64_t whole_number(std::string_view text, std::int64_t least,
                                        std::int64_t most = std::numeric_limits<std::int64_t>::max());

/// The same for a number inside `whole`, as the 2 in "a:2". The error names both: "must have a whole number
/// from 1 to 9 as its `what`, got 'a:x'".
[[nodiscard]] std::int64_t whole_number_in(std::string_view whole, std::string_view what,
                                           std::string_view text, std::int64_t least, std::int64_t most);

/// The limits of a decimal; `open_below` excludes `least` itself.
struct Bounds {
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
  bool open_below = false;
};
[[nodiscard]] double decimal(std::string_view text, Bounds bounds = {});

/// Takes the number off with which `text` begins, as std::from_chars reads it. Nothing, and `text` stays, if
/// it begins with none, or with one that T cannot hold.
template <typename T>
[[nodiscard]] std::optional<T> take_number(std::string_view& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// `text` as a number, if all of it is one.
template <typename T>
[[nodiscard]] std::optional<T> to_number(std::string_view text) {
  const auto value = take_number<T>(text);
  return text.empty() ? value : std::nullopt;
}

/// "true", "yes", "1", or "false", "no", "0".
[[nodiscard]] bool truth(std::string_view text);

/// The index of `text` in `names`; the error for an unknown one has the nearest name.
[[nodiscard]] std::size_t one_of(std::string_view text, std::span<const std::string> names);

/// "1,2,4" as its parts, none of which may be empty; blanks around commas are allowed.
[[nodiscard]] std::vector<std::string> parts(std::string_view text);
[[nodiscard]] std::vector<std::int64_t> whole_numbers(std::string_view text, std::int64_t least,
                                                      std::int64_t most);

/// The shortest text that parses as `value`: 0.1, 5e-04, 128.
[[nodiscard]] std::string as_text(double value);

/// The known name with the smallest edit distance (insert, delete, replace, swap of neighbours), if that is
/// at most a third of the longer length, and at least 1. Else the only known name that begins with `name`, if
/// `name` has three letters or more.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view name,
                                                      std::span<const std::string> known);

/// The text with the middle of words of more than 300 letters left out, as a number of a million digits is.
[[nodiscard]] std::string with_short_words(std::string_view text);

/// The end of an error sentence: "; did you mean 'x'?" or, if no name is close, "; known are a, b, c".
[[nodiscard]] std::string suggestion(std::string_view name, std::span<const std::string> known);

// Makes foreign text safe to print on a terminal: characters that would move the cursor, set colours or a
// title, or reverse the writing direction are escaped.

/// `text` with unprintable parts escaped ("\x1b", "\u202e"): control characters, characters that change the
/// direction of writing, and bytes that are not UTF-8. Line ends and tabs stay if `keeps_lines`; else they
/// become blanks.
[[nodiscard]] std::string visible(std::string_view text, bool keeps_lines = false);

/// "1 worker", "3 workers"; `several` where an s is not enough: "1 class", "2 classes".
[[nodiscard]] std::string counted(std::int64_t number, std::string_view one, std::string_view several = {});

/// 1e9 bytes are one.
template <typename Bytes>
[[nodiscard]] constexpr double gigabytes(Bytes bytes) {
  return static_cast<double>(bytes) / 1e9;
}

/// An estimated time: "42 s", "25 min", "1.5 h".
[[nodiscard]] std::string rough_time(double seconds);

/// What `get`, a member for example, gives of each of `values`: their names, say.
template <typename Values, typename Get>
[[nodiscard]] std::vector<std::string> texts_of(const Values& values, Get get) {
  std::vector<std::string> texts;
  for (const auto& value : values) texts.emplace_back(std::invoke(get, value));
  return texts;
}

/// The same as one text, with `separator` between them.
template <typename Values, typename Get = std::identity>
[[nodiscard]] std::string joined(const Values& values, std::string_view separator, Get get = {}) {
  std::string text;
  for (const auto& part : texts_of(values, get)) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

/// Columns that `text` needs on a terminal: code points of UTF-8.
[[nodiscard]] std::size_t display_width(std::string_view text);
/// `text` without blanks, tabs and line ends at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text);
/// Takes the first line off `text`, and returns it without its end, "\n" or "\r\n".
[[nodiscard]] std::string_view take_line(std::string_view& text);
/// The lines of `text`, without their ends; the last one may have none.
[[nodiscard]] std::vector<std::string> lines_of(std::string_view text);
/// The words between blanks and line ends.
[[nodiscard]] std::vector<std::string> words_of(std::string_view text);
/// `text` broken between words into lines of at most `width` columns; a longer word gets its own line.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// A command of the shell in lines of at most `width` columns, of which all but the last end with a
/// backslash, so that it can be copied. Never broken inside quotes; a longer word gets its own line. 0: one
/// line.
[[nodiscard]] std::vector<std::string> command_lines(std::string_view command, std::size_t width);

/// `text` with the letters A to Z in lower case.
[[nodiscard]] std::string lower_case(std::string_view text);

/// `word` in a form that a shell reads as one word: quoted if it contains characters with a meaning to the
/// shell.
[[nodiscard]] std::string shell_word(const std::string& word);
/// The words of a line made of such words: undoes shell_word().
[[nodiscard]] std::vector<std::string> shell_words(std::string_view line);

/// The machine's own name, for records and messages; "unknown" where the system has none.
[[nodiscard]] std::string host_name();
/// The longest name that Linux allows (HOST_NAME_MAX) with its terminating zero, for messages of a fixed
/// size.
inline constexpr std::size_t kHostNameBytes = 65;

}  // namespace paceline::base
