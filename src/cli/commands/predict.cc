#include <fmt/format.h>

#include <algorithm>

#include "analysis/predict/score.h"
#include "analysis/predict/simulate_workers.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/screen/screen.h"
#include "data/image/listing.h"
#include "measure/environment.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;
using analysis::Forecast;
using analysis::ForecastPoint;
using analysis::Predicted;
using analysis::StepModel;

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", 1e6 * seconds);
  if (seconds < 1) return fmt::format("{:.3g} ms", 1e3 * seconds);
  return seconds < 600 ? fmt::format("{:.3g} s", seconds) : base::rough_time(seconds);
}

std::string interval_text(const Predicted& figure, double factor, int decimals) {
  return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", factor * figure.value, decimals, factor * figure.low,
                     decimals, factor * figure.high, decimals);
}

/// "12.3 [12.1, 12.5] ms": three digits.
std::string step_text(const Predicted& step) {
  const auto [factor, unit] = step.value < 1e-3 ? std::pair(1e6, "us")
                              : step.value < 1  ? std::pair(1e3, "ms")
                                                : std::pair(1.0, "s");
  const double shown = factor * step.value;
  return fmt::format("{} {}", interval_text(step, factor, shown < 10 ? 2 : shown < 100 ? 1 : 0), unit);
}

/// At most five of the points: both ends, the knee, and what lies between.
std::vector<const ForecastPoint*> shown_points(const Forecast& forecast) {
  const auto& points = forecast.points;
  constexpr std::size_t kShown = 5;
  std::vector<const ForecastPoint*> shown;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (points.size() <= kShown || i * (kShown - 1) % (points.size() - 1) < kShown - 1)
      shown.push_back(&points[i]);
  return shown;
}

std::string point_line(const ForecastPoint& point, const Forecast& forecast) {
  auto line = fmt::format("{:<11} {:<24} {:<32} {:<20}", base::counted(point.workers, "worker"),
                          step_text(point.step_s), interval_text(point.images_per_s, 1, 0) + " images/s",
                          "E " + interval_text(point.efficiency, 1, 2));
  if (forecast.cluster.cost && point.epoch_cost)
    line += fmt::format("  {:.3g} {} an epoch", point.epoch_cost->value, forecast.cluster.cost->currency);
  else if (point.epoch_s.value > 0)
    line += fmt::format("  {} an epoch", seconds_text(point.epoch_s.value));
  if (point.lacks_link) line += "  at most: no network";
  if (!point.fits) line += "  does not fit the memory";
  return line;
}

std::string knee_text(const analysis::Knee& knee) {
  if (!knee.workers) return fmt::format("below {:g} already at the fewest workers", knee.efficiency);
  if (knee.is_beyond)
    return fmt::format("{:g} or more up to {} at least [{:.0f}, ...]", knee.efficiency,
                       base::counted(*knee.workers, "worker"), knee.low);
  return fmt::format("{:g} or more up to {} [{:.0f}, {:.0f}]", knee.efficiency,
                     base::counted(*knee.workers, "worker"), knee.low, knee.high);
}

std::string limit_text(const Forecast& forecast) {
  if (!forecast.limit) return "nothing is lost";
  std::string part = analysis::name(*forecast.limit);
  if (forecast.limit_source != analysis::DataSource::none)
    part += fmt::format(" ({})", analysis::name(forecast.limit_source));
  return fmt::format("{}: {:.1f} points of efficiency at {}", part, 100 * forecast.limit_points,
                     base::counted(forecast.limit_at, "worker"));
}

/// What drawing every worker adds: how far steps differ from their mean.
void say_simulated(const std::vector<analysis::SimulatedPoint>& points, Screen& screen) {
  for (const auto& point : points)
    screen.say("{:<11} mean step {} with every worker drawn, 90 % of steps {} to {}; closed form {}",
               base::counted(point.workers, "worker"), seconds_text(point.mean_s), seconds_text(point.low_s),
               seconds_text(point.high_s), seconds_text(point.closed_s));
}

