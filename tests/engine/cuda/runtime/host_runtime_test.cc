// The host runtime: what waits and events mean, and that it finds the mistakes that it is there to find.

#include "engine/cuda/runtime/host_runtime.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <string>

#include "base/error.h"
#include "engine/cuda/kernels/kernel.h"
#include "engine/cuda/kernels/table.h"
#include "engine/cuda/observed_runtime.h"

namespace paceline::engine::cuda {
namespace {

/// Two streams that write letters into one text as they run.
struct Letters {
  explicit Letters(const HostRuntimeOptions& options) : runtime(options) {
    first = runtime.make_stream();
    second = runtime.make_stream();
  }
  void post(Stream stream, char letter) {
    runtime.post(stream, "a letter", [this, letter] { text += letter; });
  }
  void finish() {
    runtime.synchronize(first);
    runtime.synchronize(second);
  }
  ObservedRuntime runtime;
  Stream first, second;
  std::string text;
};

std::string without_events(const HostRuntimeOptions& options) {
  Letters letters(options);
  for (const char letter : {'a', 'b', 'c'}) {
    letters.post(letters.first, letter);
    letters.post(letters.second, static_cast<char>(letter - 'a' + 'x'));
  }
  letters.finish();
  return letters.text;
}

TEST(HostRuntime, RunsStreamsInTheOrderThatIsAskedFor) {
  EXPECT_EQ(without_events({.order = StreamOrder::as_posted}), "axbycz");
  EXPECT_EQ(without_events({.order = StreamOrder::first_first}), "abcxyz");
  EXPECT_EQ(without_events({.order = StreamOrder::last_first}), "xyzabc");
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 2000; ++seed)
    orders.insert(without_events({.order = StreamOrder::random, .seed = seed}));
  // 6! / (3! 3!) = 20 orders keep a, b, c and x, y, z in theirs.
  EXPECT_EQ(orders.size(), 20u);
  EXPECT_EQ(without_events({.order = StreamOrder::random, .seed = 5}),
            without_events({.order = StreamOrder::random, .seed = 5}));
}

TEST(HostRuntime, RunsNothingBeforeSomebodyWaits) {
  Letters letters({});
  letters.post(letters.first, 'a');
  letters.post(letters.second, 'x');
  EXPECT_EQ(letters.text, "");
  letters.runtime.synchronize(letters.second);
  EXPECT_NE(letters.text.find('x'), std::string::npos);
}

TEST(HostRuntime, OrdersStreamsByEvents) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Letters letters({.order = StreamOrder::random, .seed = seed});
    const Event event = letters.runtime.make_event();
    letters.post(letters.first, 'a');
    letters.runtime.record(event, letters.first);
    letters.post(letters.first, 'b');
    letters.runtime.wait(letters.second, event);
    letters.post(letters.second, 'x');
    letters.finish();
    EXPECT_LT(letters.text.find('a'), letters.text.find('x')) << letters.text;
  }
}

TEST(HostRuntime, WaitsForTheRecordOfTheTimeOfTheCall) {
  Letters letters({.order = StreamOrder::last_first});
  const Event event = letters.runtime.make_event();
  letters.runtime.wait(letters.second, event);  // never recorded: nothing to wait for
  letters.post(letters.second, 'x');
  letters.post(letters.first, 'a');
  letters.runtime.record(event, letters.first);
  letters.runtime.wait(letters.second, event);
  letters.post(letters.second, 'y');
  letters.post(letters.first, 'b');
  letters.runtime.record(event, letters.first);  // a later record, for which nobody waits
  letters.runtime.synchronize(letters.second);
  EXPECT_EQ(letters.text, "xay");
  letters.runtime.synchronize(event);  // the host waits for the latest
  EXPECT_EQ(letters.text, "xayb");
}

TEST(HostRuntime, LacksTheWaitThatIsDropped) {
  for (const int dropped : {0, 1}) {
    Letters letters({.order = StreamOrder::last_first});
    const Event event = letters.runtime.make_event();
    letters.runtime.drop_wait(dropped);
    letters.post(letters.first, 'a');
    letters.runtime.record(event, letters.first);
    letters.runtime.wait(letters.second, event);
    letters.post(letters.second, 'x');
    letters.runtime.synchronize(letters.second);
    EXPECT_EQ(letters.text, dropped == 0 ? "x" : "");
    EXPECT_EQ(letters.runtime.waits(), 2);
  }
}

