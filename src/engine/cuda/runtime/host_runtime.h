#pragma once

/// HostRuntime is a Runtime on the processor. It runs the CUDA engine without a GPU, and is made to reveal
/// missing synchronisation and wrong use of memory.
///
/// Enqueued work does not run at once. synchronize() runs the items of the streams, the oldest first, until
/// the item that it waits for is done; other items stay queued. So a missing wait, a host buffer that is
/// changed too early, and memory that is read before it is written all change the result. Tests choose other
/// orders that events allow.
/// Memory starts as NaN (bytes 0xff), between guard zones that are checked after each item.
///
/// A captured section is the list of enqueued items with their arguments. A replay uses exactly these
/// arguments, so an argument that should differ between steps gives a wrong result, as on a GPU.
///
/// Errors   Error(device) for a write outside of a block, a copy from or to memory of the wrong kind, streams
///          that wait for one another, a section that does something that Runtime::capture() forbids, and
///          what a sealed runtime must not do
/// Threads  one. The same calls give the same order and the same bits.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/side_stream.h"
#include "engine/cuda/conv_problem.h"
#include "engine/cuda/kernels/host.h"
#include "engine/cuda/runtime/recorded_sections.h"
#include "engine/cuda/runtime/runtime.h"
#include "engine/cuda/runtime/stream.h"

namespace paceline::engine::cuda {

// Convolutions on the processor, as plain loops. The host runtime uses them where a GPU would use cuDNN.
//
// Layouts and storage are those of conv_problem.h. Multiplies and adds in float, and rounds the result once.
// The order of additions depends on the shape and the algorithm alone; a sample's output does not depend on
// the other samples.
//
// Cost   5 to 10 GFLOP/s on one core, and memory for float copies of the operands

/// Two algorithms whose results differ in rounding, so that tests can tell which one ran.
enum class HostLoops {
  ascending,   ///< adds over channels (weight gradients: pixels) in increasing order
  descending,  ///< adds in decreasing order
};

/// Computes `problem` before it returns. Reads and writes exactly the operands' elements.
void convolve_on_host(const ConvProblem& problem, const ConvOperands& operands,
                      HostLoops loops = HostLoops::ascending);

// The side stream of a HostRuntime (base/side_stream.h).

class HostRuntime;

/// What native() of a HostSideStream points to. HostRuntime::post() enqueues work on it.
struct HostStream {
  HostRuntime& runtime;
  Stream stream;
};

class HostSideStream final : public base::SideStream {
 public:
  HostSideStream(HostRuntime& runtime, Stream engine);

  [[nodiscard]] std::string device() const override;
  [[nodiscard]] void* native() const override { return const_cast<HostStream*>(&here_); }
  void enter() const override {}
  void follow_engine() override;
  void engine_follows(int mark) override;
  void tree_sum(float* first, int parts, std::size_t stride, std::size_t count, float* dst) override;
  [[nodiscard]] int make_mark() override;
  void set(int mark) override;
  [[nodiscard]] bool is_done(int mark) const override;
  void wait(int mark) override;
  [[nodiscard]] base::TimePoint done_at(int mark) override;

 private:
  /// `at` is written before `is_done`, read after it.
  struct Mark {
    Event event;
    std::atomic<bool> is_done{true};
    base::TimePoint at{};
  };
  const HostStream here_;
  const Stream engine_;
  const Event engine_came_;
  std::vector<std::shared_ptr<Mark>> marks_;  ///< shared with the work that sets them
};

class HostRuntime : public Runtime {
 public:
  HostRuntime() = default;
  HostRuntime(const HostRuntime&) = delete;
  HostRuntime& operator=(const HostRuntime&) = delete;

  [[nodiscard]] DeviceFacts facts() const override;
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override;
  [[nodiscard]] std::byte* allocate_pinned(std::size_t bytes) override;
  [[nodiscard]] Stream make_stream() override;
  [[nodiscard]] Event make_event() override;
  /// All events record the host's time.
  [[nodiscard]] Event make_timed_event() override { return make_event(); }
  [[nodiscard]] std::unique_ptr<base::SideStream> make_side_stream(Stream engine) override;

