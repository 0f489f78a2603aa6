#include "base/text.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "base/error.h"

namespace paceline::base {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      cost[i][j] = std::min(
          {cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

/// A code point and its bytes; 0 bytes: what stands there is no UTF-8.
struct Letter {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

Letter letter_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : 4;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = first & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[bytes] || code > 0x10ffff || is_surrogate ? Letter{} : Letter{code, bytes};
}

bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) ||  // C0, DEL, C1
         code == 0x200e || code == 0x200f || code == 0x061c || code == 0x2028 || code == 0x2029 ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,.:/@%";

/// The words in lines of at most `width` columns; a longer word gets its own line.
std::vector<std::string> filled_lines(const std::vector<std::string>& words, std::size_t width) {
  std::vector<std::string> lines;
  for (const auto& word : words)
    if (!lines.empty() && display_width(lines.back()) + 1 + display_width(word) <= width)
      lines.back() += " " + word;
    else
      lines.push_back(word);
  return lines;
}

std::optional<std::int64_t> whole_number_between(std::string_view text, std::int64_t least,
                                                 std::int64_t most) {
  const auto value = to_number<std::int64_t>(text);
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

/// The rule that `text` breaks. It names the largest number only if `text` is larger.
std::string rule_of(std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const auto error = std::from_chars(text.data(), text.data() + text.size(), value).ec;
  const bool too_large = error == std::errc::result_out_of_range && !text.starts_with('-');
  if (most == std::numeric_limits<std::int64_t>::max() && !too_large)
    return fmt::format("a whole number of at least {}", least);
  return fmt::format("a whole number from {} to {}", least, most);
}

/// "cifar100" is not a way to write "cifar10", nor is "ntasks-per-node" one of "gpus-per-node": whether the
/// two differ in a number, or in one word of as many.
bool names_another_thing(std::string_view one, std::string_view other) {
  const auto digits = [](std::string_view name) {
    std::string found;
    std::ranges::copy_if(name, std::back_inserter(found),
                         [](char letter) { return letter >= '0' && letter <= '9'; });
    return found;
  };
  const auto words = [](std::string_view name) {
    std::vector<std::string_view> found;
    for (std::size_t end = 0; end != std::string_view::npos;
         name.remove_prefix(std::min(end + 1, name.size()))) {
      end = name.find_first_of("-_");
      found.push_back(name.substr(0, end));
    }
    return found;
  };
  const auto number = digits(one), other_number = digits(other);
  if (!number.empty() && !other_number.empty() && number != other_number) return true;
  const auto these = words(one), those = words(other);
  if (these.size() != those.size() || these.size() < 2) return false;
  for (std::size_t i = 0; i < these.size(); ++i)
    if (edit_distance(these[i], those[i]) >
        std::max<std::size_t>(1, std::max(these[i].size(), those[i].size()) / 2))
      return true;
  return false;
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> known) {
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const auto& candidate : known) {
    if (names_another_thing(name, candidate)) continue;
    const std::size_t distance = edit_distance(name, candidate);
    const std::size_t limit = std::max<std::size_t>(1, std::max(name.size(), candidate.size()) / 3);
    if (distance <= limit && (!best || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (best || name.size() < 3) return best;
  for (const auto& candidate : known) {
    if (!candidate.starts_with(name)) continue;
    if (best) return std::nullopt;  // two names match
    best = candidate;
  }
  return best;
}

std::string suggestion(std::string_view name, std::span<const std::string> known) {
  if (const auto near = nearest_name(name, known)) return fmt::format("; did you mean '{}'?", *near);
  return fmt::format("; known are {}", fmt::join(known, ", "));
}

std::string with_short_words(std::string_view text) {
  constexpr std::size_t kLongest = 300, kBegin = 200, kEnd = 50;
  std::string result;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find_first_of(" \n"));
    if (word.size() <= kLongest)
      result += word;
    else
      result += fmt::format("{}[... {} more bytes ...]{}", word.substr(0, kBegin),
                            word.size() - kBegin - kEnd, word.substr(word.size() - kEnd));
    text.remove_prefix(word.size());
    if (text.empty()) break;
    result += text.front();
    text.remove_prefix(1);
  }
  return result;
}

std::string visible(std::string_view text, bool keeps_lines) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto [code, bytes] = letter_at(text);
    const bool is_blank = bytes == 1 && (code == '\n' || code == '\t');
    if (bytes == 0)
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    else if (is_blank && !keeps_lines)
      result += ' ';
    else if (is_blank || !is_control(code))
      result += text.substr(0, bytes);
    else
      result += code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return result;
}

std::string counted(std::int64_t number, std::string_view one, std::string_view several) {
  if (number == 1) return fmt::format("1 {}", one);
  return several.empty() ? fmt::format("{} {}s", number, one) : fmt::format("{} {}", number, several);
}

std::string rough_time(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::string_view take_line(std::string_view& text) {
  auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
    if (text.empty()) return words;
    words.emplace_back(text.substr(0, text.find_first_of(" \n")));
    text.remove_prefix(words.back().size());
  }
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  return filled_lines(words_of(text), width);
}

std::vector<std::string> command_lines(std::string_view command, std::size_t width) {
  std::vector<std::string> words(1);
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char letter = command[i];
    if (quote != 0 ? letter == quote : letter == '\'' || letter == '"') quote = quote != 0 ? 0 : letter;
    if (letter == ' ' && quote == 0)
      words.emplace_back();
    else
      words.back() += letter;
    if (letter == '\\' && quote != '\'' && i + 1 < command.size()) words.back() += command[++i];
  }
  constexpr std::string_view kGoesOn = " \\";
  auto lines = filled_lines(words, width == 0 ? std::string::npos : width - std::min(width, kGoesOn.size()));
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) lines[i] += kGoesOn;
  return lines;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& letter : result)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return result;
}

