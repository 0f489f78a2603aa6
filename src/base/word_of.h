#pragma once

/// The words of enums.

#include <cstddef>
#include <string_view>

namespace paceline::base {

/// The word of an enum's value: `words` has one for each, in their order, and `last` is the last. A list of
/// another length does not compile.
template <auto last, std::size_t kWords>
[[nodiscard]] constexpr std::string_view word_of(decltype(last) value,
                                                 const std::string_view (&words)[kWords]) {
  static_assert(kWords == static_cast<std::size_t>(last) + 1, "a word for each value");
  return words[static_cast<std::size_t>(value)];
}

}  // namespace paceline::base
