#include "base/shell_word.h"

namespace paceline::base {
namespace {

constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,.:/@%";

}  // namespace

std::string shell_word(const std::string& word) {
  const std::size_t begin = word.starts_with("~/") ? 1 : 0;  // quotes would prevent the expansion of ~
  if (!word.empty() && word.find_first_not_of(kPlain, begin) == std::string::npos) return word;
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

}  // namespace paceline::base
