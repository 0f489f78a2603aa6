#include "comm/emulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

namespace paceline::comm {
namespace {

using base::Clock;
using base::ErrorKind;
using base::TimePoint;

/// Hosts of `per_host` ranks each.
int hosts_of(const EmulatedLink& link, int ranks) { return (ranks + link.per_host - 1) / link.per_host; }

/// Bytes a second between `ends` ends, which are behind several switches if they are many.
double outer_rate(const EmulatedLink& link, int ends) {
  return link.per_switch > 0 && ends > link.per_switch ? link.bytes_per_s / link.oversubscription
                                                       : link.bytes_per_s;
}

/// An all-reduce of `bytes` over a ring of `ends`; bytes_per_s 0: no limit.
double ring_seconds(double latency_s, double bytes_per_s, int ends, std::size_t bytes) {
  if (ends < 2) return 0;
  const double hops = 2.0 * (ends - 1);
  return hops * latency_s + (bytes_per_s > 0 ? hops / ends * static_cast<double>(bytes) / bytes_per_s : 0);
}

TimePoint later(TimePoint time, double seconds) {
  return time + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// When the last rank of this process posted a reduction.
struct Posting {
  TimePoint last{};
  int ranks = 0;  ///< that have posted it
};

/// The postings of the ranks of a process, which are its threads.
class Postings {
 public:
  explicit Postings(int ranks) : ranks_(ranks) {}
  /// A rank posts its reduction `number`, before it passes it to the inner communicator; so the posting is
  /// final once that is complete.
  std::shared_ptr<const Posting> post(std::int64_t number) {
    const std::lock_guard lock(mutex_);
    auto& open = open_[number];
    if (!open) open = std::make_shared<Posting>();
    const auto posting = open;
    posting->last = Clock::now();
    if (++posting->ranks == ranks_) open_.erase(number);
    return posting;
  }

 private:
  const int ranks_;
  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<Posting>> open_;  ///< that some ranks have not posted
};

/// A reduction of the inner communicator, and when the emulated link would finish it. The link carries one at
/// a time, so each refers to the previous one until its own time is known.
struct LinkTransfer {
  std::unique_ptr<Pending> inner;
  double seconds = 0;                      ///< on the link
  std::shared_ptr<const Posting> posting;  ///< none: the link begins when the inner reduction is complete
  std::shared_ptr<LinkTransfer> before;
  std::optional<TimePoint> at;

  /// Requires: inner->complete(), for all earlier ones too.
  TimePoint done() {
    if (!at) {
      const TimePoint summed = inner->timing().done;
      const TimePoint ready = posting ? posting->last : summed;
      at = std::max(summed, later(before ? std::max(ready, before->done()) : ready, seconds));
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
  /// `postings`: where real sums are hidden in the link's time; else null.
  Emulated(std::unique_ptr<Communicator> inner, const Emulation& emulation,
           std::shared_ptr<Postings> postings)
      : inner_(std::move(inner)),
        postings_(std::move(postings)),
        emulation_(emulation),
        slower_(emulation.straggler && emulation.straggler->rank == inner_->rank()
                    ? emulation.straggler->slower
                    : 1) {}

  [[nodiscard]] int rank() const override { return inner_->rank(); }
  [[nodiscard]] int size() const override { return inner_->size(); }
  [[nodiscard]] std::string name() const override {
    std::string text = inner_->name();
    if (emulation_.link) text += " + EMULATED link" + text_of_link();
    if (emulation_.straggler && emulation_.straggler->rank < inner_->size())
      text += fmt::format(" + EMULATED straggler: rank {} {:g} times slower", emulation_.straggler->rank,
                          emulation_.straggler->slower);
    return text;
  }
  [[nodiscard]] std::string algorithm() const override { return inner_->algorithm(); }

  std::unique_ptr<Pending> all_reduce(std::span<const float> src, std::span<float> dst) override {
    lag();
    auto posting = post();
    return carry(inner_->all_reduce(src, dst), 2 * one_way(dst.size_bytes()), std::move(posting));
  }
  std::unique_ptr<Pending> reduce_scatter(std::span<const float> src, std::span<float> dst) override {
    lag();
    auto posting = post();
    return carry(inner_->reduce_scatter(src, dst), one_way(src.size_bytes()), std::move(posting));
  }
  base::Buffer memory(std::size_t bytes) override { return inner_->memory(bytes); }
  void all_reduce(std::span<double> values, Reduce reduce) override {
    block([&] { inner_->all_reduce(values, reduce); }, 2 * one_way(values.size_bytes()));
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    block([&] { inner_->broadcast(bytes, root); }, one_way(bytes.size()));
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    block([&] { inner_->all_gather(mine, all); }, one_way(all.size()));
  }
  void barrier() override {
    block([&] { inner_->barrier(); }, 2 * one_way(0));
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
  [[nodiscard]] std::string text_of_link() const {
    const auto& link = *emulation_.link;
    const auto figures = [](double latency_s, double bytes_per_s) {
      return fmt::format("{:g} us, {}", 1e6 * latency_s,
                         bytes_per_s > 0 ? fmt::format("{:g} GB/s", bytes_per_s / 1e9) : "no limit");
    };
    std::string text = fmt::format(
        "{} of {}",
        link.between_hosts  ? fmt::format(" between {}", base::counted(emulation_.hosts, "host"))
        : link.per_host > 0 ? fmt::format(" between hosts of {}", base::counted(link.per_host, "rank"))
                            : "",
        figures(link.latency_s, link.bytes_per_s));
    if (link.per_host > 0)
      text += fmt::format(", inside them of {}", figures(link.inside_latency_s, link.inside_bytes_per_s));
    if (link.per_switch > 0)
      text += fmt::format(", oversubscribed {:g} times beyond a switch of {}", link.oversubscription,
                          link.per_switch);
    return text;
  }
  /// The number of ends that the link joins: ranks or hosts.
  [[nodiscard]] int ends() const { return emulation_.link->between_hosts ? emulation_.hosts : size(); }
  [[nodiscard]] double one_way(std::size_t bytes) const {
    return emulation_.link ? link_seconds(*emulation_.link, ends(), bytes) / 2 : 0;
  }
  /// The time for `bytes` of every other rank, one after the other over the central rank's links.
  [[nodiscard]] double by_root(std::size_t bytes) const {
    if (!emulation_.link) return 0;
    const auto& link = *emulation_.link;
    const auto each = [&](double latency_s, double bytes_per_s) {
      return latency_s + (bytes_per_s > 0 ? static_cast<double>(bytes) / bytes_per_s : 0);
    };
    const int hosts = link.per_host > 0 ? hosts_of(link, size()) : 0;
    if (hosts == 0) return (ends() - 1) * each(link.latency_s, outer_rate(link, ends()));
    return (std::min(size(), link.per_host) - 1) * each(link.inside_latency_s, link.inside_bytes_per_s) +
           (hosts - 1) * link.per_host * each(link.latency_s, outer_rate(link, hosts));
  }
  std::shared_ptr<const Posting> post() { return postings_ ? postings_->post(posted_++) : nullptr; }
  std::unique_ptr<Pending> carry(std::unique_ptr<Pending> inner, double seconds,
                                 std::shared_ptr<const Posting> posting) {
    auto transfer = std::make_shared<LinkTransfer>();
    transfer->posting = std::move(posting);
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
  const std::shared_ptr<Postings> postings_;
  std::int64_t posted_ = 0;
  const Emulation emulation_;
  const double slower_;
  std::shared_ptr<LinkTransfer> last_;
  TimePoint left_{};  ///< when this rank last left the communicator
  std::int64_t step_ = 0;
  const char* phase_ = "the start";
};

constexpr std::array kTimes{base::Unit{"x", 1.0}, base::Unit{"", 1.0}};
constexpr std::array kWhole{base::Unit{"", 1.0}};

/// A whole number, at most a million; nothing for any other.
std::optional<int> whole_in(std::string_view text) {
  const double number = base::number_in_units(text, kWhole);
  return number == std::floor(number) ? std::optional(static_cast<int>(std::min(1e6, number))) : std::nullopt;
}

void require_sound(const EmulatedLink& link, std::string_view text) {
  if (link.latency_s == 0 && link.bytes_per_s == 0)
    base::fail(ErrorKind::usage,
               "must give a latency or a bandwidth above 0, such as latency=50us,bandwidth=1GB/s");
  constexpr double kLongest_s = 60;
  if (std::max(link.latency_s, link.inside_latency_s) > kLongest_s)
    base::fail(ErrorKind::usage, "must give a latency of at most {:g} s, got '{}'", kLongest_s, text);
  if (link.between_hosts && link.per_host > 0)
    base::fail(ErrorKind::usage,
               "has between=hosts, which means the hosts of the run, and per-host, which makes hosts of the "
               "ranks of one process; give one of them, got '{}'",
               text);
  if (link.per_host == 0 && (link.inside_latency_s > 0 || link.inside_bytes_per_s > 0))
    base::fail(ErrorKind::usage,
               "gives a link inside a host but not the ranks of a host; add per-host=4, got '{}'", text);
  if (link.oversubscription < 1 || (link.oversubscription > 1) != (link.per_switch > 0) ||
      (link.per_switch > 0 && link.bytes_per_s == 0))
    base::fail(
        ErrorKind::usage,
        "must give an oversubscription of at least 1 with the ends of a switch and a bandwidth, such as "
        "bandwidth=1GB/s,per-switch=4,oversubscription=2, got '{}'",
        text);
}

}  // namespace

EmulatedLink parse_link(std::string_view text) {
  EmulatedLink link;
  const auto rate = [](std::string_view value) {
    const double bytes_per_s = base::number_in_units(value, base::kByteRateUnits);
    if (bytes_per_s == 0)
      base::fail(ErrorKind::usage,
                 "must give a bandwidth above 0, got '{}'; leave it out where only the latency counts",
                 value);
    return bytes_per_s;
  };
  const auto count = [&](std::string_view key, std::string_view value) {
    const int whole = whole_in(value).value_or(0);
    if (whole < 1)
      base::fail(ErrorKind::usage, "must give a whole number of at least 1 as {}, got '{}'", key, value);
    return whole;
  };
  base::each_part(text, "latency=50us,bandwidth=1GB/s", [&](std::string_view key, std::string_view value) {
    if (key == "latency") link.latency_s = base::number_in_units(value, base::kSecondUnits);
    if (key == "bandwidth") link.bytes_per_s = rate(value);
    if (key == "between") link.between_hosts = value == "hosts";
    if (key == "per-host") link.per_host = count(key, value);
    if (key == "inside-latency") link.inside_latency_s = base::number_in_units(value, base::kSecondUnits);
    if (key == "inside-bandwidth") link.inside_bytes_per_s = rate(value);
    if (key == "per-switch") link.per_switch = count(key, value);
    if (key == "oversubscription") link.oversubscription = base::number_in_units(value, kTimes);
    return key == "latency" || key == "bandwidth" || key == "per-host" || key == "inside-latency" ||
           key == "inside-bandwidth" || key == "per-switch" || key == "oversubscription" ||
           (key == "between" && (value == "hosts" || value == "ranks"));
  });
  require_sound(link, text);
  return link;
}

EmulatedStraggler parse_straggler(std::string_view text) {
  constexpr std::string_view kExample = "rank=3,slower=1.3x";
  EmulatedStraggler straggler{.rank = -1, .slower = 0};
  base::each_part(text, kExample, [&](std::string_view key, std::string_view value) {
    if (key == "rank") straggler.rank = whole_in(value).value_or(-1);
    if (key == "slower") straggler.slower = base::number_in_units(value, kTimes);
    return key == "rank" || key == "slower";
  });
  if (straggler.rank < 0 || straggler.slower < 1)
    base::fail(ErrorKind::usage, "must give a rank and a factor of at least 1, such as {}, got '{}'",
               kExample, text);
  return straggler;
}

double link_seconds(const EmulatedLink& link, int ranks, std::size_t bytes) {
  if (link.per_host == 0) return ring_seconds(link.latency_s, outer_rate(link, ranks), ranks, bytes);
  return ring_seconds(link.inside_latency_s, link.inside_bytes_per_s, std::min(ranks, link.per_host), bytes) +
         ring_seconds(link.latency_s, outer_rate(link, hosts_of(link, ranks)), hosts_of(link, ranks), bytes);
}

std::vector<std::unique_ptr<Communicator>> emulate(std::vector<std::unique_ptr<Communicator>> inner,
                                                   const Emulation& emulation) {
  if (!emulation.any()) return inner;
  const auto postings =
      emulation.hides_sums ? std::make_shared<Postings>(static_cast<int>(inner.size())) : nullptr;
  for (auto& one : inner) one = std::make_unique<Emulated>(std::move(one), emulation, postings);
  return inner;
}

}  // namespace paceline::comm
