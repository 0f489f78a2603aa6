#include "analysis/predict/closed_form.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "analysis/predict/forecast.h"
#include "analysis/simulated_steps.h"
#include "analysis/steps/step_lines.h"

namespace paceline::analysis {
namespace {

using Json = nlohmann::ordered_json;

/// How long a step waits after the backward pass of a worker that takes `factor` times the typical own work.
double exposed_of(const ClosedForm& form, const ClosedForm::Own& own, const ClosedForm::Workers& workers,
                  double factor, double bandwidth) {
  const double backward = form.backward_part * (own.compute_s + (factor - 1) * own.work_s);
  std::vector<ReplayedBucket> buckets(workers.latency_s.size());
  for (std::size_t i = 0; i < buckets.size(); ++i)
    buckets[i] = {.ready_s = backward * form.ready[i],
                  .transfer_s = workers.latency_s[i] + workers.moving_s[i] / bandwidth};
  return exposed_seconds(buckets, backward);
}

/// Seconds of a step, as the page computes them; `batch` and `workers` are indices. `bandwidth`: a factor on
/// the measured one.
double step_seconds(const ClosedForm& form, std::size_t batch, std::size_t workers, double bandwidth) {
  const auto& of_batch = form.batches[batch];
  const auto& of_workers = form.workers[workers];
  const auto& own = of_batch.own[workers];
  double seconds = own.work_s;
  for (const double factor : of_workers.largest)
    seconds += ((factor - 1) * own.work_s + exposed_of(form, own, of_workers, factor, bandwidth)) /
               static_cast<double>(of_workers.largest.size());
  const double rest = seconds - own.data_wait_s, late = std::max(0.0, of_batch.loader_s - rest);
  return rest + own.queue_s + late + (of_workers.workers > 1 ? of_batch.missed_s : 0);
}

constexpr double kBatches[]{32, 64}, kBandwidths[]{0.25, 1, 4};

struct CaseOfForm {
  const char* name;
  SimulatedRun run;
  double latency_s = 0, bytes_per_s = 0;
};

std::vector<CaseOfForm> cases_of_form() {
  return {{"latency", {}, 2e-3, 1e12},
          {"bandwidth", {}, 1e-6, 4e7},
          {"straggler", {.straggler = 0.08}, 1e-5, 1e9},
          {"jitter", {.jitter = 0.02, .steps = 400}, 1e-4, 2e8}};
}

struct MadeForm {
  StepModel model;
  ForecastRequest request;
};

MadeForm made_of(const CaseOfForm& one) {
  std::vector<measure::Record> records;
  for (const int workers : {1, 2}) {
    auto run = one.run;
    run.workers = workers;
    const double n = workers;
    run.link = {.alpha_s = 2 * (n - 1) * one.latency_s,
                .seconds_per_byte = 2 * (n - 1) / n / one.bytes_per_s};
    auto some = simulate(run, 3);
    records.insert(records.end(), some.begin(), some.end());
  }
  const auto cells = make_cells(records);
  MadeForm made{.model = step_model(cells), .request = {}};
  made.request.workers = {1, 2, 3, 8, 64};
  made.request.emulated =
      AddedLink{.latency_s = Range::of(one.latency_s), .bytes_per_s = Range::of(one.bytes_per_s)};
  return made;
}

std::filesystem::path path_of_cases() {
  return std::filesystem::path(PACELINE_SOURCE_DIR) / "tests/analysis/predict/closed_form_cases.json";
}

/// As a report has it (report/json.cc).
Json json_of(const ClosedForm& form) {
  Json json{{"backward_part", form.backward_part}, {"ready", form.ready}};
  for (const auto& one : form.workers)
    json["workers"].push_back({{"workers", one.workers},
                               {"largest", one.largest},
                               {"latency", one.latency_s},
                               {"moving", one.moving_s}});
  for (const auto& one : form.batches) {
    Json batch{{"batch", one.batch}, {"missed", one.missed_s}, {"loader", one.loader_s}};
    for (const auto& own : one.own) {
      batch["compute"].push_back(own.compute_s);
      batch["work"].push_back(own.work_s);
      batch["data_wait"].push_back(own.data_wait_s);
      batch["queue"].push_back(own.queue_s);
    }
    json["batches"].push_back(std::move(batch));
  }
  return json;
}

ClosedForm form_of(const Json& json) {
  ClosedForm form{.backward_part = json["backward_part"], .ready = json["ready"]};
  for (const auto& one : json["workers"])
    form.workers.push_back({one["workers"], one["largest"], one["latency"], one["moving"]});
  for (const auto& one : json["batches"]) {
    auto& batch = form.batches.emplace_back();
    batch = {.batch = one["batch"], .missed_s = one["missed"], .loader_s = one["loader"]};
    for (std::size_t i = 0; i < form.workers.size(); ++i)
      batch.own.push_back({one["compute"][i], one["work"][i], one["data_wait"][i], one["queue"][i]});
  }
  return form;
}

TEST(ClosedForm, IsTheStepOfTheForecast) {
  auto written = Json::array();
  for (const auto& one : cases_of_form()) {
    const auto made = made_of(one);
    auto request = made.request;
    const auto form = closed_form_of(made.model, request, kBatches);
    Json expected = Json::array();
    for (std::size_t b = 0; b < std::size(kBatches); ++b)
      for (const double bandwidth : kBandwidths) {
        request.step.batch = kBatches[b];
        request.what_if.bandwidth = bandwidth;
        const auto forecasted = forecast(made.model, request);
        ASSERT_EQ(forecasted.points.size(), form.workers.size());
        Json seconds = Json::array();
        for (std::size_t n = 0; n < form.workers.size(); ++n) {
          const double truth = forecasted.points[n].step.seconds;
          EXPECT_NEAR(step_seconds(form, b, n, bandwidth), truth, 1e-9 * truth)
              << one.name << ", batch " << kBatches[b] << ", bandwidth " << bandwidth << ", "
              << form.workers[n].workers << " workers";
          seconds.push_back(truth);
        }
        expected.push_back({{"batch", b}, {"bandwidth", bandwidth}, {"seconds", std::move(seconds)}});
      }
    written.push_back({{"name", one.name}, {"form", json_of(form)}, {"steps", std::move(expected)}});
  }
  if (std::getenv("PACELINE_UPDATE_GOLDEN") == nullptr) return;
  std::ofstream(path_of_cases()) << written.dump(1) << '\n';
  ADD_FAILURE() << "wrote " << path_of_cases() << "; read it, then run again without PACELINE_UPDATE_GOLDEN";
}

TEST(ClosedForm, HoldsForTheCasesOfThePage) {
  std::ifstream file(path_of_cases());
  ASSERT_TRUE(file) << path_of_cases() << " is missing; run these tests once with PACELINE_UPDATE_GOLDEN=1";
  const auto cases = Json::parse(file);
  ASSERT_EQ(cases.size(), cases_of_form().size());
  for (const auto& one : cases) {
    const auto form = form_of(one["form"]);
    for (const auto& step : one["steps"])
      for (std::size_t n = 0; n < form.workers.size(); ++n) {
        const double expected = step["seconds"][n];
        EXPECT_NEAR(step_seconds(form, step["batch"], n, step["bandwidth"]), expected, 1e-9 * expected)
            << one["name"];
      }
  }
}

TEST(ClosedForm, MoreBandwidthNeverTakesLonger) {
  const auto made = made_of(cases_of_form()[1]);
  const auto form = closed_form_of(made.model, made.request, kBatches);
  for (std::size_t n = 0; n < form.workers.size(); ++n) {
    EXPECT_LE(step_seconds(form, 0, n, 8), step_seconds(form, 0, n, 1));
    if (form.workers[n].workers > 1) {
      EXPECT_LT(step_seconds(form, 0, n, 8), 0.9 * step_seconds(form, 0, n, 0.5));
    }
  }
}

}  // namespace
}  // namespace paceline::analysis
