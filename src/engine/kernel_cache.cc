#include "engine/kernel_cache.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <set>
#include <span>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace paceline::engine {
namespace {

/// Takes the algorithms of `request.given` that are available here, and the defaults for other problems.
/// `note` says how many those are.
void take_given(const KernelProblems& problems, const KernelRequest& request, KernelAlgorithms& algorithms,
                std::string& note) {
  int unknown = 0, refused = 0;
  std::string reason;
  for (auto& [problem, algorithm] : algorithms) {
    const auto given = request.given.find(problem);
    if (given == request.given.end()) {
      ++unknown;
      continue;
    }
    if (const auto why = problems.refusal(problem, given->second)) {
      const std::string sentence = fmt::format("{}: {} {}", problem, given->second, *why);
      if (request.insists)
        base::fail(base::ErrorKind::usage,
                   "--kernels-from: {}; run where this algorithm can be used, or leave the option out",
                   sentence);
      if (refused++ == 0) reason = sentence;
      continue;
    }
    algorithm = given->second;
  }
  if (unknown + refused == 0) return;
  note = fmt::format(
      "kernels: {} of {} problems (a convolution or dense layer in one direction) use other algorithms than "
      "in the earlier run, and are rounded differently:",
      unknown + refused, algorithms.size());
  if (unknown > 0)
    note += fmt::format(" {} did not occur there (another batch, precision, model or device)", unknown);
  if (refused > 0)
    note += fmt::format("{} {} cannot be computed here as they were there ({})", unknown > 0 ? "," : "",
                        refused, reason);
}

/// Takes the fastest algorithms on this machine, from the cache or by measuring now.
void take_measured(const KernelProblems& problems, const KernelMeasuring& measuring,
                   PreparedKernels& prepared, KernelAlgorithms& algorithms) {
  KernelCache cache = measuring.open_cache();
  std::vector<std::string> names;
  for (const auto& [problem, usual] : problems.defaults) names.push_back(problem);
  const auto outcome = cache.complete(names, measuring.measure, measuring.portion);
  if (!outcome.trouble.empty()) {
    prepared.note =
        fmt::format("kernels are chosen by shape, because measurements of this machine cannot be stored: {}",
                    outcome.trouble);
    return;
  }
  if (outcome.left == names.size()) return;
  prepared.chosen_by = "measured";
  int other = 0;
  for (auto& [problem, algorithm] : algorithms) {
    const auto found = cache.find(problem);
    if (!found || *found == algorithm || problems.refusal(problem, *found)) continue;
    algorithm = *found;
    ++other;
  }
  if (outcome.measured == 0 && other == 0) return;
  prepared.note = fmt::format(
      "kernels: {} ({} of {} problems, each a convolution or dense layer in one direction, are faster here "
      "by another algorithm than the usual one for their shape)",
      outcome.measured > 0
          ? fmt::format("measured in {:.1f} s, kept in {}", outcome.seconds, cache.file().string())
          : fmt::format("as measured before, {}", cache.file().string()),
      other, algorithms.size());
}

constexpr std::string_view kHeadOfTable = "paceline kernels, format 1\n";

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

/// A lock that a process holds while it measures, until it closes it. Others wait for it, then read the
/// results.
///
/// Errors   Error(data) after kPatience
base::Descriptor lock_of_machine(const std::filesystem::path& file) {
  // Measuring takes seconds; a process that holds the lock longer is stopped or not measuring.
  constexpr std::chrono::seconds kPatience{120};
  base::Descriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!lock.is_open())
    base::fail(base::ErrorKind::data, "{}: cannot be opened: {}", file.string(), std::strerror(errno));
  const auto end = base::Clock::now() + kPatience;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (base::Clock::now() >= end)
      base::fail(
          base::ErrorKind::data,
          "{}: another process has held this lock for {} s, as if it measured kernels; end it (fuser -v "
          "{} names it), or remove the file",
          file.string(), kPatience.count(), file.string());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return lock;
}

}  // namespace

PreparedKernels choose_kernels(const KernelProblems& problems, const KernelRequest& request,
                               const KernelMeasuring& measuring) {
  PreparedKernels prepared{.chosen_by = problems.chosen_by};
  KernelAlgorithms algorithms = problems.defaults;
  if (!request.given.empty()) {
    prepared.chosen_by = "given";
    take_given(problems, request, algorithms, prepared.note);
  } else if (request.is_measured) {
    take_measured(problems, measuring, prepared, algorithms);
  }
  prepared.algorithms = std::make_shared<const KernelAlgorithms>(std::move(algorithms));
  return prepared;
}

bool is_kernel_table(std::string_view text) { return text.starts_with(kHeadOfTable); }

std::optional<KernelTable> kernel_table_from(std::string_view text) {
  if (!is_kernel_table(text) || !text.ends_with('\n')) return std::nullopt;
  const std::vector<std::string> lines = base::lines_of(text.substr(kHeadOfTable.size()));
  if (lines.empty()) return std::nullopt;
  KernelTable table{.machine = lines.front(), .algorithms = {}};
  for (const std::string& line : std::span(lines).subspan(1)) {
    const auto space = line.find(' ');
    if (space == std::string::npos || space == 0) return std::nullopt;
    const std::string word = line.substr(0, space), rest = line.substr(space + 1);
    if (word == "end") {
      if (&line != &lines.back() || rest != std::to_string(table.algorithms.size())) return std::nullopt;
      return table;
    }
    table.algorithms[rest] = word;
  }
  return std::nullopt;  // incomplete
}

std::string as_text(const KernelTable& table) {
  std::string text(kHeadOfTable);
  text += table.machine + "\n";
  for (const auto& [problem, algorithm] : table.algorithms)
    text.append(algorithm).append(" ").append(problem).append("\n");
  return text + "end " + std::to_string(table.algorithms.size()) + "\n";
}

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
    base::end_of_links(file_);
    std::filesystem::create_directories(file_.parent_path());
    for (bool is_complete = false; !is_complete;) {
      const auto one_at_a_time =
          lock_of_machine(file_.parent_path() / (hardware_name(machine_) + ".txt.lock"));
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
