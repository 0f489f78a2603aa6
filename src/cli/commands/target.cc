#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/target/target_question.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/screen/screen.h"

namespace paceline::cli {
namespace {

using analysis::Predicted;
using analysis::StepsToTarget;
using analysis::TargetAnswer;
using analysis::TargetChoice;
using analysis::TargetPoint;

std::string name_of_target(const StepsToTarget& target) {
  return fmt::format("{} {:g}", target.quantity, target.value);
}

/// The curve to --accuracy.
const StepsToTarget& chosen_curve(const std::vector<StepsToTarget>& curves, double accuracy) {
  const StepsToTarget* chosen = nullptr;
  for (const auto& curve : curves) {
    if (curve.quantity != "accuracy" || std::abs(curve.value - accuracy) > 1e-9) continue;
    if (chosen != nullptr)
      base::fail(
          ErrorKind::data,
          "the records have two curves to accuracy {:g}: {} on {} ({}) and {} on {} ({}); give the records of one",
          accuracy, chosen->model, chosen->data, chosen->differs, curve.model, curve.data, curve.differs);
    chosen = &curve;
  }
  if (chosen == nullptr)
    base::fail(
        ErrorKind::data,
        "no training of these records was to accuracy {:g}{}; converge --compare batches --target accuracy={:g} "
        "measures how many steps it takes at each batch",
        accuracy, curves.empty() ? "" : ", but to " + base::joined(curves, ", ", name_of_target), accuracy);
  if (!chosen->fit)
    base::fail(ErrorKind::data, "the steps to accuracy {:g} follow no curve: {}", accuracy, chosen->no_fit);
  return *chosen;
}

/// Whether a record that has `text` for this option was made without it. Some records have a number that the
/// command line refuses, where the option is off.
bool is_usual(const Option& option, const std::string& text, const Settings& usual) {
  auto given = usual;
  try {
    option.set(given, text);
  } catch (const base::Error&) {
    return true;
  }
  return option.get(given) == option.get(usual);
}

/// A command that trains it: sizes and rate of the answer, and what else the trainings of the curve had that
/// is not usual.
std::string training_line(const StepsToTarget& curve, const TargetPoint& point) {
  const auto& record = *curve.records.front();
  const auto usual = defaults(kTrain);
  const double epochs = std::ceil(point.steps.high * point.batch.value /
                                  static_cast<double>(std::max<std::int64_t>(1, record.data.train_samples)));
  auto line = fmt::format(
      "paceline train --model {} --data {} --workers {} --local-batch {} --lr {:.3g} --target {}={:g}",
      base::shell_word(record.model.name), base::shell_word(record.data.spec), point.workers,
      point.local_batch, analysis::rate_at(curve, point.batch.value), curve.quantity, curve.value);
  // Schedules that follow the length have that of the curve's trainings, or the training would be another.
  const auto setting = [&](const char* key) {
    const auto found = record.settings.find(key);
    return found == record.settings.end() ? std::string() : found->second;
  };
  const bool follows_length = !setting("schedule").empty() && setting("schedule") != "constant";
  if (follows_length && !setting("epochs").empty())
    line += " --epochs " + setting("epochs");
  else if (follows_length && !setting("steps").empty())
    line += " --steps " + setting("steps");
  else if (std::isfinite(epochs))
    line += fmt::format(" --epochs {:g}", epochs);
  // Looked at less often, the target would be seen later.
  if (const auto every = setting("evaluate-steps"); !every.empty()) line += " --evaluate-steps " + every;
  for (const auto& [key, text] : record.settings) {
    const auto role = measure::role_of(key);
    const auto* option = find_option(key, kTrain);
    const bool is_of_rule = role == measure::SettingRole::fixed || role == measure::SettingRole::remedy ||
                            role == measure::SettingRole::rule;
    if (!is_of_rule || option == nullptr || key == "model" || key == "data" || key == "lr" || text.empty() ||
        is_usual(*option, text, usual))
      continue;
    const bool cuts = key == "shard" || key == "micro-batch";
    if (cuts && point.local_batch % base::whole_number(text, 1) != 0) continue;  // not this batch
    line += option->value.empty() ? fmt::format(" --{}{}", text == "true" ? "" : "no-", key)
                                  : fmt::format(" --{} {}", key, base::shell_word(text));
  }
  return line;
}

/// The unit for a time, and its seconds.
std::pair<const char*, double> unit_of(double seconds) {
  return seconds < 120      ? std::pair("s", 1.0)
         : seconds < 7200   ? std::pair("min", 60.0)
         : seconds < 172800 ? std::pair("h", 3600.0)
                            : std::pair("days", 86400.0);
}

/// "25.3 [20.1, 31.0] min"
std::string duration_text(const Predicted& seconds) {
  const auto [unit, length] = unit_of(seconds.value);
  return fmt::format("{:.3g} [{:.3g}, {:.3g}] {}", seconds.value / length, seconds.low / length,
                     seconds.high / length, unit);
}

struct Money {
  std::string unit;  ///< "USD", "worker-hours"
  [[nodiscard]] std::string text(const Predicted& cost) const {
    return fmt::format("{:.3g} [{:.3g}, {:.3g}] {}", cost.value, cost.low, cost.high, unit);
  }
};

std::string point_text(const TargetPoint& point, const Money& money) {
  return fmt::format("{:<11} global batch {:g} [{:g}, {:g}]{}: {:.0f} steps, {}, {}{}",
                     base::counted(point.workers, "worker"), point.batch.value, point.batch.low,
                     point.batch.high, point.is_at_end ? ", the end of what is known" : "", point.steps.value,
                     duration_text(point.time_s), money.text(point.cost), point.is_on_front ? "  *" : "");
}

void say_choice(const char* question, const std::optional<TargetChoice>& choice, const TargetAnswer& found,
                const Money& money, Screen& screen) {
  if (!choice) {
    screen.say("{:<11} no number of workers", question);
    return;
  }
  const auto& point = *found.at(choice->workers);
  screen.say("{:<11} {} [{}, {}]: {}, {}{}", question, base::counted(choice->workers, "worker"), choice->low,
             choice->high, duration_text(point.time_s), money.text(point.cost),
             choice->is_sure ? "" : "; it may miss that");
}

void say_answer(const TargetAnswer& found, const analysis::TargetQuestion& asked, const Money& money,
                Screen& screen) {
  for (const auto& point : found.points) screen.say(point_text(point, money));
  screen.say(
      "*: no other number of workers is both faster and cheaper. Intervals: of steps (95 %) and of their times (90 %) together.");
  say_choice("fastest", found.fastest, found, money, screen);
  say_choice("cheapest", found.cheapest, found, money, screen);
  if (asked.deadline_s) {
    const auto [unit, length] = unit_of(*asked.deadline_s);
    const auto limit = fmt::format("within {:.3g} {}", *asked.deadline_s / length, unit);
    say_choice(limit.c_str(), found.in_time, found, money, screen);
  }
  if (asked.budget)
    say_choice(fmt::format("for {:g}", *asked.budget).c_str(), found.for_budget, found, money, screen);
}

}  // namespace

int target_command(const Settings& settings) {
  Screen screen(false);
  const auto& options = settings.target;
  if (settings.accuracy <= 0)
    base::fail(
        ErrorKind::usage,
        "target needs the accuracy to be reached: paceline target RECORDS --accuracy 0.94 --workers 1:64");
  const auto read = read_records(settings.report.records);
  const auto cells = analysis::make_cells(read.records);
  const auto curves = analysis::steps_to_target(cells);
  const auto& curve = chosen_curve(curves, settings.accuracy);
  const auto model = analysis::step_model(cells);
  if (model.subject.model != curve.model || model.subject.data != curve.data)
    base::fail(
        ErrorKind::data,
        "the steps to accuracy {:g} are of {} on {}, but the timed steps of {} on {}; give the records of one",
        settings.accuracy, curve.model, curve.data, model.subject.model, model.subject.data);
  std::vector<std::string> remarks;
  const auto request = forecast_request(settings.predict, model, read.records, remarks);
  const auto& cluster = request.cluster;
  auto [asked, lacks_link] = analysis::target_question(curve, model, request, settings.predict.global_batch);
  Money money{.unit = "worker-hours"};
  if (options.price > 0) {
    asked.price_an_hour = [&](std::int64_t workers) { return options.price * static_cast<double>(workers); };
    money.unit = "at this price";
  } else if (cluster && cluster->cost) {
    asked.price_an_hour = [&cluster = *cluster](std::int64_t workers) {
      const auto width = cluster.workers_per_node;
      return cluster.cost->node_hour * static_cast<double>((workers + width - 1) / width);
    };
    money.unit = cluster->cost->currency;
  }
  if (options.deadline_s > 0) asked.deadline_s = options.deadline_s;
  if (options.budget > 0) asked.budget = options.budget;
  const auto found = analysis::answer(asked);
  screen.say("target      {} on {} to {}: {:.4g} (1 + {:.4g} / B) steps, of batches {} to {} (rms {:.1f} %)",
             curve.model, curve.data, name_of_target(curve), asked.steps.s_min, asked.steps.critical_batch,
             curve.fit->from_batch, curve.fit->to_batch, 100 * curve.fit->rms);
  say_answer(found, asked, money, screen);
  const auto& choice = found.in_time ? found.in_time : found.for_budget ? found.for_budget : found.fastest;
  if (choice) screen.say("train       " + training_line(curve, *found.at(choice->workers)));
  if (choice && ((asked.deadline_s && !found.in_time) || (asked.budget && !found.for_budget)))
    screen.say("Nothing keeps the limit; that command trains the one that comes next to it.");
  if (lacks_link > 0)
    screen.say("From {} on the network was not measured: give --cluster, or --link.",
               base::counted(lacks_link, "worker"));
  for (const auto& remark : remarks) screen.say(remark);
  const bool is_answered =
      !found.points.empty() && (!asked.deadline_s || found.in_time) && (!asked.budget || found.for_budget);
  return is_answered ? 0 : kDoesNotHold;
}

}  // namespace paceline::cli
