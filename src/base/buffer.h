#pragma once

/// Owned, aligned, uninitialised memory: what every large array of the engines and the loader lives in.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace paceline::base {

/// Move-only block of `bytes` bytes, aligned to 64 (a cache line, a vector, an AMX row). Large blocks ask for
/// transparent huge pages and go back to the system when they are freed. Contents are uninitialised: pages
/// count as used memory only once touched.
///
/// Errors   Error(device) when the system has no memory
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes);
  /// Memory that somebody else has got, aligned as above; `owner` keeps it for as long as this lives.
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

  /// What a block of `bytes` adds to resident memory once it is written: large ones take whole huge pages.
  [[nodiscard]] static std::size_t resident_bytes(std::size_t bytes);

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] const std::byte* data() const { return data_; }

  /// The block seen as an array of T; the remainder past the last whole T is not shown.
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
