#include "base/csv.h"

#include "base/error.h"

namespace paceline::base {
namespace {

/// Reads the text from begin to end and keeps its position.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& where, std::size_t line)
      : text_(text), where_(where), line_(line), separator_(csv_separator(text)) {}

  std::vector<CsvLine> read() {
    std::vector<CsvLine> lines;
    while (at_ < text_.size()) {
      auto line = read_line();
      if (line.size() > 1 || !line.front().text.empty()) lines.push_back(std::move(line));
    }
    return lines;
  }

 private:
  void step() {
    const bool ends_line = text_[at_++] == '\n';
    line_ += ends_line ? 1 : 0;
    column_ = ends_line ? 1 : column_ + 1;
  }

  CsvLine read_line() {
    CsvLine line;
    for (;;) {
      line.push_back(read_cell());
      if (at_ >= text_.size()) return line;
      const bool ends_line = text_[at_] == '\n';
      step();
      if (ends_line) return line;
    }
  }

  CsvCell read_cell() {
    CsvCell cell{.line = line_, .column = column_};
    if (at_ < text_.size() && text_[at_] == '"') {
      read_quoted(cell);
    } else {
      while (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n') {
        cell.text += text_[at_];
        step();
      }
    }
    while (!cell.text.empty() && (cell.text.back() == '\r' || cell.text.back() == ' ')) cell.text.pop_back();
    return cell;
  }

  void read_quoted(CsvCell& cell) {
    step();
    for (;;) {
      if (at_ >= text_.size())
        fail(ErrorKind::data,
             "{}:{}:{}: the quote that begins here is never closed; write \" behind the "
             "text, and \"\" for a quote in it",
             where_, cell.line, cell.column);
      if (text_[at_] == '"') {
        step();
        if (at_ >= text_.size() || text_[at_] != '"') break;
      }
      cell.text += text_[at_];
      step();
    }
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\r')) step();
    if (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n')
      fail(ErrorKind::data, "{}:{}:{}: a '{}' follows the closing quote; write \"\" for a quote in a text",
           where_, line_, column_, text_[at_]);
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0, line_ = 1, column_ = 1;
  char separator_;
};

}  // namespace

char csv_separator(std::string_view text) {
  const auto header = text.substr(0, text.find('\n'));
  for (const char one : {',', ';', '\t'})
    if (header.find(one) != std::string_view::npos) return one;
  return ',';
}

std::vector<CsvLine> read_csv(std::string_view text, const std::string& where, std::size_t first_line) {
  return CsvReader(text, where, first_line).read();
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",;\t\"\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char one : text) quoted += one == '"' ? std::string("\"\"") : std::string(1, one);
  return quoted + '"';
}

}  // namespace paceline::base