TEST(HostRuntime, CopiesWhenTheQueueRuns) {
  HostRuntime runtime;
  const Stream stream = runtime.make_stream();
  auto* pinned = reinterpret_cast<float*>(runtime.allocate_pinned(4));
  auto* device = reinterpret_cast<float*>(runtime.allocate(4));
  *pinned = 1;
  runtime.copy_to_device(stream, device, pinned, 4);
  *pinned = 2;  // too early
  runtime.copy_to_host(stream, pinned, device, 4);
  runtime.synchronize(stream);
  EXPECT_EQ(*device, 2);
}

TEST(HostRuntime, GivesMemoryThatIsNoNumber) {
  HostRuntime runtime;
  for (std::byte* memory : {runtime.allocate(64), runtime.allocate_pinned(64)}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0u);
    float number = 0;
    std::memcpy(&number, memory + 32, sizeof number);
    EXPECT_TRUE(std::isnan(number));
  }
}

std::string device_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::device);
    return error.what();
  }
  return "";
}

TEST(HostRuntime, FindsWritesOutsideOfABlock) {
  for (const std::int64_t at : {std::int64_t{-1}, std::int64_t{10}}) {
    HostRuntime runtime;
    const Stream stream = runtime.make_stream();
    auto* memory = reinterpret_cast<float*>(runtime.allocate(40));
    runtime.set_step(12);
    runtime.set_op("conv1");
    runtime.launch(stream, ArrayFill{.dst = memory + at, .count = 1, .value = 0});
    runtime.set_op("conv2");  // the error names the op that posted the kernel
    EXPECT_NE(device_error_of([&] {
                runtime.synchronize(stream);
              }).find("in step 12, op conv1: a kernel wrote outside of a block of 40 bytes"),
              std::string::npos);
  }
}

TEST(HostRuntime, RefusesCopiesOfTheWrongMemory) {
  HostRuntime runtime;
  const Stream stream = runtime.make_stream();
  std::byte* device = runtime.allocate(64);
  std::byte* pinned = runtime.allocate_pinned(64);
  std::byte pageable[64];
  EXPECT_NE(device_error_of([&] { runtime.copy_to_device(stream, device, pageable, 64); }), "");
  EXPECT_NE(device_error_of([&] { runtime.copy_to_device(stream, pinned, pinned, 64); }), "");
  EXPECT_NE(device_error_of([&] { runtime.copy_to_host(stream, pageable, device, 64); }), "");
  EXPECT_NE(device_error_of([&] { runtime.copy_to_host(stream, pinned, device + 1, 64); }), "");
  EXPECT_NE(device_error_of([&] { runtime.copy_on_device(stream, device, pinned, 64); }), "");
  EXPECT_NE(device_error_of([&] { runtime.fill_bytes(stream, device, 0, 65); }), "");
  EXPECT_EQ(device_error_of([&] { runtime.copy_to_host(stream, pinned, device, 64); }), "");
}

TEST(HostRuntime, ReplaysASectionWithTheArgumentsThatWereRecorded) {
  ObservedRuntime runtime;
  const Stream stream = runtime.make_stream();
  auto* device = reinterpret_cast<float*>(runtime.allocate(8));
  auto* pinned = reinterpret_cast<float*>(runtime.allocate_pinned(8));
  float number = 3;  // by value in the section: it stays what it was
  pinned[0] = 1;     // read when the section runs
  const CapturedSection section = runtime.capture(stream, [&] {
    runtime.copy_to_device(stream, device, pinned, 4);
    runtime.launch(stream, ArrayFill{.dst = device + 1, .count = 1, .value = number});
  });
  runtime.synchronize(stream);
  EXPECT_TRUE(std::isnan(device[0])) << "nothing runs while it is captured";
  number = 4;
  for (const float given : {5.0f, 6.0f}) {
    pinned[0] = given;
    device[1] = 0;
    runtime.replay(stream, section);
    runtime.synchronize(stream);
    EXPECT_EQ(device[0], given);
    EXPECT_EQ(device[1], 3);
  }
  EXPECT_EQ(runtime.captures(), 1);
  EXPECT_EQ(runtime.replays(), 2);
}

