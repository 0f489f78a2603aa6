#pragma once

/// Writes messages of Protocol Buffers, with the few kinds of fields that our files have: event files of
/// TensorBoard and ONNX models. A message is a string to which fields are added, a message inside it a field
/// of bytes.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace paceline::base::protobuf {

/// The bytes of a whole number, the lowest first.
template <typename T>
void add_little_endian(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
}

// Protobuf's wire format: a key (field number and kind), then a number with 7 bits per byte, 4 or 8 bytes, or
// a length and that many bytes.
enum class Wire : std::uint64_t { varint = 0, eight_bytes = 1, length = 2, four_bytes = 5 };

inline void add_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

inline void add_key(std::string& out, std::uint64_t field, Wire wire) {
  add_varint(out, field << 3 | static_cast<std::uint64_t>(wire));
}

/// Of type int32, int64 or an enumeration.
inline void add_whole_number(std::string& out, std::uint64_t field, std::int64_t value) {
  add_key(out, field, Wire::varint);
  add_varint(out, static_cast<std::uint64_t>(value));
}

inline void add_double(std::string& out, std::uint64_t field, double value) {
  add_key(out, field, Wire::eight_bytes);
  add_little_endian(out, std::bit_cast<std::uint64_t>(value));
}

inline void add_float(std::string& out, std::uint64_t field, float value) {
  add_key(out, field, Wire::four_bytes);
  add_little_endian(out, std::bit_cast<std::uint32_t>(value));
}

/// Key and length of a field whose `size` bytes the caller adds.
inline void begin_bytes(std::string& out, std::uint64_t field, std::size_t size) {
  add_key(out, field, Wire::length);
  add_varint(out, size);
}

/// A text, bytes or a message.
inline void add_bytes(std::string& out, std::uint64_t field, std::string_view bytes) {
  begin_bytes(out, field, bytes.size());
  out += bytes;
}

}  // namespace paceline::base::protobuf
