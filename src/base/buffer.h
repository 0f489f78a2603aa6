#pragma once

/// Owned, aligned, uninitialised memory, for all large arrays of the engines and the loader.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/side_stream.h"

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

// Flat arrays of floats on the host or on a device, and operations on them.
//
// An Array knows its Memory, so code that reduces, adds and copies gradients need not know where they lie.
// A device's Array is accessed only through its Memory; a host's Array also as a span.

class Memory;

/// `size` floats from `data` on, in `memory`. Owns nothing.
struct Array {
  float* data = nullptr;
  std::size_t size = 0;
  const Memory* memory = nullptr;

  [[nodiscard]] std::size_t bytes() const { return size * sizeof(float); }
  /// Requires  begin + count <= size
  [[nodiscard]] Array subarray(std::size_t begin, std::size_t count) const;
  /// Requires  the array lies on the host, or is empty
  [[nodiscard]] std::span<float> host() const;
};

/// An array that shares ownership of its memory: it is freed with the last copy.
struct OwnedArray {
  std::shared_ptr<float> data;
  std::size_t size = 0;
  const Memory* memory = nullptr;

  [[nodiscard]] Array array() const { return {data.get(), size, memory}; }
};

/// A place for arrays. A device's Memory belongs to one engine: each call is ordered after the work that the
/// engine has already started, and before the work that it starts later. Only read() waits.
///
/// Requires  all arrays of a call lie here and have the same size
/// Errors    every call on a device: Error(device)
/// Threads   a device's: the engine's thread; the host's: any
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::string name() const = 0;  ///< "host", "cuda:0"
  [[nodiscard]] virtual bool is_host() const = 0;
  /// `size` floats, all 0. On a device they are freed at the latest with the engine.
  [[nodiscard]] virtual OwnedArray allocate(std::size_t size) const = 0;

  virtual void fill(Array dst, float value) const = 0;
  virtual void copy(Array src, Array dst) const = 0;
  /// dst = left + right, element by element, rounded once. `dst` may be `left` or `right`.
  virtual void add(Array left, Array right, Array dst) const = 0;
  /// dst = keep * dst + (1 - keep) * src: two products and their sum, each rounded.
  virtual void mix(Array src, double keep, Array dst) const = 0;
  /// Copies to the host; returns when the copy is complete.
  virtual void read(Array src, std::span<float> dst) const = 0;
  /// Copies from the host. `src` may be overwritten when this returns.
  virtual void write(std::span<const float> src, Array dst) const = 0;

  /// A stream beside the engine's own, for collectives on arrays of this memory; null if there is none.
  ///
  /// Errors   Error(device)
  [[nodiscard]] virtual std::unique_ptr<SideStream> make_side_stream() const { return nullptr; }
};

/// The host's memory.
[[nodiscard]] const Memory& host_memory();
[[nodiscard]] Array host_array(std::span<float> values);
/// All whole floats of `buffer`.
[[nodiscard]] OwnedArray host_array(Buffer buffer);

}  // namespace paceline::base
