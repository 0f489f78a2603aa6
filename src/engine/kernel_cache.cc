#include "engine/kernel_cache.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "engine/kernel_table.h"

namespace paceline::engine {
namespace {

/// Each machine has its own file, since several may share a home directory, and so has each build: other
/// builds cannot change what a run has measured before it compiles.
std::string hardware_name(const std::string& machine) {
  return fmt::format("kernels-{:016x}", std::hash<std::string>{}(machine.substr(0, machine.rfind(';'))));
}
std::filesystem::path file_for(const std::filesystem::path& directory, const std::string& machine) {
  return directory /
         fmt::format("{}-{:08x}.txt", hardware_name(machine), std::hash<std::string>{}(machine)&0xffffffffu);
}

/// Removes files of other builds on this machine that were not written for a month; keeps `own`.
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

/// A lock that a process holds while it measures. Others wait for it, then read the results.
///
/// Errors   Error(data) after kPatience
class MachineLock {
 public:
  static constexpr std::chrono::seconds kPatience{120};

  explicit MachineLock(const std::filesystem::path& file)
      : descriptor_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0)
      base::fail(base::ErrorKind::data, "{}: cannot be opened: {}", file.string(), std::strerror(errno));
    // Measuring takes seconds; a process that holds the lock longer is stopped or not measuring.
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

KernelCache::KernelCache(const std::filesystem::path& directory, std::string machine,
                         std::function<bool(const std::string&)> is_known)
    : file_(file_for(directory, machine)),
      machine_(std::move(machine)),
      is_known_(std::move(is_known)),
      table_(read()) {}

std::optional<std::string> KernelCache::find(const std::string& problem) const {
  const auto found = table_.find(problem);
  return found == table_.end() ? std::nullopt : std::optional(found->second);
}

KernelCache::Outcome KernelCache::complete(const std::vector<std::string>& problems, const Measure& measure,
                                           std::size_t portion) {
  const auto is_in = [](const KernelAlgorithms& table) {
    return [&table](const std::string& problem) { return table.contains(problem); };
  };
  if (std::ranges::all_of(problems, is_in(table_))) return {};
  Outcome outcome;
  const auto begin = base::Clock::now();
  try {
    std::filesystem::create_directories(file_.parent_path());
    for (bool is_complete = false; !is_complete;) {
      const MachineLock one_at_a_time(file_.parent_path() / (hardware_name(machine_) + ".txt.lock"));
      KernelAlgorithms table = read();
      const std::set<std::string> all(problems.begin(), problems.end());
      std::vector<std::string> open;
      std::ranges::remove_copy_if(all, std::back_inserter(open), is_in(table));
      is_complete = open.size() <= portion;
      const std::size_t all_open = open.size();
      open.resize(std::min(open.size(), portion));
      if (!open.empty()) {
        KernelAlgorithms found = measure(open);
        outcome.measured += static_cast<int>(found.size());
        if (found.size() < open.size()) {
          is_complete = true;
          outcome.left = all_open - found.size();
        }
        if (!found.empty()) {
          table.merge(found);
          write(table);
        }
      }
      if (!is_complete) continue;
      remove_old(file_, hardware_name(machine_));
      table_ = std::move(table);
    }
  } catch (const base::Error& error) {
    if (error.kind() != base::ErrorKind::data) throw;
    outcome.trouble = error.what();
  } catch (const std::filesystem::filesystem_error& error) {
    outcome.trouble = error.what();
  }
  outcome.seconds = base::seconds_since(begin);
  return outcome;
}

KernelAlgorithms KernelCache::read() const {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(file_, unknown)) return {};  // opening a FIFO would block
  try {
    auto table = kernel_table_from(base::read_file(file_));
    if (!table || table->machine != machine_) return {};
    const bool is_whole =
        std::ranges::all_of(table->algorithms, [&](const auto& one) { return is_known_(one.second); });
    return is_whole ? std::move(table->algorithms) : KernelAlgorithms{};
  } catch (const base::Error&) {
    return {};
  }
}

void KernelCache::write(const KernelAlgorithms& table) const {
  base::write_file(file_, as_text({.machine = machine_, .algorithms = table}));
}

}  // namespace paceline::engine
