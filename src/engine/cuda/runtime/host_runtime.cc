#include "engine/cuda/runtime/host_runtime.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/process.h"

namespace paceline::engine::cuda {
namespace {

constexpr std::size_t kGuard = 256;  ///< bytes in front of a block and behind it; also their alignment
constexpr std::byte kGuardByte{0xa5};
constexpr std::byte kPoisonByte{0xff};  ///< NaN as float, as double and as bf16

constexpr const char* kAscending = "host-loops";
constexpr const char* kDescending = "host-loops-descending";

class HostConvolution final : public Convolution {
 public:
  HostConvolution(HostRuntime& runtime, const ConvProblem& problem, HostLoops loops)
      : runtime_(runtime), problem_(problem), loops_(loops) {}
  [[nodiscard]] std::size_t workspace_bytes() const override { return 0; }
  [[nodiscard]] std::string algorithm() const override {
    return loops_ == HostLoops::ascending ? kAscending : kDescending;
  }
  void run(Stream stream, const ConvOperands& operands) override {
    if (!has_run_) runtime_.expect_preparing("the first run of a convolution");
    has_run_ = true;
    runtime_.post(stream, "a convolution", [problem = problem_, loops = loops_, operands] {
      convolve_on_host(problem, operands, loops);
    });
  }

