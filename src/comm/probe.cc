#include "comm/probe.h"

#include <span>

#include "base/buffer.h"
#include "base/clock.h"

namespace paceline::comm {
namespace {

// Small whole numbers: their sums are exact in any order, so a wrong element is wrong beyond doubt. The
// period is no divisor of a segment or block, so a part in the wrong place shows.
constexpr std::size_t kPeriod = 13;

float value_of(std::size_t i, int rank) { return static_cast<float>(i % kPeriod) + static_cast<float>(rank); }

void fill(std::span<float> values, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(i, rank);
}

bool holds_sum(std::span<const float> values, int ranks) {
  const auto n = static_cast<float>(ranks);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != n * static_cast<float>(i % kPeriod) + n * (n - 1) / 2) return false;
  return true;
}

bool holds_values_of(std::span<const float> values, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != value_of(i, rank)) return false;
  return true;
}

/// One collective with its buffers: prepared, run, checked.
class Trial {
 public:
  Trial(Communicator& communicator, Collective collective, std::size_t count)
      : communicator_(communicator),
        collective_(collective),
        ranks_(static_cast<std::size_t>(communicator.size())),
        part_(count / ranks_),
        buffer_((is_gather() ? part_ * ranks_ : count) * sizeof(float)),
        apart_(collective == Collective::all_gather ? part_ * sizeof(float) : 0) {}

  [[nodiscard]] std::size_t bytes() { return values().size_bytes(); }

  void prepare() {
    const int rank = communicator_.rank();
    if (!is_gather()) {
      fill(values(), rank);
      return;
    }
    for (float& value : values()) value = -1;
    fill(mine(), rank);
  }
  void run() {
    switch (collective_) {
      case Collective::all_reduce:
        communicator_.all_reduce(values())->wait();
        return;
      case Collective::broadcast:
        communicator_.broadcast(std::as_writable_bytes(values()), 0);
        return;
      case Collective::all_gather:
      case Collective::all_gather_in_place:
        communicator_.all_gather(std::as_bytes(mine()), std::as_writable_bytes(values()));
        return;
    }
  }
  [[nodiscard]] bool is_correct() {
    if (collective_ == Collective::all_reduce) return holds_sum(values(), communicator_.size());
    if (collective_ == Collective::broadcast) return holds_values_of(values(), 0);
    for (std::size_t rank = 0; rank < ranks_; ++rank)
      if (!holds_values_of(values().subspan(rank * part_, part_), static_cast<int>(rank))) return false;
    return true;
  }

 private:
  [[nodiscard]] bool is_gather() const {
    return collective_ == Collective::all_gather || collective_ == Collective::all_gather_in_place;
  }
  [[nodiscard]] std::span<float> values() { return buffer_.as<float>(); }
  [[nodiscard]] std::span<float> mine() {
    if (collective_ == Collective::all_gather) return apart_.as<float>();
    return values().subspan(static_cast<std::size_t>(communicator_.rank()) * part_, part_);
  }

  Communicator& communicator_;
  Collective collective_;
  std::size_t ranks_;
  std::size_t part_;  ///< all-gather: floats of one rank
  base::Buffer buffer_, apart_;
};

}  // namespace

std::string_view name(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::all_gather:
    case Collective::all_gather_in_place:
      return "all_gather";
    case Collective::broadcast:
      return "broadcast";
  }
  return "?";
}

Probe probe(Communicator& communicator, Collective collective, std::size_t count, int warmup, int repeats) {
  Trial trial(communicator, collective, count);
  Probe probe{.bytes = trial.bytes(), .seconds = {}, .correct = true};
  double wrong = 0;
  for (int i = 0; i < warmup + repeats; ++i) {
    trial.prepare();
    communicator.barrier();
    const auto begin = base::Clock::now();
    trial.run();
    double seconds = base::seconds_since(begin);
    if (!trial.is_correct()) wrong = 1;
    communicator.all_reduce(std::span(&seconds, 1), Reduce::max);
    if (i >= warmup) probe.seconds.push_back(seconds);
  }
  communicator.all_reduce(std::span(&wrong, 1), Reduce::max);
  probe.correct = wrong == 0;
  return probe;
}

Probe probe_all_reduce(Communicator& communicator, std::size_t count, int warmup, int repeats) {
  return probe(communicator, Collective::all_reduce, count, warmup, repeats);
}

}  // namespace paceline::comm
