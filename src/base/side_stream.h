#pragma once

/// A second stream on an engine's device, on which collectives run while the engine computes.
///
/// Its work runs in order. It is ordered relative to the engine's stream only by follow_engine() and
/// engine_follows(). If the device has stream priorities, this stream has the higher one.
///
/// Errors    every call: Error(device)
/// Threads   the engine's thread; enter(), native() and is_done(): any, while nobody sets that mark
/// Lifetime  may outlive its engine; then only is_done() and native() may be called

#include <cstddef>
#include <string>

#include "base/clock.h"

namespace paceline::base {

class SideStream {
 public:
  virtual ~SideStream() = default;

  /// Identifies the device among all of this host: "0000:3B:00.0".
  [[nodiscard]] virtual std::string device() const = 0;
  /// Identifies the device among those of all hosts. Empty: unknown.
  [[nodiscard]] virtual std::string uuid() const { return {}; }
  /// The stream's handle in the device's libraries: a cudaStream_t.
  [[nodiscard]] virtual void* native() const = 0;
  /// Makes the device the current one of the calling thread, for libraries that use the current device.
  virtual void enter() const = 0;

  /// Work added to this stream from now on begins after all work that the engine's stream has so far.
  virtual void follow_engine() = 0;
  /// Work added to the engine's stream from now on begins after `mark` is done.
  virtual void engine_follows(int mark) = 0;

  /// dst[i] = the sum over p < parts of first[p * stride + i], i < count, in the order of
  /// base/summation_tree.h. The parts' contents are unspecified afterwards.
  ///
  /// Requires  at least two parts; all lie on the device, and `dst` does not overlap them
  /// Cost      3 (parts - 1) count floats moved in the device's memory
  virtual void tree_sum(float* first, int parts, std::size_t stride, std::size_t count, float* dst) = 0;

  /// Makes a mark, which can be set any number of times. A new mark counts as done.
  [[nodiscard]] virtual int make_mark() = 0;
  /// Sets the mark to this point of the stream: it is done once the work so far is done.
  virtual void set(int mark) = 0;
  [[nodiscard]] virtual bool is_done(int mark) const = 0;
  /// Blocks until the mark is done.
  virtual void wait(int mark) = 0;
  /// When the mark was done, on the host's clock.
  ///
  /// Requires  it was set, and is done
  /// Cost      some 10 us, unless the previous call covered this mark
  [[nodiscard]] virtual TimePoint done_at(int mark) = 0;
};

}  // namespace paceline::base