 private:
  HostRuntime& runtime_;
  const ConvProblem problem_;
  const HostLoops loops_;
  bool has_run_ = false;  ///< a GPU's library loads kernels in the first run
};

std::int64_t machine_bytes(int pages) {
  return static_cast<std::int64_t>(sysconf(pages)) * static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

DeviceFacts HostRuntime::facts() const {
  const base::CgroupLimits limits = base::cgroup_limits();
  const std::int64_t all = machine_bytes(_SC_PHYS_PAGES), free = machine_bytes(_SC_AVPHYS_PAGES);
  return {.name = "processor (no GPU)",
          .is_gpu = false,
          .memory_bytes = std::min(all, limits.memory_bytes.value_or(all)),
          .free_memory_bytes = std::min(free, limits.memory_available_bytes.value_or(free)),
          .compute_capability = 0,
          .multiprocessors = 1,
          .libraries = "own loops on the processor"};
}

// ---- memory

std::byte* HostRuntime::allocate(Kind kind, std::size_t bytes) {
  expect_preparing("an allocation");
  Block block{.kind = kind, .bytes = bytes, .memory = nullptr, .first = nullptr};
  const std::size_t all = bytes + 3 * kGuard;
  block.memory = std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[all]);
  if (block.memory == nullptr)
    base::fail(base::ErrorKind::device,
               "cuda-on-host{}: the system has no {} bytes of memory; use a smaller batch or model",
               place_of(op_), bytes);
  void* first = block.memory.get() + kGuard;
  std::size_t space = all - kGuard;
  block.first = static_cast<std::byte*>(std::align(kGuard, bytes + kGuard, first, space));
  std::fill_n(block.first - kGuard, kGuard, kGuardByte);
  std::fill_n(block.first, bytes, kPoisonByte);
  std::fill_n(block.first + bytes, kGuard, kGuardByte);
  std::byte* const result = block.first;
  blocks_.emplace(result, std::move(block));
  return result;
}
std::byte* HostRuntime::allocate(std::size_t bytes) { return allocate(Kind::device, bytes); }
std::byte* HostRuntime::allocate_pinned(std::size_t bytes) { return allocate(Kind::pinned, bytes); }

bool HostRuntime::is_in(Kind kind, const void* first, std::size_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(first);
  auto after = blocks_.upper_bound(begin);
  if (after == blocks_.begin()) return false;
  const Block& block = std::prev(after)->second;
  return block.kind == kind && begin + bytes <= block.first + block.bytes;
}

void HostRuntime::fail_engine(const std::string& op, const std::string& what) const {
  base::fail(base::ErrorKind::device, "cuda-on-host{}: {}; this is an error of the engine, please report it",
             place_of(op), what);
}

void HostRuntime::expect_in(Kind kind, const void* first, std::size_t bytes, const char* call) const {
  if (!is_in(kind, first, bytes))
    fail_engine(op_, fmt::format("{} of {} bytes must stay within a block of {} memory, but does not", call,
                                 bytes, kind == Kind::device ? "device" : "pinned"));
}

void HostRuntime::check_guards(const Item& after) const {
  const auto is_whole = [](const std::byte* zone) {
    return std::all_of(zone, zone + kGuard, [](std::byte byte) { return byte == kGuardByte; });
  };
  for (const auto& [first, block] : blocks_)
    if (!is_whole(first - kGuard) || !is_whole(first + block.bytes))
      fail_engine(after.op, fmt::format("{} wrote outside of a block of {} bytes", after.what, block.bytes));
}

// ---- posting

std::deque<HostRuntime::Item>& HostRuntime::queue(Stream stream) {
  base::expects(stream.index >= 0 && stream.index < static_cast<int>(streams_.size()),
                "the runtime made this stream");
  return streams_[static_cast<std::size_t>(stream.index)];
}

Stream HostRuntime::make_stream() {
  expect_preparing("a new stream");
  streams_.emplace_back();
  return {static_cast<int>(streams_.size()) - 1};
}
Event HostRuntime::make_event() {
  expect_no_capture("a new event");
  events_.emplace_back();
  return {static_cast<int>(events_.size()) - 1};
}

void HostRuntime::post(Stream stream, const char* what, std::function<void()> work) {
  if (sections_.is_recording() && !(stream == sections_.stream()))
    expect_no_capture("work of another stream");
  Item item{.number = posted_, .what = what, .op = op_, .work = std::move(work), .waits_for = nullptr};
  if (sections_.is_recording()) {
    sections_.add(std::move(item));
  } else {
    ++posted_;
    queue(stream).push_back(std::move(item));
  }
}

void HostRuntime::copy_to_device(Stream stream, void* dst, const void* pinned_src, std::size_t bytes) {
  expect_in(Kind::pinned, pinned_src, bytes, "a copy to the device, whose source");
  expect_in(Kind::device, dst, bytes, "a copy to the device");
  post(stream, "a copy to the device", [=] { std::memcpy(dst, pinned_src, bytes); });
}
void HostRuntime::copy_to_host(Stream stream, void* pinned_dst, const void* src, std::size_t bytes) {
  expect_in(Kind::device, src, bytes, "a copy to the host, whose source");
  expect_in(Kind::pinned, pinned_dst, bytes, "a copy to the host");
  post(stream, "a copy to the host", [=] { std::memcpy(pinned_dst, src, bytes); });
}
void HostRuntime::copy_on_device(Stream stream, void* dst, const void* src, std::size_t bytes) {
  expect_in(Kind::device, src, bytes, "a copy on the device, whose source");
  expect_in(Kind::device, dst, bytes, "a copy on the device");
  post(stream, "a copy on the device", [=] { std::memmove(dst, src, bytes); });
}
void HostRuntime::fill_bytes(Stream stream, void* dst, std::uint8_t value, std::size_t bytes) {
  expect_in(Kind::device, dst, bytes, "a fill");
  post(stream, "a fill", [=] { std::memset(dst, value, bytes); });
}

void HostRuntime::launch(Stream stream, int kernel, const void* arguments, std::size_t bytes,
                         const Grid& grid) {
  const auto* first = static_cast<const std::byte*>(arguments);
  std::vector<std::byte> copy(first, first + bytes);
  post(stream, "a kernel", [kernel, copy = std::move(copy), grid, order = order_of_threads()] {
    run_on_host(kernel, copy.data(), grid, order);
  });
}

void HostRuntime::record(Event event, Stream stream) {
  expect_no_capture("the record of an event");
  auto mark = std::make_shared<Reached>();
  events_[static_cast<std::size_t>(event.index)] = mark;
  post(stream, "the record of an event", [mark] { *mark = {.is_done = true, .at = base::Clock::now()}; });
}

void HostRuntime::wait(Stream stream, Event event) {
  expect_no_capture("a wait for an event");
  const Mark& mark = events_[static_cast<std::size_t>(event.index)];
  if (mark == nullptr) return;
  queue(stream).push_back(
      {.number = posted_++, .what = "a wait for an event", .op = op_, .work = {}, .waits_for = mark});
}

// ---- captured sections

void HostRuntime::expect_no_capture(const char* call) const {
  if (sections_.is_recording()) fail_engine(op_, fmt::format("{} must not be in a captured section", call));
}

void HostRuntime::expect_preparing(const char* call) const {
  expect_no_capture(call);
  if (is_sealed_)
    fail_engine(op_, fmt::format("{} came after the warm-up, where it may wait for other devices", call));
}

CapturedSection HostRuntime::capture(Stream stream, const std::function<void()>& post) {
  expect_preparing("a section");
  static_cast<void>(queue(stream));  // checks that the stream exists
  return sections_.record(stream, post);
}

void HostRuntime::replay(Stream stream, CapturedSection section) {
  expect_no_capture("a section");
  for (Item item : sections_.at(section)) {
    item.number = posted_++;
    queue(stream).push_back(std::move(item));
  }
}

// ---- running

bool HostRuntime::is_done(Event event) {
  expect_no_capture("a look at an event");
  const Mark& mark = events_[static_cast<std::size_t>(event.index)];
  return mark == nullptr || mark->is_done;
}

double HostRuntime::seconds_between(Event begin, Event end) {
  const Mark& from = events_[static_cast<std::size_t>(begin.index)];
  const Mark& to = events_[static_cast<std::size_t>(end.index)];
  if (from == nullptr || !from->is_done || to == nullptr || !to->is_done)
    fail_engine(op_, "time was taken from an event that was not reached");
  return base::seconds(to->at - from->at);
}

void HostRuntime::synchronize(Stream stream) {
  expect_no_capture("a wait of the host");
  const auto& waited_for = queue(stream);
  run_until([&] { return waited_for.empty(); });
}

void HostRuntime::synchronize(Event event) {
  expect_no_capture("a wait of the host");
  const Mark mark = events_[static_cast<std::size_t>(event.index)];
  if (mark != nullptr) run_until([&] { return mark->is_done; });
}

void HostRuntime::run_until(const std::function<bool()>& is_done) {
  while (!is_done()) {
    const int stream = next_stream();
    if (stream < 0) fail_engine(op_, "every stream waits for another one");
    auto& items = streams_[static_cast<std::size_t>(stream)];
    const Item item = std::move(items.front());
    items.pop_front();
    if (item.work) item.work();
    check_guards(item);
  }
}

int HostRuntime::next_stream() {
  std::vector<int> ready;
  for (int stream = 0; stream < static_cast<int>(streams_.size()); ++stream) {
    const auto& items = streams_[static_cast<std::size_t>(stream)];
    if (!items.empty() && (items.front().waits_for == nullptr || items.front().waits_for->is_done))
      ready.push_back(stream);
  }
  return ready.empty() ? -1 : choose(ready);
}

int HostRuntime::choose(std::span<const int> ready) {
  return *std::ranges::min_element(
      ready, {}, [&](int stream) { return streams_[static_cast<std::size_t>(stream)].front().number; });
}

std::unique_ptr<Convolution> HostRuntime::make_convolution(const ConvProblem& problem,
                                                           const std::string& algorithm) {
  check(problem);
  const bool is_descending = algorithm == kDescending;
  if (!algorithm.empty() && algorithm != kAscending && !is_descending)
    throw AlgorithmRefused(problem, algorithm, "is not an algorithm of the CUDA engine on the processor");
  return std::make_unique<HostConvolution>(*this, problem,
                                           is_descending ? HostLoops::descending : HostLoops::ascending);
}

ConvCandidates HostRuntime::convolution_candidates(const ConvProblem& problem) {
  check(problem);
  return {.algorithms = {kAscending, kDescending}, .left_out = {}};
}

std::unique_ptr<base::SideStream> HostRuntime::make_side_stream(Stream engine) {
  return std::make_unique<HostSideStream>(*this, engine);
}

HostSideStream::HostSideStream(HostRuntime& runtime, Stream engine)
    : here_{.runtime = runtime, .stream = runtime.make_stream()},
      engine_(engine),
      engine_came_(runtime.make_event()) {}

std::string HostSideStream::device() const {
  return fmt::format("host runtime {} of process {}", fmt::ptr(&here_.runtime), ::getpid());
}

void HostSideStream::follow_engine() {
  here_.runtime.record(engine_came_, engine_);
  here_.runtime.wait(here_.stream, engine_came_);
}

void HostSideStream::engine_follows(int mark) {
  here_.runtime.wait(engine_, marks_[static_cast<std::size_t>(mark)]->event);
}

void HostSideStream::tree_sum(float* first, int parts, std::size_t stride, std::size_t count, float* dst) {
  for_each_tree_level(first, parts, stride, count, dst,
                      [&](const ArrayTreeLevel& level) { here_.runtime.launch(here_.stream, level); });
}

int HostSideStream::make_mark() {
  marks_.push_back(std::make_shared<Mark>());
  marks_.back()->event = here_.runtime.make_event();
  return static_cast<int>(marks_.size()) - 1;
}

void HostSideStream::set(int mark) {
  const auto& one = marks_[static_cast<std::size_t>(mark)];
  one->is_done = false;
  here_.runtime.post(here_.stream, "a mark", [one] {
    one->at = base::Clock::now();
    one->is_done.store(true, std::memory_order_release);
  });
  here_.runtime.record(one->event, here_.stream);
}

bool HostSideStream::is_done(int mark) const {
  return marks_[static_cast<std::size_t>(mark)]->is_done.load(std::memory_order_acquire);
}

void HostSideStream::wait(int mark) {
  if (!is_done(mark)) here_.runtime.synchronize(marks_[static_cast<std::size_t>(mark)]->event);
}

base::TimePoint HostSideStream::done_at(int mark) { return marks_[static_cast<std::size_t>(mark)]->at; }

}  // namespace paceline::engine::cuda
