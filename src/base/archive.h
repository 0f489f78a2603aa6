#pragma once

/// Turns values into bytes and back, for messages between the processes of a run, which all have one version.
///
/// A struct names its members in one place, for every archive and both directions: fields(archive, value), in
/// the struct's namespace, calls archive("key", member) for each, or each_member(). The archives of JSON,
/// which use the keys, are in measure/record_json.cc; these here go by the order.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace paceline::base {

/// T for an archive that reads into the value, const T for one that writes it.
template <typename Archive, typename T>
using In = std::conditional_t<Archive::kWrites, const T, T>;

// Carried are: what may be copied byte by byte (numbers, structs of numbers), structs with fields(), and
// optionals, texts, lists and maps of these.

class BytesWriter {
 public:
  static constexpr bool kWrites = true;
  template <typename T>
  void operator()(const char* /*key*/, const T& value) {
    if constexpr (requires { value.has_value(); }) {
      (*this)("", value.has_value());
      if (value) (*this)("", *value);
    } else if constexpr (std::is_trivially_copyable_v<T>) {
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else if constexpr (std::ranges::range<T>) {
      (*this)("", static_cast<std::uint64_t>(value.size()));
      for (const auto& one : value) (*this)("", one);
    } else if constexpr (requires { value.second; }) {
      (*this)("", value.first);
      (*this)("", value.second);
    } else {
      fields(*this, value);
    }
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// An optional key: not written if the value is absent. Bytes have no keys, so all is written there.
template <typename A, typename T>
void where_present(A& archive, const char* key, T& value) {
  if (A::kWrites && !std::is_same_v<A, BytesWriter> && !value.has_value()) return;
  archive(key, value);
}

/// All members of a struct that is never JSON: bytes have no keys.
template <typename A, typename... Members>
void each_member(A& archive, Members&... members) {
  (archive("", members), ...);
}

/// Lists of numbers, or of structs of numbers, which are read by one copy.
template <typename T>
inline constexpr bool kIsCopied = requires(T& value) {
  value.resize(1);
  value.data();
  requires std::is_trivially_copyable_v<std::ranges::range_value_t<T>>;
  requires !requires { value[0].has_value(); };
};

class BytesReader {
 public:
  static constexpr bool kWrites = false;
  explicit BytesReader(std::string_view bytes) : rest_(bytes) {}
  /// Errors   Error(comm): the message ends within the value
  template <typename T>
  void operator()(const char* /*key*/, T& value) {
    if constexpr (requires { value.has_value(); }) {
      bool is_there = false;
      (*this)("", is_there);
      value.reset();
      if (is_there) (*this)("", *(value = typename T::value_type{}));  // clang 16: as in record_json.cc
    } else if constexpr (std::is_trivially_copyable_v<T>) {
      require(sizeof value);
      std::memcpy(&value, rest_.data(), sizeof value);
      rest_.remove_prefix(sizeof value);
    } else if constexpr (std::ranges::range<T>) {
      std::uint64_t size = 0;
      (*this)("", size);
      require(size);  // each takes a byte at least
      value.clear();
      if constexpr (kIsCopied<T>) {
        require(size * sizeof(value[0]));
        value.resize(size);
        if (size > 0) std::memcpy(value.data(), rest_.data(), size * sizeof(value[0]));
        rest_.remove_prefix(size * sizeof(value[0]));
        return;
      }
      for (; size > 0; --size)
        if constexpr (requires { typename T::mapped_type; }) {
          typename T::key_type key;
          (*this)("", key);
          (*this)("", value[key]);
        } else {
          value.push_back({});
          (*this)("", value.back());
        }
    } else {
      fields(*this, value);
    }
  }
  [[nodiscard]] bool is_at_end() const { return rest_.empty(); }

 private:
  void require(std::uint64_t bytes) const {
    if (bytes > rest_.size())
      fail(ErrorKind::comm, "a message of another process ends {} bytes too early: it is of another program",
           bytes - rest_.size());
  }
  std::string_view rest_;
};

template <typename T>
[[nodiscard]] std::string to_bytes(const T& value) {
  BytesWriter writer;
  writer("", value);
  return writer.bytes();
}

/// Errors   Error(comm): not the bytes of a T
template <typename T>
[[nodiscard]] T from_bytes(std::string_view bytes) {
  T value{};
  BytesReader reader(bytes);
  reader("", value);
  if (!reader.is_at_end())
    fail(ErrorKind::comm,
         "a message of another process is longer than what it says: it is of another program");
  return value;
}

}  // namespace paceline::base
