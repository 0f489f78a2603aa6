#include "engine/cpu/conv/algorithms.h"

#include <algorithm>

#include "engine/cpu/conv/bf16/algorithms.h"
#include "engine/cpu/conv/bf16/support.h"

namespace paceline::engine::cpu {

// Each is defined in the file with its name.
ConvAlgorithm winograd_algorithm();
ConvAlgorithm gemm_per_tap_algorithm();
ConvAlgorithm dgrad_as_forward_algorithm();
ConvAlgorithm grouped_algorithm();
ConvAlgorithm onednn_algorithm();

namespace {

/// A bf16 algorithm on one unit. Only bf16 runs ask for the unit, because asking runs its self-check.
ConvAlgorithm on_unit(const Bf16Algorithm& algorithm, const tiles::TileKernels& kernels,
                      std::optional<tiles::Unit> unit) {
  return {.name = std::string(kernels.name) + "-" + algorithm.name,
          .family = std::string(kernels.name),
          .refusal = [&algorithm, &kernels, unit](const ConvProblem& problem) -> std::optional<std::string> {
            const ConvShape& s = problem.shape;
            if (auto refused = tiles::refusal_to_multiply(unit, s)) return refused;
            return algorithm.refusal(s, problem.direction, kernels);
          },
          .prefers =
              [&algorithm, unit](const ConvProblem& problem) {
                return unit == tiles::Unit::amx && algorithm.prefers(problem.shape, problem.direction);
              },
          .preference =
              [&algorithm, unit](const ConvProblem&) {
                return std::string(unit == tiles::Unit::amx ? algorithm.preference
                                                            : "is chosen only by measuring");
              },
          .chunk = [&algorithm](const ConvShape& batch,
                                Direction direction) { return algorithm.chunk(batch, direction); },
          .make_reader =
              [&algorithm, &kernels](const ConvShape& chunk, Direction direction, const WeightReader*) {
                return algorithm.make_reader(chunk, direction, kernels);
              },
          .make_wgrad = [&algorithm, &kernels](
                            const ConvShape& chunk,
                            const WgradKernel*) { return algorithm.make_wgrad(chunk, kernels); }};
}

/// Most of the project's own algorithms multiply each input channel with each output channel, in square
/// windows.
ConvAlgorithm for_square_windows(ConvAlgorithm row) {
  row.refusal = [refusal = std::move(row.refusal)](const ConvProblem& problem) -> std::optional<std::string> {
    if (problem.shape.groups > 1) return "computes one group";
    if (problem.shape.uneven) return "has square kernels without dilation";
    return refusal(problem);
  };
  return row;
}

std::vector<ConvAlgorithm> make_table() {
  std::vector<ConvAlgorithm> table;
  for (const tiles::Unit unit : tiles::kUnits)
    std::ranges::move(rows_of(tiles::kernels_of(unit), unit), std::back_inserter(table));
  table.push_back(winograd_algorithm());
  table.push_back(gemm_per_tap_algorithm());
  table.push_back(dgrad_as_forward_algorithm());
  for (ConvAlgorithm& row : table) row = for_square_windows(std::move(row));
  table.push_back(grouped_algorithm());
  table.push_back(onednn_algorithm());
  return table;
}

}  // namespace

std::vector<ConvAlgorithm> rows_of(const tiles::TileKernels& kernels, std::optional<tiles::Unit> unit) {
  std::vector<ConvAlgorithm> rows;
  for (const Bf16Algorithm* algorithm : bf16_algorithms()) rows.push_back(on_unit(*algorithm, kernels, unit));
  return rows;
}

std::span<const ConvAlgorithm> conv_algorithms() {
  static const std::vector<ConvAlgorithm> table = make_table();
  return table;
}

const ConvAlgorithm* find_algorithm(std::string_view name) {
  const auto table = conv_algorithms();
  const auto found = std::ranges::find(table, name, &ConvAlgorithm::name);
  return found == table.end() ? nullptr : &*found;
}

const ConvAlgorithm* first_that_can(std::span<const ConvAlgorithm* const> algorithms,
                                    const ConvProblem& problem) {
  for (const ConvAlgorithm* algorithm : algorithms)
    if (!algorithm->refusal(problem)) return algorithm;
  return nullptr;
}

const ConvAlgorithm& usual_algorithm(const ConvProblem& problem) {
  const auto table = conv_algorithms();
  for (const ConvAlgorithm& row : table)
    if (!row.refusal(problem) && row.prefers(problem)) return row;
  return table.back();  // oneDNN reports what it cannot do
}

std::string list_others(const ConvAlgorithm& chosen,
                        const std::function<std::string(const ConvAlgorithm&)>& about) {
  struct Said {
    const ConvAlgorithm* row;
    std::string text;
  };
  std::vector<Said> said;
  for (const ConvAlgorithm& row : conv_algorithms())
    if (&row != &chosen) said.push_back({&row, about(row)});
  std::string list;
  for (auto first = said.begin(); first != said.end();) {
    const std::string& family = first->row->family;
    const auto end =
        std::find_if(first, said.end(), [&](const Said& other) { return other.row->family != family; });
    const bool is_alike = !family.empty() && std::all_of(first, end, [&](const Said& other) {
      return other.text == first->text;
    });
    const auto last = family.empty() || is_alike ? first + 1 : end;
    for (auto at = first; at != last; ++at)
      list += (list.empty() ? "" : "; ") + (is_alike ? family : at->row->name) + " " + at->text;
    first = is_alike ? end : last;
  }
  return list;
}

std::string why_not_others(const ConvAlgorithm& chosen, const ConvProblem& problem, bool measured) {
  return list_others(chosen, [&](const ConvAlgorithm& other) {
    if (const auto refused = other.refusal(problem)) return *refused;
    return measured ? std::string("was not clearly faster") : other.preference(problem);
  });
}

}  // namespace paceline::engine::cpu
