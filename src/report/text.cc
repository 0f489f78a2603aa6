#include "report/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>

namespace paceline::report {

std::string_view name(Format format) {
  return word_of<Format::scientific>(format, {"text", "integer", "fixed1", "fixed2", "fixed3", "percent1",
                                              "seconds", "milliseconds", "bytes", "rate", "scientific"});
}
std::string_view name(PlotKind kind) { return word_of<PlotKind::stacked_bar>(kind, {"line", "stacked_bar"}); }
std::string_view name(Paragraph::Tone tone) {
  return word_of<Paragraph::Tone::warning>(tone, {"plain", "finding", "warning"});
}
std::string_view name(Certainty certainty) {
  return word_of<Certainty::not_measured>(certainty,
                                          {"decided", "tie", "not_decided", "careful", "not_measured"});
}
std::string_view sign_of(Certainty certainty) {
  return word_of<Certainty::not_measured>(certainty, {"✓", "≈", "?", "!", "–"});
}
std::string_view name(Comparison::Word word) {
  return word_of<Comparison::Word::not_compared>(
      word, {"improved", "regressed", "no_change", "within_noise", "not_decided", "not_compared"});
}
std::string_view name(Expectation::Verdict verdict) {
  return word_of<Expectation::Verdict::not_measured>(verdict,
                                                     {"pass", "fail", "not_decided", "not_measured"});
}

namespace {

std::string with_blanks(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

constexpr int kMostDecimals = 12;

/// So many that three figures are seen, of small values two, and never fewer than the unit's own digit.
int decimals_for(double value) {
  const double size = std::abs(value);
  if (size == 0 || size >= 999.5) return 0;
  if (size >= 9.995) return 1;
  if (size >= 0.9995) return 2;
  if (size >= 0.09995) return 3;
  if (size >= 0.00095) return 4;
  return std::min(1 - static_cast<int>(std::floor(std::log10(size))), kMostDecimals);
}

std::string with_thousands(std::string_view digits) {
  const std::size_t begin = digits.starts_with('-') ? 1 : 0;
  const std::size_t end = std::min(digits.find('.'), digits.size());
  std::string result;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > begin && i < end && (end - i) % 3 == 0) result += ',';
    result += digits[i];
  }
  return result;
}

std::string fixed(double value, int decimals) {
  std::string text = with_thousands(fmt::format("{:.{}f}", value, decimals));
  if (text.starts_with('-') && text.find_first_not_of("-0.,") == std::string::npos) text.erase(0, 1);
  return text;
}

/// How a format turns a value into digits: the factor, the decimals (shared by a figure and its interval, so
/// that they can be compared by eye) and what follows.
struct NumberFormat {
  double factor = 1;
  int decimals = 0;
  const char* suffix = "";
};

NumberFormat bytes_shape(double value) {
  const double size = std::abs(value);
  if (size >= 1e9) return {1e-9, 2, " GB"};
  if (size >= 1e6) return {1e-6, size >= 1e8 ? 0 : 1, " MB"};
  if (size >= 1e3) return {1e-3, 1, " kB"};
  return {1, 0, " B"};
}

NumberFormat shape_of_number(Format format, double value) {
  switch (format) {
    case Format::fixed1:
      return {1, 1};
    case Format::fixed2:
      return {1, 2};
    case Format::fixed3:
      return {1, 3};
    case Format::percent1:
      return {100, 1, " %"};
    case Format::milliseconds:
      return {1e3, decimals_for(value * 1e3)};
    case Format::bytes:
      return bytes_shape(value);
    case Format::seconds:
    case Format::rate:
      return {1, decimals_for(value)};
    case Format::text:
    case Format::integer:
    case Format::scientific:
      break;
  }
  return {};
}

}  // namespace

std::string text_of(Certainty certainty) { return with_blanks(name(certainty)); }
std::string text_of(Comparison::Word word) { return with_blanks(name(word)); }

std::string text_of(Expectation::Verdict verdict) {
  const auto sign = word_of<Expectation::Verdict::not_measured>(verdict, {"✓", "✗", "?", "–"});
  return fmt::format("{} {}", sign, with_blanks(name(verdict)));
}

