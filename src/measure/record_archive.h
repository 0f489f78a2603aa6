#pragma once

/// Helpers for the lists of a record's JSON keys (record_fields.h, gpu_fields.h).

#include <type_traits>

namespace paceline::measure {

/// T for an archive that reads into the value, const T for one that writes it.
template <typename Archive, typename T>
using In = std::conditional_t<Archive::kWrites, const T, T>;

/// An optional key: not written if the value is absent.
template <typename A, typename T>
void where_present(A& archive, const char* key, T& value) {
  if (A::kWrites && !value.has_value()) return;
  archive(key, value);
}

}  // namespace paceline::measure
