#include "report/build.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>

namespace paceline::report {
namespace {

constexpr std::array<std::string_view, 5> kEverywhere{"/proc", "/sys", "/dev", "/etc", "/usr"};

bool is_name(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '.' || letter == '_' ||
         letter == '-' || letter == '+' || letter == '@' || (static_cast<unsigned char>(letter) & 0x80) != 0;
}

/// Whether an absolute path may begin at `at`: a slash that follows no name and is not the second of "//".
bool begins_path(std::string_view text, std::size_t at) {
  if (text[at] != '/' || at + 1 == text.size() || !is_name(text[at + 1])) return false;
  return at == 0 || (!is_name(text[at - 1]) && text[at - 1] != '/' && text[at - 1] != '~');
}

/// Whether `path` is `folder` or is inside it.
bool lies_in(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || !is_name(path[folder.size()]));
}

/// The length of the home directory at the begin of `path`; nullopt if `path` does not begin with one.
std::optional<std::size_t> home_of(std::string_view path, std::string_view home) {
  if (home.size() > 1 && lies_in(path, home)) return home.size();
  if (lies_in(path, "/root")) return std::string_view("/root").size();
  for (const std::string_view all : {"/home/", "/Users/"})
    if (path.starts_with(all) && path.size() > all.size() && is_name(path[all.size()])) {
      auto end = all.size();
      while (end < path.size() && is_name(path[end])) ++end;
      return end;
    }
  return std::nullopt;
}

/// The path that begins `text`; a full stop or colon after it belongs to the sentence.
std::string_view path_at(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && (text[end] == '/' || is_name(text[end]))) ++end;
  while (end > 1 && (text[end - 1] == '.' || text[end - 1] == '/')) --end;
  return text.substr(0, end);
}

/// `text` with each path replaced as `replace` says: what stands for it, and how much of the text that is.
template <typename Replace>
std::string replaced(std::string_view text, Replace replace) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (begins_path(text, at))
      if (const auto found = replace(text.substr(at))) {
        out += found->first;
        at += found->second;
        continue;
      }
    out += text[at++];
  }
  return out;
}

using Replacement = std::optional<std::pair<std::string, std::size_t>>;

}  // namespace

std::string without_homes(std::string_view text, std::string_view home) {
  return replaced(text, [&](std::string_view rest) -> Replacement {
    const auto length = home_of(rest, home);
    return length ? Replacement({"~", *length}) : std::nullopt;
  });
}

std::string without_paths(std::string_view text, std::string_view home) {
  return replaced(text, [&](std::string_view rest) -> Replacement {
    if (const auto length = home_of(rest, home)) return {{"~", *length}};
    const auto path = path_at(rest);
    const auto last = path.rfind('/');
    const bool is_known =
        std::ranges::any_of(kEverywhere, [&](std::string_view folder) { return lies_in(path, folder); });
    if (is_known || last == 0) return std::nullopt;  // a slash and one word may be anything
    return {{"…" + std::string(path.substr(last)), path.size()}};
  });
}

std::string home_here() {
  const char* const home = std::getenv("HOME");
  return home == nullptr ? "" : home;
}

std::vector<measure::Record> shareable(std::span<const measure::Record> records, std::string_view home) {
  std::vector<measure::Record> copies(records.begin(), records.end());
  const auto typed = [&](std::string& text) { text = without_homes(text, home); };
  const auto said = [&](std::string& text) { text = without_paths(text, home); };
  for (auto& record : copies) {
    for (auto& note : record.notes) said(note);
    said(record.reason);
    said(record.data.description);
    if (record.restarts)
      for (auto& restart : *record.restarts) said(restart.reason);
    typed(record.command);
    typed(record.model.name);
    typed(record.data.spec);
    typed(record.data.name);
    for (auto& [key, value] : record.settings) typed(value);
    if (record.changes)
      for (auto& change : *record.changes)
        for (auto* value : {&change.then, &change.now})
          if (*value) typed(**value);
    if (!record.evaluation) continue;
    typed(record.evaluation->checkpoint);
    for (auto& mistake : record.evaluation->mistakes)
      if (mistake.path) typed(*mistake.path);
  }
  return copies;
}

}  // namespace paceline::report
