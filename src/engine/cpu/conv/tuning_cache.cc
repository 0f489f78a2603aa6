#include "engine/cpu/conv/tuning_cache.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <omp.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>

#include "base/cache_directory.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/program_path.h"
#include "base/thread_pool.h"
#include "base/topology.h"
#include "engine/cpu/conv/tuning_table.h"
#include "engine/cpu/kernels/isa.h"

namespace paceline::engine::cpu {
namespace {

constexpr int kMostThreads = 16;  ///< that measure: each holds the arrays of a problem

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 1);
  return " unknown processor";
}

std::string machine_here() {
  const auto* version = dnnl_version();
  const std::string_view limit = isa_limit();
  return fmt::format("{}; own {}{}{}; oneDNN {}.{}.{}, instructions {}; {}", processor(),
                     name_of(isas_here().back()), limit.empty() ? "" : ", at most ", limit, version->major,
                     version->minor, version->patch, static_cast<unsigned>(dnnl::get_effective_cpu_isa()),
                     base::build_id());  // another build may have faster kernels
}

/// Machines that share a home directory keep files of their own, and so do builds of one machine: what is
/// compiled after measuring finds what was measured, whatever other builds do meanwhile.
std::string hardware_name(const std::string& machine) {
  return fmt::format("kernels-{:016x}", std::hash<std::string>{}(machine.substr(0, machine.rfind(';'))));
}
std::filesystem::path file_for(const std::filesystem::path& directory, const std::string& machine) {
  return directory /
         fmt::format("{}-{:08x}.txt", hardware_name(machine), std::hash<std::string>{}(machine)&0xffffffffu);
}

/// Removes the files of builds of this machine that nobody has written for a month, but `own`.
void remove_old(const std::filesystem::path& own, const std::string& prefix) {
  const auto month_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 30);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(own.parent_path(), ignored)) {
    const bool is_of_machine = entry.path().filename().string().starts_with(prefix + "-") &&
                               entry.path().extension() == ".txt" && entry.path() != own;
    if (is_of_machine && entry.last_write_time(ignored) < month_ago)
      std::filesystem::remove(entry.path(), ignored);
  }
}

/// Held while one process measures: the others wait, then read what it found.
///
/// Errors   Error(data) after kPatience
class MachineLock {
 public:
  static constexpr std::chrono::seconds kPatience{120};

  explicit MachineLock(const std::filesystem::path& file)
      : descriptor_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0)
      base::fail(base::ErrorKind::data, "{}: cannot be opened: {}", file.string(), std::strerror(errno));
    // Measuring takes seconds; who holds the lock longer is stopped, or is no such process.
    const auto end = base::Clock::now() + kPatience;
    while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
      if (base::Clock::now() >= end) {
        ::close(descriptor_);
        base::fail(
            base::ErrorKind::data,
            "{}: another process has held this lock for {} s, as if it measured kernels; end it (fuser -v "
            "{} names it), or remove the file",
            file.string(), kPatience.count(), file.string());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  ~MachineLock() { ::close(descriptor_); }
  MachineLock(const MachineLock&) = delete;
  MachineLock& operator=(const MachineLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace

TuningCache::TuningCache(const std::filesystem::path& directory, std::string machine)
    : file_(file_for(directory, machine)), machine_(std::move(machine)), table_(read()) {}

std::shared_ptr<TuningCache> TuningCache::here() {
  return std::make_shared<TuningCache>(base::cache_directory(), machine_here());
}

const ConvAlgorithm* TuningCache::find(const ConvProblem& problem) const {
  const std::lock_guard lock(mutex_);
  const auto found = table_.find(key_of(problem));
  if (found == table_.end() || found->second->refusal(problem)) return nullptr;
  return found->second;
}

TuningCache::Outcome TuningCache::complete(const std::vector<ConvProblem>& problems, Measure measure) {
  const std::lock_guard lock(mutex_);
  const auto lacks = [](const AlgorithmByKey& table, const ConvProblem& problem) {
    return !table.contains(key_of(problem));
  };
  if (std::ranges::none_of(problems, [&](const ConvProblem& p) { return lacks(table_, p); })) return {};
  Outcome outcome;
  const auto begin = base::Clock::now();
  try {
    std::filesystem::create_directories(file_.parent_path());
    const MachineLock one_at_a_time(file_.parent_path() / (hardware_name(machine_) + ".txt.lock"));
    AlgorithmByKey table = read();
    std::map<std::string, const ConvProblem*> open;
    for (const ConvProblem& problem : problems)
      if (lacks(table, problem)) open[key_of(problem)] = &problem;
    const std::vector<std::pair<std::string, const ConvProblem*>> list(open.begin(), open.end());
    outcome.measured = static_cast<int>(list.size());
    std::vector<const ConvAlgorithm*> found(list.size());
    base::ThreadPool pool(std::clamp(outcome.measured, 1, std::min(base::usable_cores(), kMostThreads)),
                          [] { omp_set_num_threads(1); });
    pool.run(outcome.measured, [&](int i, int) {
      found[static_cast<std::size_t>(i)] = measure(*list[static_cast<std::size_t>(i)].second);
    });
    for (std::size_t i = 0; i < list.size(); ++i) table[list[i].first] = found[i];
    if (outcome.measured > 0) write(table);
    remove_old(file_, hardware_name(machine_));
    table_ = std::move(table);
  } catch (const base::Error& error) {
    outcome.trouble = error.what();
  } catch (const std::filesystem::filesystem_error& error) {
    outcome.trouble = error.what();
  }
  outcome.seconds = base::seconds_since(begin);
  return outcome;
}

TuningCache::AlgorithmByKey TuningCache::read() const {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(file_, unknown)) return {};  // a FIFO would be waited for
  try {
    auto table = tuning_table_from(base::read_file(file_));
    return table && table->machine == machine_ ? std::move(table->algorithms) : AlgorithmByKey{};
  } catch (const base::Error&) {
    return {};
  }
}

void TuningCache::write(const AlgorithmByKey& table) const {
  base::write_file(file_, as_text({.machine = machine_, .algorithms = table}));
}

}  // namespace paceline::engine::cpu
