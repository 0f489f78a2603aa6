#pragma once

/// Where a flat array of floats lies, and what can be done to it there: the host's memory or a device's.
///
/// An Array knows its Memory, so that gradients on a GPU can be reduced, added and checked by code that does
/// not know where they lie. A span can be touched by anyone; an Array only through its Memory, or as a span
/// when it lies on the host.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"

namespace paceline::base {

class Memory;

/// `size` floats from `data` on, in `memory`. It owns nothing.
struct Array {
  float* data = nullptr;
  std::size_t size = 0;
  Memory* memory = nullptr;

  [[nodiscard]] Array subarray(std::size_t begin, std::size_t count) const {
    expects(begin + count <= size, "a part of an array lies inside it");
    return {data + begin, count, memory};
  }
  [[nodiscard]] std::size_t bytes() const { return size * sizeof(float); }
  /// Requires: the array lies on the host.
  [[nodiscard]] std::span<float> host() const;
};

/// A place for arrays. Work on a device's arrays is done in the order of its owner's stream: each call is
/// ordered behind what the owner has started, and only read() and is_finite() wait for it.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::string name() const = 0;  ///< "host", "cuda:0"
  [[nodiscard]] virtual bool is_host() const = 0;
  /// `size` floats, all 0, for as long as the result lives.
  [[nodiscard]] virtual std::shared_ptr<float> allocate(std::size_t size) = 0;
  [[nodiscard]] Array array(std::shared_ptr<float> const& owner, std::size_t size) {
    return {owner.get(), size, this};
  }

  virtual void fill(Array dst, float value) = 0;
  virtual void copy(Array src, Array dst) = 0;
  /// dst = left + right, element by element; dst may be one of them.
  virtual void add(Array left, Array right, Array dst) = 0;
  /// Copies to the host, and waits until that is done.
  virtual void read(Array src, std::span<float> dst) = 0;
  /// Copies from the host; `src` may be overwritten afterwards.
  virtual void write(std::span<const float> src, Array dst) = 0;
};

/// The host's, for all who need no other.
[[nodiscard]] Memory& host_memory();
[[nodiscard]] Array host_array(std::span<float> values);

}  // namespace paceline::base