void say_forecast(const Forecast& forecast, const StepModel& model, Screen& screen) {
  const auto& request = forecast.request;
  const bool is_weak = request.step.mode == analysis::Mode::weak;
  screen.say("predicted   {}; {} scaling, {} batch {:g}; cluster {}", forecast.subject.text(),
             analysis::name(request.step.mode), is_weak ? "local" : "global", request.step.batch,
             forecast.cluster.name);
  if (!model.emulated.empty()) screen.say("EMULATED    {}", model.emulated);
  for (const auto* point : shown_points(forecast)) screen.say(point_line(*point, forecast));
  screen.say("efficiency  {}; most images/s at {}{}", knee_text(forecast.knee),
             base::counted(forecast.fastest, "worker"),
             forecast.points.back().lacks_link ? "; at most: no network" : "");
  screen.say("limit       {}", limit_text(forecast));
  if (forecast.next)
    screen.say(
        "next        measure {}: for its worker-seconds its step says most about that of {} (correlation {:.2f})",
        base::counted(forecast.next->workers, "worker"), forecast.next->target, forecast.next->correlation);
  for (const auto* sentences : {&forecast.unknown, &forecast.not_used})
    for (const auto& sentence : *sentences) screen.say(sentence);
}

struct ReadInputs {
  std::vector<measure::Record> records;
  StepModel model;
};

/// Records of one study, or one table.
ReadInputs read_model(const Settings& settings) {
  ReadInputs read;
  read.records = records_of_trainer(settings.report.records);
  if (read.records.empty()) {
    auto inputs = read_inputs(settings.report.records, false);
    read.records = std::move(inputs.records.records);
    if (!inputs.tables.empty()) {
      if (!read.records.empty() || inputs.tables.size() > 1)
        base::fail(ErrorKind::usage,
                   "a prediction is made from records, or from one table; give the files of one of them");
      read.model = step_model_of(inputs.tables.front());
      return read;
    }
  }
  read.model = analysis::step_model(analysis::make_cells(read.records));
  return read;
}

analysis::StepRequest step_request(const Settings::Predict& options, const StepModel& model) {
  const bool is_strong = options.is_strong || options.global_batch > 0;
  if (is_strong && options.local_batch > 0)
    base::fail(ErrorKind::usage,
               "--local-batch belongs to weak scaling; give --global-batch with --scaling strong");
  analysis::StepRequest request{.mode = is_strong ? analysis::Mode::strong : analysis::Mode::weak,
                                .batch = model.usual_batch() * (is_strong ? model.fewest() : 1)};
  if (options.what_if.batch) request.batch = *options.what_if.batch;
  if (options.local_batch > 0) request.batch = static_cast<double>(options.local_batch);
  if (options.global_batch > 0) request.batch = static_cast<double>(options.global_batch);
  return request;
}

/// Half of the interval, of what scores of this kind of run say it should be.
std::optional<analysis::Calibration> calibrated(const Settings::Predict& options, const StepModel& model,
                                                bool is_other_hardware) {
  std::vector<analysis::Prediction> predictions;
  for (const auto& path : options.calibrate_by)
    predictions.push_back(analysis::prediction_from_json(base::read_file(path), path.string()));
  const auto kind = model.is_ghost      ? analysis::ScoreKind::ghosts
                    : is_other_hardware ? analysis::ScoreKind::another_host
                                        : analysis::ScoreKind::this_host;
  return analysis::calibration(predictions, kind);
}

/// With --score nothing is predicted anew.
void refuse_what_scores_leave(const Settings& settings) {
  const auto usual = defaults(kPredict);
  std::string unused;
  for (const char* name : {"workers", "cluster", "link", "scaling", "local-batch", "global-batch",
                           "efficiency", "at-most", "fidelity"}) {
    const auto* option = find_option(name, kPredict);
    if (option->get(settings) != option->get(usual)) unused = name;
  }
  const auto& options = settings.predict;
  if (options.what_if.batch || options.what_if.what_if != analysis::WhatIf{}) unused = "what-if";
  if (!options.calibrate_by.empty()) unused = "calibrate-by";
  if (!unused.empty())
    base::fail(
        ErrorKind::usage,
        "--score compares records with the prediction as it was made, without --{}; leave it out, or make another prediction",
        unused);
}

