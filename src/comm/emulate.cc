#include "comm/emulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace paceline::comm {
namespace {

using base::Clock;
using base::ErrorKind;
using base::TimePoint;

TimePoint later(TimePoint time, double seconds) {
  return time + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// A reduction of the inner communicator, and when the emulated link would finish it. The link carries one at
/// a time, so each refers to the previous one until its own time is known.
struct LinkTransfer {
  std::unique_ptr<Pending> inner;
  double seconds = 0;  ///< on the link
  std::shared_ptr<LinkTransfer> before;
  std::optional<TimePoint> at;

  /// Requires: inner->complete(), for all earlier ones too.
  TimePoint done() {
    if (!at) {
      const TimePoint summed = inner->timing().done;
      at = later(before ? std::max(summed, before->done()) : summed, seconds);
      before.reset();
    }
    return *at;
  }
};

class Slowed final : public Pending {
 public:
  /// `rest_until` outlives it.
  Slowed(std::shared_ptr<LinkTransfer> transfer, std::function<void(TimePoint)> rest_until)
      : transfer_(std::move(transfer)), rest_until_(std::move(rest_until)) {}
  void wait() override {
    transfer_->inner->wait();
    rest_until_(transfer_->done());
  }
  [[nodiscard]] bool complete() const override {
    return transfer_->inner->complete() && Clock::now() >= transfer_->done();
  }
  [[nodiscard]] Timing timing() const override {
    return {.posted = transfer_->inner->timing().posted, .done = transfer_->done()};
  }

 private:
  std::shared_ptr<LinkTransfer> transfer_;  ///< shared with the reduction posted after it
  std::function<void(TimePoint)> rest_until_;
};

class Emulated final : public Communicator {
 public:
  Emulated(std::unique_ptr<Communicator> inner, const Emulation& emulation)
      : inner_(std::move(inner)),
        emulation_(emulation),
        slower_(emulation.straggler && emulation.straggler->rank == inner_->rank()
                    ? emulation.straggler->slower
                    : 1) {}

  [[nodiscard]] int rank() const override { return inner_->rank(); }
  [[nodiscard]] int size() const override { return inner_->size(); }
  [[nodiscard]] std::string name() const override {
    std::string text = inner_->name();
    if (emulation_.link)
      text += fmt::format(
          " + EMULATED link{} of {:g} us, {}",
          emulation_.link->between_hosts ? fmt::format(" between {}", base::counted(emulation_.hosts, "host"))
                                         : "",
          1e6 * emulation_.link->latency_s,
          emulation_.link->bytes_per_s > 0 ? fmt::format("{:g} GB/s", emulation_.link->bytes_per_s / 1e9)
                                           : "no limit");
    if (emulation_.straggler && emulation_.straggler->rank < inner_->size())
      text += fmt::format(" + EMULATED straggler: rank {} {:g} times slower", emulation_.straggler->rank,
                          emulation_.straggler->slower);
    return text;
  }
  [[nodiscard]] std::string algorithm() const override { return inner_->algorithm(); }

  std::unique_ptr<Pending> all_reduce(std::span<const float> src, std::span<float> dst) override {
    lag();
    return carry(inner_->all_reduce(src, dst), 2 * one_way(dst.size_bytes()));
  }
  std::unique_ptr<Pending> reduce_scatter(std::span<const float> src, std::span<float> dst) override {
    lag();
    return carry(inner_->reduce_scatter(src, dst), one_way(src.size_bytes()));
  }
  base::Buffer memory(std::size_t bytes) override { return inner_->memory(bytes); }
  void all_reduce(std::span<double> values, Reduce reduce) override {
    block([&] { inner_->all_reduce(values, reduce); },
          emulation_.link ? link_seconds(*emulation_.link, ends(), values.size_bytes()) : 0);
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    block([&] { inner_->broadcast(bytes, root); }, one_way(bytes.size()));
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    block([&] { inner_->all_gather(mine, all); }, one_way(all.size()));
  }
  void barrier() override {
    block([&] { inner_->barrier(); }, emulation_.link ? link_seconds(*emulation_.link, ends(), 0) : 0);
  }
  void scatter(std::span<const std::byte> all, std::span<std::byte> mine, int root) override {
    block([&] { inner_->scatter(all, mine, root); }, by_root(mine.size()));
  }
  void gather(std::span<const std::byte> mine, std::span<std::byte> all, int root) override {
    block([&] { inner_->gather(mine, all, root); }, by_root(mine.size()));
  }
  void reduce(std::span<float> values, int root) override {
    block([&] { inner_->reduce(values, root); }, by_root(values.size_bytes()));
  }
  void at(std::int64_t step, const char* phase) override {
    step_ = step;
    phase_ = phase;
    inner_->at(step, phase);
  }
  void abort(const std::string& reason, base::ErrorKind kind) override { inner_->abort(reason, kind); }
  void check() const override { inner_->check(); }
  [[nodiscard]] Traffic traffic() const override { return inner_->traffic(); }

 private:
  /// The number of ends that the link joins: ranks or hosts.
  [[nodiscard]] int ends() const { return emulation_.link->between_hosts ? emulation_.hosts : size(); }
  [[nodiscard]] double one_way(std::size_t bytes) const {
    return emulation_.link ? link_seconds(*emulation_.link, ends(), bytes) / 2 : 0;
  }
  /// The time for `bytes` of every other rank, one after the other over the central rank's link.
  [[nodiscard]] double by_root(std::size_t bytes) const {
    if (!emulation_.link) return 0;
    const auto& link = *emulation_.link;
    const double each =
        link.latency_s + (link.bytes_per_s > 0 ? static_cast<double>(bytes) / link.bytes_per_s : 0);
    return (ends() - 1) * each;
  }
  std::unique_ptr<Pending> carry(std::unique_ptr<Pending> inner, double seconds) {
    auto transfer = std::make_shared<LinkTransfer>();
    transfer->seconds = seconds;
    transfer->before = std::exchange(last_, transfer);
    transfer->inner = std::move(inner);
    left_ = Clock::now();
    return std::make_unique<Slowed>(std::move(transfer), [this](TimePoint end) {
      rest_until(end);
      left_ = Clock::now();
    });
  }
  template <typename Call>
  void block(const Call& call, double seconds) {
    lag();
    call();
    if (seconds > 0) rest_until(later(Clock::now(), seconds));
    left_ = Clock::now();
  }
  /// Delays a slow rank: its work since it last left the communicator takes `slower` times as long.
  void lag() {
    if (slower_ <= 1 || left_ == TimePoint{}) return;
    const auto now = Clock::now();
    rest_until(later(now, (slower_ - 1) * base::seconds(now - left_)));
  }
  /// Sleeps, and reports progress each second, since an idle rank would be considered hanging.
  void rest_until(TimePoint end) {
    constexpr std::chrono::seconds kSign{1};
    for (; end - Clock::now() > kSign; inner_->at(step_, phase_)) std::this_thread::sleep_for(kSign);
    std::this_thread::sleep_until(end);
  }

  std::unique_ptr<Communicator> inner_;
  const Emulation emulation_;
  const double slower_;
  std::shared_ptr<LinkTransfer> last_;
  TimePoint left_{};  ///< when this rank last left the communicator
  std::int64_t step_ = 0;
  const char* phase_ = "the start";
};

struct UnitFactor {
  std::string_view name;
  double factor;
};
constexpr std::array kSeconds{UnitFactor{"ns", 1e-9}, UnitFactor{"us", 1e-6}, UnitFactor{"ms", 1e-3},
                              UnitFactor{"s", 1.0}};
constexpr std::array kRates{UnitFactor{"GB/s", 1e9},      UnitFactor{"MB/s", 1e6},
                            UnitFactor{"kB/s", 1e3},      UnitFactor{"Gbit/s", 1.25e8},
                            UnitFactor{"Mbit/s", 1.25e5}, UnitFactor{"kbit/s", 125.0},
                            UnitFactor{"B/s", 1.0}};
constexpr std::array kTimes{UnitFactor{"x", 1.0}, UnitFactor{"", 1.0}};
constexpr std::array kWhole{UnitFactor{"", 1.0}};

template <std::size_t count>
double number_in_units(std::string_view text, const std::array<UnitFactor, count>& units) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const auto found =
      std::find_if(units.begin(), units.end(), [&](const UnitFactor& one) { return one.name == unit; });
  if (error == std::errc() && value >= 0 && std::isfinite(value) && found != units.end())
    return value * found->factor;
  std::string known;
  for (const auto& one : units)
    if (!one.name.empty()) known += fmt::format("{}{}", known.empty() ? "" : ", ", one.name);
  base::fail(ErrorKind::usage, "has '{}', which is not a number{}", text,
             known.empty() ? "" : " with one of the units " + known);
}

/// Calls `take(key, value)` for each part of "key=value,key=value"; `take` returns whether it knows the key.
template <typename Take>
void each_part(std::string_view text, std::string_view example, const Take& take) {
  for (std::string_view rest = text; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto part = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const auto equals = part.find('=');
    if (equals == std::string_view::npos || !take(part.substr(0, equals), part.substr(equals + 1)))
      base::fail(ErrorKind::usage, "must be written as {}, got '{}'", example, text);
  }
}

}  // namespace