TEST(HostRuntime, ReplayedItemsMixWithThoseOfOtherStreams) {
  std::set<std::string> texts;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Letters letters({.order = StreamOrder::random, .seed = seed});
    const CapturedSection section = letters.runtime.capture(letters.first, [&] {
      letters.post(letters.first, 'a');
      letters.post(letters.first, 'b');
    });
    letters.runtime.replay(letters.first, section);
    letters.post(letters.second, 'x');
    letters.finish();
    texts.insert(letters.text);
  }
  EXPECT_EQ(texts, (std::set<std::string>{"abx", "axb", "xab"}));
}

TEST(HostRuntime, RefusesWhatASectionMustNotDo) {
  ObservedRuntime runtime;
  const Stream stream = runtime.make_stream(), other = runtime.make_stream();
  const Event event = runtime.make_event();
  runtime.record(event, stream);
  std::byte* memory = runtime.allocate(4);
  const std::pair<const char*, std::function<void()>> forbidden[] = {
      {"an allocation", [&] { static_cast<void>(runtime.allocate(4)); }},
      {"an allocation", [&] { static_cast<void>(runtime.allocate_pinned(4)); }},
      {"a new stream", [&] { static_cast<void>(runtime.make_stream()); }},
      {"a new event", [&] { static_cast<void>(runtime.make_event()); }},
      {"the record of an event", [&] { runtime.record(event, stream); }},
      {"a wait for an event", [&] { runtime.wait(stream, event); }},
      {"a wait of the host", [&] { runtime.synchronize(stream); }},
      {"a wait of the host", [&] { runtime.synchronize(event); }},
      {"work of another stream", [&] { runtime.fill_bytes(other, memory, 0, 4); }},
      {"a section", [&] { runtime.replay(stream, {}); }},
      {"a section", [&] { static_cast<void>(runtime.capture(stream, [] {})); }},
  };
  for (const auto& [what, call] : forbidden) {
    const std::string text = device_error_of([&] { static_cast<void>(runtime.capture(stream, call)); });
    EXPECT_NE(text.find(std::string(what) + " must not be in a captured section"), std::string::npos) << text;
    EXPECT_EQ(device_error_of([&] { runtime.fill_bytes(stream, memory, 0, 4); }), "")
        << "the capture has ended";
  }
  EXPECT_EQ(runtime.captures(), 0);
}

TEST(HostRuntime, RefusesWhatComesAfterItIsSealed) {
  HostRuntime runtime;
  const Stream stream = runtime.make_stream();
  std::byte* memory = runtime.allocate(4);
  const ConvProblem problem{.samples = 1,
                            .channels_in = 8,
                            .height_in = 1,
                            .width_in = 1,
                            .channels_out = 8,
                            .height_out = 1,
                            .width_out = 1,
                            .kernel_height = 1,
                            .kernel_width = 1,
                            .stride = 1,
                            .padding = 0};
  const auto has_run = runtime.make_convolution(problem, {}), has_not = runtime.make_convolution(problem, {});
  has_run->run(stream, {});
  const std::pair<const char*, std::function<void()>> forbidden[] = {
      {"an allocation", [&] { static_cast<void>(runtime.allocate(4)); }},
      {"an allocation", [&] { static_cast<void>(runtime.allocate_pinned(4)); }},
      {"a new stream", [&] { static_cast<void>(runtime.make_stream()); }},
      {"a section",
       [&] {
         static_cast<void>(runtime.capture(stream, [&] { runtime.fill_bytes(stream, memory, 0, 4); }));
       }},
      {"the first run of a convolution", [&] { has_not->run(stream, {}); }},
  };
  runtime.seal(true);
  for (const auto& [what, call] : forbidden) {
    const std::string text = device_error_of(call);
    EXPECT_NE(text.find(std::string(what) + " came after the warm-up"), std::string::npos) << text;
  }
  EXPECT_EQ(device_error_of([&] { has_run->run(stream, {}); }), "");
  runtime.seal(false);
  for (const auto& [what, call] : forbidden) EXPECT_EQ(device_error_of(call), "") << what;
}

}  // namespace
}  // namespace paceline::engine::cuda
