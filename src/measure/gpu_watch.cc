#include "measure/gpu_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

namespace paceline::measure {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::optional<double> most(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

template <typename Told>
std::optional<double> as_number(const std::optional<Told>& told) {
  return told ? std::optional(static_cast<double>(*told)) : std::nullopt;
}

/// One column of the rows; empty if no row has a number.
template <typename Rows, typename Get>
std::vector<double> column_of(const Rows& rows, Get get) {
  std::vector<double> column;
  for (const auto& row : rows) column.push_back(get(row));
  if (std::all_of(column.begin(), column.end(), [](double one) { return std::isnan(one); })) column.clear();
  return column;
}

bool is_faster_link(const base::PcieLink& one, const base::PcieLink& other) {
  return one.generation * one.width > other.generation * other.width;
}

/// Compares the numbers only if the bus ids are unknown, since processes in different containers may number
/// the GPUs differently.
bool is_same_gpu(const GpuRecord& a, const GpuRecord& b) {
  if (a.host != b.host || a.bus_id != b.bus_id) return false;
  return a.bus_id.has_value() || a.index == b.index;
}

/// Removes the run's own processes from `others`: `own` are those of this host; `here` of them use this GPU.
void leave_others(GpuRecord& gpu, const std::set<std::int64_t>& own, std::size_t here) {
  if (!gpu.others) return;
  auto& others = *gpu.others;
  const auto is_own = [&](const GpuProcessRecord& one) { return own.contains(one.pid); };
  if (std::any_of(others.begin(), others.end(), is_own)) {
    std::erase_if(others, is_own);
    return;
  }
  // The process ids are of another namespace, or the driver does not list a process. The run's processes are
  // those that were present longest.
  std::stable_sort(others.begin(), others.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  others.erase(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(std::min(here, others.size())));
  for (auto& one : others) one.pid = 0;
}

}  // namespace

void GpuCourse::join(Row& row, const Row& next) {
  row.readings += next.readings;
  for (const auto mean :
       {&Row::utilisation, &Row::memory_utilisation, &Row::watts, &Row::sm_mhz, &Row::memory_mhz}) {
    (row.*mean).sum += (next.*mean).sum;
    (row.*mean).told += (next.*mean).told;
  }
  row.memory_bytes = most(row.memory_bytes, next.memory_bytes);
  row.celsius = most(row.celsius, next.celsius);
}

void GpuCourse::add(const base::GpuReading& reading, base::TimePoint at) {
  const double at_s = base::seconds(at - begin_);
  const auto mean_of = [](const auto& told) {
    return told ? Row::Mean{static_cast<double>(*told), 1} : Row::Mean{};
  };
  const Row row{.at_s = at_s,
                .readings = 1,
                .utilisation = mean_of(reading.utilisation),
                .memory_utilisation = mean_of(reading.memory_utilisation),
                .watts = mean_of(reading.watts),
                .sm_mhz = mean_of(reading.sm_mhz),
                .memory_mhz = mean_of(reading.memory_mhz),
                .memory_bytes = as_number(reading.used_bytes),
                .celsius = as_number(reading.celsius)};
  ++readings_;
  if (!first_s_) first_s_ = at_s;
  last_s_ = at_s;
  if (!rows_.empty() && rows_.back().readings < readings_each_) {
    join(rows_.back(), row);
  } else {
    if (rows_.size() == most_rows_) {
      for (std::size_t i = 0; 2 * i + 1 < rows_.size(); ++i) {
        Row pair = rows_[2 * i];
        join(pair, rows_[2 * i + 1]);
        rows_[i] = pair;
      }
      rows_.resize(most_rows_ / 2);
      readings_each_ *= 2;
    }
    rows_.push_back(row);
  }
  add_energy(reading, at_s);
  if (reading.brakes) {
    ++brakes_told_;
    for (std::size_t i = 0; i < base::kGpuBrakes.size(); ++i)
      if ((*reading.brakes >> i & 1U) != 0) ++braked_[std::string(base::kGpuBrakes[i])];
  }
  if (reading.pcie && (!pcie_ || is_faster_link(*reading.pcie, *pcie_))) pcie_ = reading.pcie;
  add_xids(reading.xids);
  if (reading.processes) add_processes(*reading.processes);
}

void GpuCourse::add_energy(const base::GpuReading& reading, double at_s) {
  if (reading.joules) {
    // The counter went backwards: the driver was reloaded.
    if (last_joules_ && *reading.joules < *last_joules_) has_counter_ = false;
    if (!first_joules_) first_joules_ = reading.joules, first_joules_at_s_ = at_s;
    last_joules_ = reading.joules;
    last_joules_at_s_ = at_s;
  }
  if (reading.watts) {
    if (watts_) trapezoids_j_ += (*watts_ + *reading.watts) / 2 * (at_s - *watts_at_s_);
    if (!watts_) first_watts_at_s_ = at_s;
    watts_ = reading.watts;
    watts_at_s_ = at_s;
  }
}

void GpuCourse::add_processes(const std::vector<base::GpuProcessReading>& processes) {
  ++processes_told_;
  for (const auto& one : processes) {
    auto& known = processes_[one.pid];
    const auto before = known.last.memory_bytes;
    known.last = one;
    if (before && (!one.memory_bytes || *before > *one.memory_bytes)) known.last.memory_bytes = before;
    ++known.seen;
  }
}

GpuRecord GpuCourse::record(const base::GpuIdentity& identity) const {
  const auto text = [](const std::string& told) { return told.empty() ? std::nullopt : std::optional(told); };
  GpuRecord record{.index = identity.index,
                   .name = identity.name,
                   .uuid = text(identity.uuid),
                   .bus_id = text(identity.bus_id),
                   .readings = readings_,
                   .watts_limit = identity.watts_limit,
                   .memory_bytes = identity.memory_bytes,
                   .sm_mhz_most = identity.sm_mhz_most,
                   .memory_mhz_most = identity.memory_mhz_most,
                   .pcie = pcie_,
                   .pcie_most = identity.pcie_most,
                   .nvlinks = identity.nvlinks};
  if (first_s_) record.seconds = *last_s_ - *first_s_;
  // Only if the counter covers all readings, so that energy over seconds is the mean power.
  if (has_counter_ && first_joules_ && record.seconds > 0 && first_joules_at_s_ == *first_s_ &&
      last_joules_at_s_ == *last_s_) {
    record.energy_j = *last_joules_ - *first_joules_;
    record.energy_by = "counter";
  } else if (watts_ && record.seconds > 0 && first_watts_at_s_ == *first_s_ && *watts_at_s_ == *last_s_) {
    record.energy_j = trapezoids_j_;
    record.energy_by = "power";
  }
  if (brakes_told_ > 0) {
    record.held_back.emplace();
    for (const auto& [name, count] : braked_)
      (*record.held_back)[name] = static_cast<double>(count) / static_cast<double>(brakes_told_);
  }
  if (processes_told_ > 0) {
    record.others.emplace();
    for (const auto& [pid, process] : processes_)
      record.others->push_back(
          {.pid = pid,
           .name = process.last.name,
           .memory_bytes = process.last.memory_bytes,
           .share = static_cast<double>(process.seen) / static_cast<double>(processes_told_)});
  }
  if (!xids_.empty()) record.xids = xids_;
  auto& course = record.course;
  course.readings_each = readings_each_;
  const auto mean = [](const Row::Mean& of) { return of.told > 0 ? of.sum / of.told : kNone; };
  for (const auto& row : rows_) course.at_s.push_back(row.at_s);
  course.utilisation = column_of(rows_, [&](const Row& row) { return mean(row.utilisation); });
  course.memory_utilisation = column_of(rows_, [&](const Row& row) { return mean(row.memory_utilisation); });
  course.memory_bytes = column_of(rows_, [](const Row& row) { return row.memory_bytes.value_or(kNone); });
  course.watts = column_of(rows_, [&](const Row& row) { return mean(row.watts); });
  course.sm_mhz = column_of(rows_, [&](const Row& row) { return mean(row.sm_mhz); });
  course.memory_mhz = column_of(rows_, [&](const Row& row) { return mean(row.memory_mhz); });
  course.celsius = column_of(rows_, [](const Row& row) { return row.celsius.value_or(kNone); });
  return record;
}

/// The state that the thread and its owner share. Only the thread uses `source`.
struct GpuWatch::Shared {
  OpenGpus open;
  std::chrono::milliseconds period{};
  std::vector<int> pids;
  std::unique_ptr<base::GpuSource> source;

  std::mutex mutex;
  std::condition_variable wake, answered;
  bool stops = false, has_ended = false;
  std::int64_t window = 0;  ///< number of the current window; readings of an earlier one do not count for it
  std::int64_t asked = 0, answers = 0;  ///< number of extra readings requested, and of requests answered by a
                                        ///< reading that began later
  base::TimePoint begin = base::Clock::now();
  std::vector<GpuCourse> courses;  ///< one for each GPU
  /// [GPU] of readings that no course has: the driver reports each error once.
  std::vector<std::vector<int>> xids_before;
  std::vector<base::GpuIdentity> gpus;
  std::vector<std::string> failures;
  std::thread thread;

  void run();
  /// Reads all GPUs. Returns the number of the window that was open when the reading began.
  std::int64_t read_all();
  void say_once(const std::vector<std::string>& said);
  void keep_xids(std::size_t gpu, const std::vector<int>& xids) {
    xids_before[gpu].insert(xids_before[gpu].end(), xids.begin(), xids.end());
  }
};

void GpuWatch::Shared::say_once(const std::vector<std::string>& said) {
  for (const auto& one : said)
    if (std::find(failures.begin(), failures.end(), one) == failures.end()) failures.push_back(one);
}

std::int64_t GpuWatch::Shared::read_all() {
  std::int64_t of_window = 0, of_question = 0;
  {
    const std::lock_guard lock(mutex);
    of_window = window;
    of_question = asked;
  }
  std::vector<std::pair<base::GpuReading, base::TimePoint>> readings;
  for (std::size_t gpu = 0; gpu < source->gpus().size(); ++gpu) {
    const auto before = base::Clock::now();
    readings.emplace_back(source->read(gpu), before);
  }
  const std::lock_guard lock(mutex);
  xids_before.resize(readings.size());
  if (of_window != window) {
    for (std::size_t gpu = 0; gpu < readings.size(); ++gpu) keep_xids(gpu, readings[gpu].first.xids);
    return of_window;
  }
  if (courses.empty()) courses.assign(readings.size(), GpuCourse(begin, kMostRows));
  for (std::size_t gpu = 0; gpu < readings.size(); ++gpu) {
    courses[gpu].add_xids(std::exchange(xids_before[gpu], {}));
    courses[gpu].add(readings[gpu].first, readings[gpu].second);
    say_once(readings[gpu].first.failures);
  }
  answers = of_question;
  answered.notify_all();
  return of_window;
}

void GpuWatch::Shared::run() {
  try {
    source = open();
    {
      const std::lock_guard lock(mutex);
      gpus = source->gpus();
      for (const auto& gpu : gpus) say_once(gpu.failures);
    }
    while (true) {
      const auto read = read_all();
      std::unique_lock lock(mutex);
      // A window that began during the reading has no reading yet, so it is read at once.
      wake.wait_for(lock, period, [&] { return stops || window != read || asked != answers; });
      if (stops) break;
    }
    source.reset();
  } catch (const std::exception& error) {  // for example no driver or no memory; the run continues
    const std::lock_guard lock(mutex);
    say_once({error.what()});
  }
  const std::lock_guard lock(mutex);
  has_ended = true;
  answered.notify_all();
}

GpuWatch::GpuWatch(OpenGpus open, std::chrono::milliseconds period, std::vector<int> neighbours)
    : shared_(std::make_shared<Shared>()) {
  shared_->open = std::move(open);
  shared_->period = period;
  shared_->pids = std::move(neighbours);
  shared_->pids.push_back(::getpid());
  try {
    shared_->thread = std::thread([shared = shared_] { shared->run(); });
  } catch (const std::system_error&) {
    shared_->has_ended = true;
    shared_->failures.emplace_back("the system refused to start the thread that reads the GPUs");
  }
}

GpuWatch::~GpuWatch() {
  if (!shared_->thread.joinable()) return;
  std::unique_lock lock(shared_->mutex);
  shared_->stops = true;
  shared_->wake.notify_all();
  const bool ended = shared_->answered.wait_for(lock, kPatience, [&] { return shared_->has_ended; });
  lock.unlock();
  if (ended)
    shared_->thread.join();
  else
    shared_->thread.detach();  // a call to the driver hangs; it must not delay the end of the run
}

void GpuWatch::begin() {
  const std::lock_guard lock(shared_->mutex);
  ++shared_->window;
  shared_->begin = base::Clock::now();
  for (std::size_t gpu = 0; gpu < shared_->courses.size(); ++gpu)
    shared_->keep_xids(gpu, shared_->courses[gpu].xids());
  shared_->courses.clear();
  shared_->wake.notify_all();
}

GpuReport GpuWatch::end(int first_rank) {
  std::unique_lock lock(shared_->mutex);
  const auto question = ++shared_->asked;
  shared_->wake.notify_all();
  const bool is_answered = shared_->answered.wait_for(
      lock, kPatience, [&] { return shared_->has_ended || shared_->answers >= question; });
  GpuReport report{.pids = shared_->pids, .failures = shared_->failures};
  if (!is_answered)
    report.failures.push_back(fmt::format("the driver has not answered for {} s", kPatience.count() / 1000));
  for (std::size_t i = 0; i < shared_->courses.size(); ++i) {
    report.gpus.push_back(shared_->courses[i].record(shared_->gpus[i]));
    for (const int worker : shared_->gpus[i].workers) report.gpus.back().ranks.push_back(first_rank + worker);
  }
  return report;
}

std::vector<GpuRecord> join(std::span<const GpuReport> reports) {
  struct Joined {
    GpuRecord gpu;
    std::size_t processes = 1;  ///< processes of the run that use the GPU
  };
  std::vector<Joined> all;
  std::map<std::optional<std::string>, std::set<std::int64_t>> own;  // [host]
  for (const auto& report : reports)
    for (const auto& gpu : report.gpus) {
      own[gpu.host].insert(report.pids.begin(), report.pids.end());
      const auto known =
          std::find_if(all.begin(), all.end(), [&](const Joined& one) { return is_same_gpu(one.gpu, gpu); });
      if (known == all.end()) {
        all.push_back({.gpu = gpu});
        continue;
      }
      ++known->processes;
      auto& ranks = known->gpu.ranks;
      ranks.insert(ranks.end(), gpu.ranks.begin(), gpu.ranks.end());
    }
  std::vector<GpuRecord> gpus;
  for (auto& [gpu, processes] : all) {
    leave_others(gpu, own[gpu.host], processes);
    std::sort(gpu.ranks.begin(), gpu.ranks.end());
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

}  // namespace paceline::measure
