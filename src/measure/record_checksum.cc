#include "measure/record_checksum.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

#include "base/error.h"
#include "base/sha256.h"
#include "measure/record.h"

namespace paceline::measure {
namespace {

using base::kSha256Digits;

constexpr std::string_view kEnd = "\n}\n", kBeforeDigits = "\n  \"sha256\": \"", kAfterDigits = "\"\n}\n";

/// What a record begins with, and with the first of the keys.
std::string plain_begin() { return fmt::format("{{\n  \"schema\": \"{}\",\n", Record::kSchema); }
std::string summed_begin() { return plain_begin() + "  \"checksum\": \"sha256\",\n"; }

std::string zeros() { return std::string(kSha256Digits, '0'); }

std::string sum_of(std::string_view text) {
  base::Sha256 sum;
  sum.update(std::as_bytes(std::span(text)));
  return sum.digits();
}

/// Where the digits begin in a text that ends as with_checksum() lets it; npos: it does not.
std::size_t digits_in(std::string_view text) {
  const auto length = kBeforeDigits.size() + kSha256Digits + kAfterDigits.size();
  if (text.size() < length || !text.ends_with(kAfterDigits)) return std::string_view::npos;
  const auto begin = text.size() - length;
  return text.substr(begin).starts_with(kBeforeDigits) ? begin + kBeforeDigits.size()
                                                       : std::string_view::npos;
}

}  // namespace

std::string with_checksum(std::string text) {
  const auto begin = plain_begin();
  base::expects(text.starts_with(begin) && text.ends_with(kEnd), "the text is a record's");
  text.replace(0, begin.size(), summed_begin());
  text.replace(text.size() - kEnd.size(), kEnd.size(), ",");
  text.append(kBeforeDigits).append(zeros()).append(kAfterDigits);
  const auto digits = sum_of(text);
  return text.replace(digits_in(text), kSha256Digits, digits);
}

void require_checksum(const std::string& text, const std::string& where) {
  const auto at = digits_in(text);
  const bool has_sum = at != std::string::npos;
  if (!has_sum && !text.starts_with(summed_begin())) return;
  if (has_sum) {
    auto summed = text;
    if (sum_of(summed.replace(at, kSha256Digits, zeros())) ==
        std::string_view(text).substr(at, kSha256Digits))
      return;
  }
  base::fail(
      base::ErrorKind::data,
      "{}: the record is damaged, or was edited: its SHA-256 {}; leave it out or measure again (one that was "
      "edited on purpose is read without its keys 'checksum' and 'sha256')",
      where, has_sum ? "is not the one that it was written with" : "is missing");
}

}  // namespace paceline::measure