int say_scores(const Settings& settings, Screen& screen) {
  refuse_what_scores_leave(settings);
  const auto& path = settings.predict.score;
  const auto text = base::read_file(path);
  const auto prediction = analysis::prediction_from_json(text, path.string());
  const auto read = read_records(settings.report.records);
  const auto cells = analysis::make_cells(read.records);
  const auto scores = analysis::score(prediction, cells);
  std::size_t inside = 0;
  for (const auto& one : scores.steps) {
    inside += one.is_inside() ? 1 : 0;
    screen.say(
        "{}: measured {}, predicted {} [{}, {}]: {:.3f} of it, {}; constant overhead {:.3f}, "
        "universal scalability law {:.3f} ({})",
        one.cell, seconds_text(one.measured), seconds_text(one.predicted.value),
        seconds_text(one.predicted.low), seconds_text(one.predicted.high), one.ratio(),
        one.is_inside() ? "inside" : "OUTSIDE", one.measured / one.constant_overhead,
        one.measured / one.scalability_law, analysis::name(one.kind));
  }
  for (const auto& sentence : scores.not_scored) screen.say(sentence);
  if (scores.steps.empty())
    base::fail(ErrorKind::data, "{}: no record answers the prediction{}", path.string(),
               scores.not_scored.empty() ? "" : ": " + scores.not_scored.front());
  screen.say("{} of {} inside the 90 % interval", inside, base::counted(scores.steps.size(), "cell"));
  if (!settings.predict.out.empty())
    base::write_file(settings.predict.out, analysis::with_scores(text, path.string(), scores.steps));
  return inside == scores.steps.size() ? 0 : kDoesNotHold;
}

}  // namespace

int predict_command(const Settings& settings) {
  Screen screen(false);
  const auto& options = settings.predict;
  for (const auto& path : settings.report.records)
    if (data::is_image_name(path.string()))
      base::fail(
          ErrorKind::usage,
          "predict says how long steps of more workers take; 'paceline classify CHECKPOINT {}' says what "
          "an image shows",
          base::shell_word(path.string()));
  if (!options.out.empty()) base::require_directory_of(options.out, "--out");
  if (!options.score.empty()) return say_scores(settings, screen);
  const auto read = read_model(settings);
  std::vector<std::string> remarks;
  auto request = forecast_request(options, read.model, read.records, remarks);
  const auto calibration = calibrated(options, read.model, request.is_other_hardware);
  request.step = step_request(options, read.model);
  request.efficiency = options.efficiency;
  if (options.at_most > 0) request.at_most = options.at_most;
  request.what_if = options.what_if.what_if;
  request.fidelity = options.fidelity;
  if (calibration) request.widening = calibration->widening;
  const auto forecast = analysis::forecast(read.model, request);
  say_forecast(forecast, read.model, screen);
  for (const auto& remark : remarks) screen.say(remark);
  if (options.fidelity == analysis::Fidelity::workers) {
    constexpr int kSteps = 200;
    say_simulated(analysis::simulated_points(read.model, forecast, kSteps), screen);
  }
  if (calibration)
    screen.say("the interval's width was set by {} scores: {:.2f} times the model's own", calibration->scores,
               calibration->widening);
  if (options.out.empty()) return 0;
  std::vector<analysis::PredictionInput> inputs;
  for (const auto& record : read.records) inputs.push_back({record.id, analysis::sha256_of_record(record)});
  std::vector<fs::path> files{options.link, options.cluster};
  if (read.records.empty())
    files.insert(files.begin(), settings.report.records.begin(), settings.report.records.end());
  for (const auto& file : files)
    if (base::is_file(file))  // not the name of a preset
      inputs.push_back({file.filename().string(), base::sha256_of(file)});
  base::write_file(options.out, analysis::to_json(forecast, read.model, inputs, settings.typed,
                                                  measure::version(), measure::utc_now()));
  screen.say("wrote       {}; once more was measured: paceline predict --score {} RECORDS",
             options.out.string(), base::shell_word(options.out.string()));
  return 0;
}

}  // namespace paceline::cli
