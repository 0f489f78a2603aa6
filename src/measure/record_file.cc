#include "measure/record_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"

namespace paceline::measure {
namespace {

namespace fs = std::filesystem;

/// Says what a file is that must not be overwritten, to follow the word "is"; nullopt if it may be
/// overwritten.
std::optional<std::string> precious(const fs::path& file) {
  if (file.extension() == ".safetensors") return "a checkpoint or a model's weights";
  if (file.extension() == ".toml") return "a recipe or a model file";
  if (file.extension() == ".jsonl") return "a run's events";
  std::ifstream stream(file, std::ios::binary);
  std::string begin(1 << 16, '\0');
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(stream.gcount()));
  if (begin.find("\"paceline-record-") != std::string::npos) return "a run's record";
  if (begin.find('\0') != std::string::npos) return "a binary file, which this option never writes";
  return std::nullopt;
}

using base::kSha256Digits;

constexpr std::string_view kEnd = "\n}\n", kBeforeDigits = "\n  \"sha256\": \"", kAfterDigits = "\"\n}\n";

/// The second line of a record with a checksum; the first is the brace, the third the schema.
constexpr std::string_view kSumLine = "  \"checksum\": \"sha256\",\n";

/// Position of the line after the schema in a record's text; npos if it is not a record.
std::size_t behind_schema(std::string_view text) {
  if (!text.starts_with("{\n  \"schema\": ")) return std::string_view::npos;
  const auto end = text.find('\n', 2);
  return end == std::string_view::npos ? end : end + 1;
}

std::string zeros() { return std::string(kSha256Digits, '0'); }

/// Position of the digits in a text that ends as with_checksum() writes it; npos if it does not.
std::size_t digits_in(std::string_view text) {
  const auto length = kBeforeDigits.size() + kSha256Digits + kAfterDigits.size();
  if (text.size() < length || !text.ends_with(kAfterDigits)) return std::string_view::npos;
  const auto begin = text.size() - length;
  return text.substr(begin).starts_with(kBeforeDigits) ? begin + kBeforeDigits.size()
                                                       : std::string_view::npos;
}

}  // namespace

void require_output(const fs::path& file, std::string_view option) {
  base::require_directory_of(file, option);
  if (file.empty() || !base::is_file(file)) return;
  if (const auto what = precious(file))
    base::fail(base::ErrorKind::data,
               "{} {}: the file that exists there is {}, and would be lost; give another file", option,
               file.string(), *what);
}

std::string record_text(const fs::path& file) {
  std::error_code unknown;  // a pipe has no size
  if (const auto size = fs::file_size(file, unknown); !unknown && size > kMostRecordBytes)
    base::fail(base::ErrorKind::data,
               "{}: has more than {} MiB, as no record has; it is damaged, or of another format",
               file.string(), kMostRecordBytes >> 20);
  return base::read_file(file);
}

bool says_it_has_checksum(std::string_view text) {
  const auto skip = [&text](std::string_view token) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.starts_with(token)) return false;
    text.remove_prefix(token.size());
    return true;
  };
  constexpr std::string_view kKey = "\"checksum\"";  // inside a string its quotes would be escaped
  for (auto at = text.find(kKey); at != std::string_view::npos; at = text.find(kKey)) {
    text.remove_prefix(at + kKey.size());
    if (skip(":") && skip("\"sha256\"")) return true;
  }
  return false;
}

std::string with_checksum(std::string text) {
  const auto begin = behind_schema(text);
  base::expects(begin != std::string::npos && text.ends_with(kEnd), "the text is a record's");
  text.insert(begin, kSumLine);
  text.replace(text.size() - kEnd.size(), kEnd.size(), ",");
  text.append(kBeforeDigits).append(zeros()).append(kAfterDigits);
  const auto digits = base::sha256_of_text(text);
  return text.replace(digits_in(text), kSha256Digits, digits);
}

bool is_cut(std::string_view text) {
  const auto last = text.find_last_not_of(" \t\r\n");
  return last == std::string_view::npos || text[last] != '}';
}

void require_checksum(const std::string& text, const std::string& where) {
  const auto at = digits_in(text);
  const bool has_sum = at != std::string::npos;
  if (!has_sum && !says_it_has_checksum(text)) return;
  if (has_sum) {
    auto summed = text;
    if (base::sha256_of_text(summed.replace(at, kSha256Digits, zeros())) ==
        std::string_view(text).substr(at, kSha256Digits))
      return;
  }
  base::fail(
      base::ErrorKind::data,
      "{}: the record is damaged, or was edited: its SHA-256 {}; leave it out or measure again (to read a "
      "record that was edited on purpose, delete its keys 'checksum' and 'sha256')",
      where,
      has_sum        ? "is not the one that it was written with"
      : is_cut(text) ? "is missing, since the file is cut: it ends within its JSON"
                     : "is missing, or another program has laid the file out anew");
}

}  // namespace paceline::measure