std::string shell_word(const std::string& word) {
  const std::size_t begin = word.starts_with("~/") ? 1 : 0;  // quotes would prevent the expansion of ~
  if (!word.empty() && word.find_first_not_of(kPlain, begin) == std::string::npos) return word;
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

std::vector<std::string> shell_words(std::string_view line) {
  std::vector<std::string> words;
  bool is_quoted = false, is_in_word = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    char letter = line[i];
    if (!is_quoted && (letter == ' ' || letter == '\n' || letter == '\t')) {
      is_in_word = false;
      continue;
    }
    if (!is_in_word) words.emplace_back();
    is_in_word = true;
    if (letter == '\'') {
      is_quoted = !is_quoted;
      continue;
    }
    if (letter == '\\' && !is_quoted && i + 1 < line.size()) letter = line[++i];
    words.back() += letter;
  }
  return words;
}

std::string host_name() {
  std::array<char, kHostNameBytes> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::int64_t whole_number(std::string_view text, std::int64_t least, std::int64_t most) {
  if (const auto value = whole_number_between(text, least, most)) return *value;
  fail(ErrorKind::usage, "must be {}, got '{}'", rule_of(text, least, most), text);
}

std::int64_t whole_number_in(std::string_view whole, std::string_view what, std::string_view text,
                             std::int64_t least, std::int64_t most) {
  if (const auto value = whole_number_between(text, least, most)) return *value;
  fail(ErrorKind::usage, "must have {} as its {}, got '{}'", rule_of(text, least, most), what, whole);
}

double decimal(std::string_view text, Bounds bounds) {
  if (const auto value = to_number<double>(text); value && std::isfinite(*value)) {
    const bool is_above = bounds.open_below ? *value > bounds.least : *value >= bounds.least;
    if (is_above && *value <= bounds.most) return *value;
  }
  std::string rule = bounds.open_below ? fmt::format("above {}", as_text(bounds.least))
                                       : fmt::format("of at least {}", as_text(bounds.least));
  if (std::isfinite(bounds.most)) rule += fmt::format(" and at most {}", as_text(bounds.most));
  fail(ErrorKind::usage, "must be a number {}, got '{}'", rule, text);
}

bool truth(std::string_view text) {
  if (text == "true" || text == "yes" || text == "1") return true;
  if (text == "false" || text == "no" || text == "0") return false;
  fail(ErrorKind::usage, "must be true or false, got '{}'", text);
}

std::size_t one_of(std::string_view text, std::span<const std::string> names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const auto near = nearest_name(text, names);
  fail(ErrorKind::usage, "must be one of {}, got '{}'{}", fmt::join(names, ", "), text,
       near ? fmt::format("; did you mean '{}'?", *near) : "");
}

std::vector<std::string> parts(std::string_view text) {
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    const auto part = trimmed(text.substr(begin, end - begin));
    if (part.empty())
      fail(ErrorKind::usage, "must be a list such as 1,2,4 with something between the commas, got '{}'",
           text);
    result.emplace_back(part);
    begin = end + 1;
  }
  return result;
}

std::vector<std::int64_t> whole_numbers(std::string_view text, std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> result;
  for (const auto& part : parts(text)) {
    const auto value = whole_number(part, least, most);
    if (std::find(result.begin(), result.end(), value) != result.end())
      fail(ErrorKind::usage, "must not name {} twice, got '{}'", value, text);
    result.push_back(value);
  }
  return result;
}

std::string as_text(double value) { return fmt::format("{}", value); }

}  // namespace paceline::base
