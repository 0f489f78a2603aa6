#include "cluster/prepare_together.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <sstream>
#include <vector>

#include "cluster/session.h"
#include "engine/make.h"

namespace paceline::cluster {
namespace {

/// Plans on GPUs may take a second each to compile, so the others wait longer than for a collective.
constexpr std::chrono::minutes kForPlans{20};

/// A longer deadline of all collectives, as long as it lives.
class LongerDeadline {
 public:
  LongerDeadline(comm::ProcessGroup& processes, std::chrono::seconds deadline)
      : processes_(processes), before_(processes.deadline()) {
    processes_.set_deadline(std::max(before_, deadline));
  }
  ~LongerDeadline() { processes_.set_deadline(before_); }
  LongerDeadline(const LongerDeadline&) = delete;
  LongerDeadline& operator=(const LongerDeadline&) = delete;

 private:
  comm::ProcessGroup& processes_;
  const std::chrono::seconds before_;
};

/// The `algorithms` of the first process, in all processes. Collective.
engine::KernelAlgorithms of_first(comm::ProcessGroup& processes, const engine::KernelAlgorithms& algorithms) {
  std::string text;
  for (const auto& [problem, algorithm] : algorithms) text += problem + '\t' + algorithm + '\n';
  std::uint64_t size = text.size();
  processes.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  text.resize(size);
  if (size > 0) processes.broadcast(std::as_writable_bytes(std::span(text)), 0);
  engine::KernelAlgorithms all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    all[line.substr(0, line.find('\t'))] = line.substr(line.find('\t') + 1);
  return all;
}

engine::KernelAlgorithms algorithms_of(const engine::PreparedKernels& prepared) {
  return prepared.algorithms == nullptr ? engine::KernelAlgorithms() : *prepared.algorithms;
}

/// The processes whose algorithms differ from the first one's. Collective, so that it also waits until all
/// processes have prepared.
std::vector<OtherKernels> find_other_kernels(Session& session, const engine::PreparedKernels& prepared) {
  auto& processes = session.processes();
  const auto mine = algorithms_of(prepared);
  const auto first = of_first(processes, mine);
  const auto differing = std::ranges::count_if(mine, [&](const auto& one) {
    const auto found = first.find(one.first);
    return found == first.end() || found->second != one.second;
  });
  using Report = std::array<std::int32_t, 2>;  // number of the process, problems
  const Report report{session.place().process, static_cast<std::int32_t>(differing)};
  std::vector<Report> reports(static_cast<std::size_t>(processes.processes()));
  processes.all_gather(std::as_bytes(std::span(&report, 1)), std::as_writable_bytes(std::span(reports)));
  std::vector<OtherKernels> others;
  for (const auto& [process, problems] : reports)
    if (problems > 0)
      others.push_back({process, session.members()[static_cast<std::size_t>(process)].host, problems});
  return others;
}

}  // namespace

engine::PreparedKernels prepare_together(const std::string& device, Session& session,
                                         const graph::Graph& graph, const engine::CompileOptions& how,
                                         const engine::KernelRequest& asked) {
  auto& processes = session.processes();
  processes.at(0, "the measuring of kernels");
  engine::KernelRequest request = asked;
  request.given = of_first(processes, asked.given);
  const bool is_gpu = device == "cuda" || device.starts_with("cuda:");
  const LongerDeadline longer(processes, is_gpu ? kForPlans : std::chrono::minutes(0));
  engine::PreparedKernels prepared;
  const bool is_measured = request.is_measured && request.given.empty();
  if (is_measured) {
    if (session.is_first()) prepared = engine::prepare(device, graph, how, request);
    request.given = of_first(processes, algorithms_of(prepared));
    request.is_measured = false;
  }
  if (!is_measured || !session.is_first()) prepared = engine::prepare(device, graph, how, request);
  const auto others = find_other_kernels(session, prepared);
  if (const auto note = note_of_other_kernels(others, algorithms_of(prepared).size()); !note.empty())
    prepared.note += (prepared.note.empty() ? "kernels: " : "; ") + note;
  return prepared;
}

std::string note_of_other_kernels(std::span<const OtherKernels> others, std::size_t problems) {
  if (others.empty()) return "";
  constexpr std::size_t kNamed = 4;
  std::string names;
  for (const auto& one : others.first(std::min(kNamed, others.size())))
    names += fmt::format("{}process {} on {} ({} of {} problems)", names.empty() ? "" : ", ", one.process,
                         one.host, one.problems, problems);
  if (others.size() > kNamed) names += fmt::format(" and {} more", others.size() - kNamed);
  return fmt::format(
      "not all processes use the algorithms of process 0, which this record names, because they choose others or "
      "cannot use these: {}; a repeated run has the same bits only on the same kinds of machines in the same order",
      names);
}

}  // namespace paceline::cluster
