#include "serve/metrics.h"

#include <fmt/format.h>

#include <array>
#include <map>

namespace paceline::serve {
namespace {

/// Escapes backslash, quote and line end for the value of a label.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '\\' || letter == '"') out += '\\';
    if (letter == '\n')
      out += "\\n";
    else
      out += letter;
  }
  return out;
}

struct Metric {
  const char* name;
  const char* help;
  std::optional<double> (*value)(const measure::RunStatus&);
};

std::optional<double> of_count(std::int64_t count) {
  return count > 0 ? std::optional(static_cast<double>(count)) : std::nullopt;
}

constexpr std::array kMetrics{
    Metric{"paceline_images_per_second",
           "Images per second, mean since the previous event; of a study, those of its last cell.",
           [](const measure::RunStatus& s) { return s.images_per_s; }},
    Metric{"paceline_step_seconds",
           "Seconds per step, mean since the previous event; of a study, those of "
           "its last cell.",
           [](const measure::RunStatus& s) { return s.step_s; }},
    Metric{"paceline_loss", "Mean training loss of the epoch so far.",
           [](const measure::RunStatus& s) { return s.loss; }},
    Metric{"paceline_learning_rate", "Learning rate of the last step.",
           [](const measure::RunStatus& s) { return s.learning_rate; }},
    Metric{"paceline_epoch", "Epoch, from 1.", [](const measure::RunStatus& s) { return of_count(s.epoch); }},
    Metric{"paceline_step", "Updates done.",
           [](const measure::RunStatus& s) { return of_count(s.updates_done); }},
    Metric{"paceline_steps", "Updates of the whole run.",
           [](const measure::RunStatus& s) { return of_count(s.updates); }},
    Metric{"paceline_test_accuracy", "Accuracy on the test set, 0 to 1.",
           [](const measure::RunStatus& s) { return s.test_accuracy; }},
    Metric{"paceline_validation_accuracy", "Accuracy on the validation part, 0 to 1.",
           [](const measure::RunStatus& s) { return s.validation_accuracy; }},
    Metric{"paceline_cells_done", "Cells of a study that are done.",
           [](const measure::RunStatus& s) {
             return s.cells > 0 ? std::optional(static_cast<double>(s.cells_done)) : std::nullopt;
           }},
    Metric{"paceline_cells", "Cells of a study.",
           [](const measure::RunStatus& s) { return of_count(s.cells); }},
    Metric{"paceline_last_event_timestamp_seconds",
           "When the last event was written, in seconds since "
           "1970.",
           [](const measure::RunStatus& s) { return std::optional(s.last_at); }},
};

}  // namespace

std::string metrics_text(std::span<const Run> runs) {
  std::map<RunState, int> states{
      {RunState::running, 0}, {RunState::complete, 0}, {RunState::interrupted, 0}, {RunState::failed, 0}};
  for (const auto& run : runs) ++states[run.state];
  std::string text =
      "# HELP paceline_runs Runs below the served directory, by state.\n# TYPE paceline_runs gauge\n";
  for (const auto& [state, count] : states)
    text += fmt::format("paceline_runs{{state=\"{}\"}} {}\n", name(state), count);
  for (const auto& metric : kMetrics) {
    std::string samples;
    for (const auto& run : runs) {
      if (run.state != RunState::running) continue;
      if (const auto value = metric.value(run.status))
        samples += fmt::format("{}{{run=\"{}\",kind=\"{}\",model=\"{}\"}} {}\n", metric.name, escaped(run.id),
                               escaped(run.status.kind), escaped(run.status.model), *value);
    }
    if (!samples.empty())
      text += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{2}", metric.name, metric.help, samples);
  }
  return text;
}

}  // namespace paceline::serve
