#pragma once

/// What the lists of a record's keys (record_fields.h, gpu_fields.h) are written with.

#include <type_traits>

namespace paceline::measure {

/// `value` as its own type, const when the archive only looks.
template <typename Archive, typename T>
using In = std::conditional_t<Archive::kWrites, const T, T>;

/// A key that records of most runs do not have: it is not written where it says nothing.
template <typename A, typename T>
void where_present(A& archive, const char* key, T& value) {
  if (A::kWrites && !value.has_value()) return;
  archive(key, value);
}

}  // namespace paceline::measure