  void copy_to_device(Stream stream, void* dst, const void* pinned_src, std::size_t bytes) override;
  void copy_to_host(Stream stream, void* pinned_dst, const void* src, std::size_t bytes) override;
  void copy_on_device(Stream stream, void* dst, const void* src, std::size_t bytes) override;
  void fill_bytes(Stream stream, void* dst, std::uint8_t value, std::size_t bytes) override;
  using Runtime::launch;
  void launch(Stream stream, int kernel, const void* arguments, std::size_t bytes, const Grid& grid) override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  [[nodiscard]] CapturedSection capture(Stream stream, const std::function<void()>& post) override;
  void replay(Stream stream, CapturedSection section) override;
  [[nodiscard]] bool is_done(Event event) override;
  [[nodiscard]] double seconds_between(Event begin, Event end) override;
  void synchronize(Stream stream) override;
  void synchronize(Event event) override;
  [[nodiscard]] std::unique_ptr<Convolution> make_convolution(const ConvProblem& problem,
                                                              const std::string& algorithm) override;
  [[nodiscard]] ConvCandidates convolution_candidates(const ConvProblem& problem) override;

  /// Fails if the runtime is sealed, or a section is being captured: `call` must come before.
  void expect_preparing(const char* call) const;
  /// Enqueues any work on a stream. `what` names it in errors.
  void post(Stream stream, const char* what, std::function<void()> work);

 protected:
  /// What one record() of an event marks.
  struct Reached {
    bool is_done = false;  ///< whether its stream has reached it
    base::TimePoint at{};  ///< when it was reached
  };
  using Mark = std::shared_ptr<Reached>;
  struct Item {
    std::uint64_t number = 0;  ///< counts over all streams
    const char* what = "";
    std::string op;  ///< the op of set_op() when it was enqueued; may be empty
    std::function<void()> work;
    Mark waits_for;  ///< null: waits for nothing
  };
  /// The stream to run next, of `ready`, which are not waiting: the one with the oldest item, like a device
  /// with one queue.
  [[nodiscard]] virtual int choose(std::span<const int> ready);
  /// The order in which the kernel launched next visits its blocks and threads.
  [[nodiscard]] virtual HostOrder order_of_threads() { return HostOrder::ascending; }

  std::vector<std::deque<Item>> streams_;

 private:
  enum class Kind { device, pinned };
  struct Block {
    Kind kind;
    std::size_t bytes;
    std::unique_ptr<std::byte[]> memory;  ///< including both guard zones
    std::byte* first;
  };

  std::byte* allocate(Kind kind, std::size_t bytes);
  /// Whether [first, first + bytes) lies in a block of this kind.
  [[nodiscard]] bool is_in(Kind kind, const void* first, std::size_t bytes) const;
  void expect_in(Kind kind, const void* first, std::size_t bytes, const char* call) const;
  void check_guards(const Item& after) const;
  /// Throws Error(device): "cuda-on-host, in step 12, op conv1: WHAT; this is an error of the engine, ...".
  [[noreturn]] void fail_engine(const std::string& op, const std::string& what) const;
  [[nodiscard]] std::deque<Item>& queue(Stream stream);
  /// Fails if a section is being captured, since `call` must not be in one.
  void expect_no_capture(const char* call) const;
  void run_until(const std::function<bool()>& is_done);
  /// The stream to run next; -1 if all wait.
  [[nodiscard]] int next_stream();

  std::map<const std::byte*, Block> blocks_;  ///< by their first byte
  std::vector<Mark> events_;                  ///< the last record() of each; null if there was none
  std::uint64_t posted_ = 0;
  RecordedSections<Item> sections_;
};

}  // namespace paceline::engine::cuda
