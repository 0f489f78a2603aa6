#pragma once

/// Owned, aligned, uninitialised memory, for all large arrays of the engines and the loader.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace paceline::base {

/// Move-only block of `bytes` bytes, aligned to 64 (a cache line, a vector, an AMX row). Large blocks request
/// transparent huge pages and return to the system when they are freed. Contents are uninitialised: pages
/// count as used memory only once they are touched.
///
/// Errors   Error(device) when the system has no memory
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes);
  /// A view of `memory`, aligned as above, which `owner` keeps alive.
  Buffer(std::span<std::byte> memory, std::shared_ptr<const void> owner)
      : data_(memory.data()), bytes_(memory.size()), owner_(std::move(owner)) {}
  ~Buffer();
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// Resident memory of a block of `bytes` once it is written: large blocks take whole huge pages.
  [[nodiscard]] static std::size_t resident_bytes(std::size_t bytes);

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] const std::byte* data() const { return data_; }

  /// The block as an array of T, without the remainder past the last whole T.
  template <typename T>
  [[nodiscard]] std::span<T> as() {
    return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
  }
  template <typename T>
  [[nodiscard]] std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_), bytes_ / sizeof(T)};
  }
  void fill_zero();

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    std::swap(owner_, other.owner_);
  }
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::span<std::byte> mapped_;  ///< large blocks: the whole mapping around data_
  std::shared_ptr<const void> owner_;
};

}  // namespace paceline::base
