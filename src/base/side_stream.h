#pragma once

/// A stream of a device beside the one that its engine computes on: collectives go on there meanwhile.
///
/// What is put on it runs in order. Between it and the engine's stream there is the order of follow_engine()
/// and engine_follows() alone. Where the device prefers work of some streams, it prefers this one's.
///
/// Errors   every call: Error(device)
/// Threads  the engine's; enter(), native() and is_done() any, as long as that mark is not set meanwhile
/// Lifetime may outlive its engine, and then answers is_done() and native() alone

#include <cstddef>
#include <string>

#include "base/clock.h"

namespace paceline::base {

class SideStream {
 public:
  virtual ~SideStream() = default;

  /// The same text for the same device of this host, and for no other: "0000:3B:00.0".
  [[nodiscard]] virtual std::string device() const = 0;
  /// The stream as the device's libraries know it: a cudaStream_t.
  [[nodiscard]] virtual void* native() const = 0;
  /// Makes the device the calling thread's, for libraries that ask which one that is.
  virtual void enter() const = 0;

  /// What this stream is given from now on begins behind all that the engine's was given so far.
  virtual void follow_engine() = 0;
  /// What the engine's stream is given from now on begins behind `mark`.
  virtual void engine_follows(int mark) = 0;

  /// dst[i] = the sum over p < parts of first[p * stride + i], i < count, in the tree of
  /// base/summation_tree.h; the parts are lost. At least two; all lie on the device, `dst` apart from them.
  /// Cost     3 (parts - 1) count floats moved in the device's memory
  virtual void tree_sum(float* first, int parts, std::size_t stride, std::size_t count, float* dst) = 0;

  /// A mark that can be set again and again; a new one is done.
  [[nodiscard]] virtual int make_mark() = 0;
  /// The mark is done once this stream has come so far.
  virtual void set(int mark) = 0;
  [[nodiscard]] virtual bool is_done(int mark) const = 0;
  /// Blocks until the mark is done.
  virtual void wait(int mark) = 0;
  /// When that was, on the host's clock. Requires it is done, and was set.
  /// Cost     a mark that the last question did not cover: some 10 us
  [[nodiscard]] virtual TimePoint done_at(int mark) = 0;
};

}  // namespace paceline::base
