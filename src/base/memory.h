#pragma once

/// Flat arrays of floats that lie on the host or on a device, and what can be done to them there.
///
/// An Array knows its Memory, so that gradients on a GPU can be reduced, added and copied by code that does
/// not know where they lie. Anyone may touch a span; an Array is touched only through its Memory, or as a
/// span if it lies on the host.

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
  /// Requires: begin + count <= size.
  [[nodiscard]] Array subarray(std::size_t begin, std::size_t count) const;
  /// Requires: the array lies on the host, or is empty.
  [[nodiscard]] std::span<float> host() const;
};

/// An array with its memory, which is freed when the last copy of this is gone.
struct OwnedArray {
  std::shared_ptr<float> data;
  std::size_t size = 0;
  const Memory* memory = nullptr;

  [[nodiscard]] Array array() const { return {data.get(), size, memory}; }
};

/// A place for arrays. A device's Memory belongs to one engine: each call is ordered behind the work that the
/// engine has started, and before the work that it starts later. Only read() waits.
///
/// Requires all arrays of a call lie here and have the same size
/// Errors   on a device, every call: Error(device)
/// Threads  a device's: its engine's; the host's: any
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::string name() const = 0;  ///< "host", "cuda:0"
  [[nodiscard]] virtual bool is_host() const = 0;
  /// `size` floats, all 0. On a device: freed at the latest with its engine.
  [[nodiscard]] virtual OwnedArray allocate(std::size_t size) const = 0;

  virtual void fill(Array dst, float value) const = 0;
  virtual void copy(Array src, Array dst) const = 0;
  /// dst = left + right, element by element, rounded once. dst may be one of them.
  virtual void add(Array left, Array right, Array dst) const = 0;
  /// Copies to the host, and returns when that is done.
  virtual void read(Array src, std::span<float> dst) const = 0;
  /// Copies from the host. `src` may be overwritten when this returns.
  virtual void write(std::span<const float> src, Array dst) const = 0;

  /// A stream beside the engine's own, for collectives on arrays of this memory; nullptr: the device has none
  /// to give. Errors   Error(device)
  [[nodiscard]] virtual std::unique_ptr<SideStream> make_side_stream() const { return nullptr; }
};

/// The host's memory.
[[nodiscard]] const Memory& host_memory();
[[nodiscard]] Array host_array(std::span<float> values);
/// The whole floats of `buffer`.
[[nodiscard]] OwnedArray host_array(Buffer buffer);

}  // namespace paceline::base