std::string figure_with_unit(const Answer& answer) {
  return answer.unit.empty() ? answer.figure : fmt::format("{} {}", answer.figure, answer.unit);
}

std::string chip_or_word(const Answer& answer) {
  return answer.chip.empty() ? text_of(answer.certainty) : answer.chip;
}

CellText cell_text(const TableCell& cell, Format format) {
  CellText result{.figure = cell.text, .interval = {}, .mark = cell.mark};
  if (!cell.value || !std::isfinite(*cell.value)) return result;
  const NumberFormat shape = shape_of_number(format, *cell.value);
  const auto digits = [&](double value) {
    return format == Format::scientific ? fmt::format("{:.2e}", value)
                                        : fixed(value * shape.factor, shape.decimals);
  };
  result.figure = digits(*cell.value) + shape.suffix;
  if (cell.low && cell.high) result.interval = fmt::format("[{}, {}]", digits(*cell.low), digits(*cell.high));
  return result;
}

std::string one_line(const CellText& text) {
  std::string line = text.figure;
  for (const std::string* part : {&text.interval, &text.mark})
    if (!part->empty()) line += (line.empty() ? "" : " ") + *part;
  return line;
}

std::string heading(const Column& column) {
  const std::string unit = column.format == Format::milliseconds ? "ms" : column.unit;
  if (unit.empty() || column.format == Format::bytes) return column.label;
  return column.label + " [" + unit + "]";
}

std::string number(double value) { return fixed(value, decimals_for(value)); }

std::string rough(double value) {
  const double size = std::abs(value);
  const int decimals = size >= 9.95 ? 0 : size >= 0.995 ? 1 : size >= 0.0995 ? 2 : decimals_for(value);
  return fixed(value, decimals);
}

std::string amount(double value) {
  std::string text = number(value);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string integer(double value) { return fixed(value, 0); }
std::string percent(double ratio) { return fixed(ratio * 100, 1) + " %"; }

std::string bytes(double value) {
  const NumberFormat shape = bytes_shape(value);
  return fixed(value * shape.factor, shape.decimals) + shape.suffix;
}

std::string duration(double seconds) {
  if (std::abs(seconds) < 1e-3 && seconds != 0) return number(seconds * 1e6) + " us";
  if (std::abs(seconds) < 1 && seconds != 0) return number(seconds * 1e3) + " ms";
  if (std::abs(seconds) >= 1e9) return fmt::format("{:.3g} s", seconds);  // of no run: a damaged record
  if (seconds < 600) return number(seconds) + " s";
  const auto minutes = static_cast<long>(std::lround(seconds / 60));
  if (minutes < 60) return fmt::format("{} min", minutes);
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

std::vector<std::pair<std::string, double>> largest_first(const std::map<std::string, double>& values) {
  std::vector<std::pair<std::string, double>> sorted(values.begin(), values.end());
  std::ranges::stable_sort(sorted, std::greater(), &std::pair<std::string, double>::second);
  return sorted;
}

std::string listed(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  return fmt::format("{} and {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

std::string without_markup(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '<')
      result += "&lt;";
    else if (letter == '&')
      result += "&amp;";
    else if (letter == '(' && result.ends_with(']'))
      result += "\\(";
    else
      result += letter == '\n' ? ' ' : letter;
  }
  return result;
}

std::string markdown_cell(std::string_view text) {
  std::string result;
  for (const char letter : without_markup(text)) {
    if (letter == '|') result += '\\';
    result += letter;
  }
  return result;
}

std::string OwnNames::next(std::string_view id) {
  std::string name(id.empty() ? "unnamed" : id);
  for (char& letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 &&
        std::string_view("-_.").find(letter) == std::string_view::npos)
      letter = '-';
  if (name.front() == '.') name.front() = '-';
  std::string own = name;
  for (int number = 2; !taken_.insert(own).second; ++number) own = fmt::format("{}-{}", name, number);
  return own;
}

std::string markup_text(std::string_view text) {
  std::string out;
  for (const char letter : text) switch (letter) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += letter;
    }
  return out;
}

}  // namespace paceline::report
