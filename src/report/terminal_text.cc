#include "report/terminal_text.h"

#include "report/text.h"

namespace paceline::report {

std::string Style::paint(const char* code, const std::string& text) const {
  return colour && !text.empty() ? std::string("\x1b[") + code + "m" + text + "\x1b[0m" : text;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char letter : text + " ") {
    if (letter != ' ' && letter != '\n') {
      word += letter;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string& word : words_of(text)) {
    if (!lines.empty() && display_width(lines.back()) + 1 + display_width(word) <= width)
      lines.back() += " " + word;
    else
      lines.push_back(word);
  }
  return lines;
}

std::string broken(const std::string& text, const std::string& first, std::size_t indent, int width) {
  const std::size_t room = static_cast<std::size_t>(width) > indent + 20 ? width - indent : 20;
  std::string out;
  const auto lines = wrapped(text, room);
  for (std::size_t i = 0; i < lines.size(); ++i)
    out += (i == 0 ? first : std::string(indent, ' ')) + lines[i] + "\n";
  return out;
}

std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::size_t used = display_width(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return left ? text + blanks : blanks + text;
}

}  // namespace paceline::report