EmulatedLink parse_link(std::string_view text) {
  EmulatedLink link;
  each_part(text, "latency=50us,bandwidth=1GB/s", [&](std::string_view key, std::string_view value) {
    if (key == "latency") link.latency_s = number_in_units(value, kSeconds);
    if (key == "bandwidth" && (link.bytes_per_s = number_in_units(value, kRates)) == 0)
      base::fail(ErrorKind::usage,
                 "must give a bandwidth above 0, got '{}'; leave it out where only the latency counts",
                 value);
    if (key == "between") link.between_hosts = value == "hosts";
    return key == "latency" || key == "bandwidth" ||
           (key == "between" && (value == "hosts" || value == "ranks"));
  });
  if (link.latency_s == 0 && link.bytes_per_s == 0)
    base::fail(ErrorKind::usage,
               "must give a latency or a bandwidth above 0, such as latency=50us,bandwidth=1GB/s");
  constexpr double kLongest_s = 60;
  if (link.latency_s > kLongest_s)
    base::fail(ErrorKind::usage, "must give a latency of at most {:g} s, got '{}'", kLongest_s, text);
  return link;
}

EmulatedStraggler parse_straggler(std::string_view text) {
  constexpr std::string_view kExample = "rank=3,slower=1.3x";
  EmulatedStraggler straggler{.rank = -1, .slower = 0};
  each_part(text, kExample, [&](std::string_view key, std::string_view value) {
    if (key == "rank") {
      const double rank = number_in_units(value, kWhole);
      straggler.rank = rank == std::floor(rank) ? static_cast<int>(std::min(1e6, rank)) : -1;
    }
    if (key == "slower") straggler.slower = number_in_units(value, kTimes);
    return key == "rank" || key == "slower";
  });
  if (straggler.rank < 0 || straggler.slower < 1)
    base::fail(ErrorKind::usage, "must give a rank and a factor of at least 1, such as {}, got '{}'",
               kExample, text);
  return straggler;
}

double link_seconds(const EmulatedLink& link, int ranks, std::size_t bytes) {
  if (ranks < 2) return 0;
  const double n = ranks;
  const double moving =
      link.bytes_per_s > 0 ? 2 * (n - 1) / n * static_cast<double>(bytes) / link.bytes_per_s : 0;
  return 2 * (n - 1) * link.latency_s + moving;
}

std::vector<std::unique_ptr<Communicator>> emulate(std::vector<std::unique_ptr<Communicator>> inner,
                                                   const Emulation& emulation) {
  if (!emulation.any()) return inner;
  std::vector<std::unique_ptr<Communicator>> wrapped;
  for (auto& one : inner) wrapped.push_back(std::make_unique<Emulated>(std::move(one), emulation));
  return wrapped;
}

}  // namespace paceline::comm
