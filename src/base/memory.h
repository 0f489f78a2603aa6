#pragma once

/// Flat arrays of floats on the host or on a device, and operations on them.
///
/// An Array knows its Memory, so code that reduces, adds and copies gradients need not know where they lie.
/// A device's Array is accessed only through its Memory; a host's Array also as a span.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/buffer.h"
#include "base/side_stream.h"

namespace paceline::base {

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
