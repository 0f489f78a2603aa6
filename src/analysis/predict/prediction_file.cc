/// The file of a prediction, `paceline-prediction-1`: what the page shows, what a score reads, and what the
/// closed form can be computed from again.

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/predict/score.h"
#include "base/error.h"

namespace paceline::analysis {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Predicted& figure) {
  return {{"median", figure.value}, {"low", figure.low}, {"high", figure.high}};
}

Json json_of(const Range& range) { return Json::array({range.low, range.high}); }

Json json_of(const StepLines& lines) {
  constexpr std::array<const char*, kLines> kNames{"compute", "imbalance", "jitter",    "other waiting",
                                                   "latency", "transfer",  "data wait", "copy",
                                                   "update",  "other"};
  Json json = Json::object();
  for (std::size_t i = 0; i < kLines; ++i) json[kNames[i]] = lines.seconds[i];
  return json;
}

Json json_of(const Link& link) {
  return {{"bytes_per_s", json_of(link.bytes_per_s)},
          {"latency_s", json_of(link.latency_s)},
          {"base_s", json_of(link.base_s)},
          {"message_s", json_of(link.message_s)},
          {"total_bytes_per_s", json_of(link.total_bytes_per_s)},
          {"in_switch", link.in_switch},
          {"is_measured", link.measured != nullptr}};
}

Json json_of(const Cluster& cluster) {
  Json json{{"name", cluster.name},
            {"source", cluster.source},
            {"nodes", cluster.nodes},
            {"workers_per_node", cluster.workers_per_node},
            {"algorithm", name(cluster.algorithm)},
            {"worker_speed", json_of(cluster.worker_speed)},
            {"worker_spread", json_of(cluster.worker_spread)},
            {"adds_bytes_per_s", json_of(cluster.adds_bytes_per_s)},
            {"node_link", json_of(cluster.node_link)},
            {"network", json_of(static_cast<const Link&>(cluster.network))}};
  json["network"]["nics_per_node"] = cluster.network.nics_per_node;
  json["network"]["oversubscription"] = json_of(cluster.network.oversubscription);
  json["network"]["nodes_per_switch"] = cluster.network.nodes_per_switch;
  if (cluster.emulated)
    json["emulated"] = {{"latency_s", json_of(cluster.emulated->latency_s)},
                        {"bytes_per_s", json_of(cluster.emulated->bytes_per_s)},
                        {"between_nodes", cluster.emulated->between_nodes}};
  if (cluster.storage)
    json["storage"] = {{"shared_bytes_per_s", json_of(cluster.storage->shared_bytes_per_s)},
                       {"node_bytes_per_s", json_of(cluster.storage->node_bytes_per_s)},
                       {"opens_per_s", json_of(cluster.storage->opens_per_s)}};
  if (cluster.cost)
    json["cost"] = {{"node_hour", cluster.cost->node_hour}, {"currency", cluster.cost->currency}};
  return json;
}

Json json_of(const Subject& subject) {
  return {{"model", subject.model},      {"parameters", subject.parameters},
          {"data", subject.data},        {"precision", subject.precision},
          {"device", subject.device},    {"cpu", subject.cpu},
          {"host", subject.host},        {"emulated_compute", subject.emulated_compute},
          {"settings", subject.settings}};
}

Json marks_of(const ForecastPoint& point) {
  Json marks = Json::array();
  const auto mark = [&](bool is_so, const char* text) {
    if (is_so) marks.push_back(text);
  };
  mark(point.is_measured, "measured");
  mark(point.lacks_link, "at least: the network was not measured");
  mark(point.lacks_sharing, "sharing of the node was not measured");
  mark(point.is_beyond_samples, "waiting by an assumed tail");
  mark(point.is_beyond_batches, "beyond 1.5 times the measured batches");
  mark(point.is_beyond_data, "a step takes more images than there are");
  mark(!point.fits, "does not fit the memory");
  return marks;
}

Json json_of(const ForecastPoint& point) {
  Json json{{"workers", point.workers},
            {"nodes", point.nodes},
            {"local_batch", point.local_batch},
            {"step_s", json_of(point.step_s)},
            {"images_per_s", json_of(point.images_per_s)},
            {"efficiency", json_of(point.efficiency)},
            {"epoch_s", point.epoch_s.value > 0 ? json_of(point.epoch_s) : Json(nullptr)},
            {"ideal_s", point.step.ideal_s}};
  Json parts = Json::object();
  for (std::size_t i = 0; i < kLossParts; ++i) parts[name(static_cast<LossPart>(i))] = point.step.parts[i];
  json["parts_s"] = std::move(parts);
  json["reductions_s"] = point.step.reduce_s;
  json["algorithm"] = name(point.step.algorithm);
  json["step_at_least_s"] = point.wait_at_least_s;
  json["sigma"] = point.sigma;
  if (point.step.waits_for != DataSource::none) json["waits_for"] = name(point.step.waits_for);
  if (point.memory_bytes) json["memory_bytes"] = *point.memory_bytes;
  if (point.epoch_cost) json["epoch_cost"] = json_of(*point.epoch_cost);
  if (point.epoch_joules) json["epoch_joules"] = *point.epoch_joules;
  json["marks"] = marks_of(point);
  return json;
}

Json json_of(const Knee& knee) {
  return {{"efficiency", knee.efficiency},
          {"workers", knee.workers ? Json(*knee.workers) : Json(nullptr)},
          {"is_beyond", knee.is_beyond},
          {"low", knee.low},
          {"high", knee.high}};
}

/// What the closed form needs: a page computes steps again from this.
Json closed_form(const StepModel& model, std::span<const ForecastPoint> points) {
  Json json{{"fewest", model.fewest()},
            {"width", model.width},
            {"backward_part", model.backward_part},
            {"loader_s_a_sample", model.loader_s_a_sample},
            {"stored_bytes", model.stored_bytes},
            {"train_samples", model.train_samples}};
  json["steps"] = Json::array();
  for (const auto& step : model.steps)
    json["steps"].push_back({{"workers", step.workers},
                             {"width", step.width},
                             {"batch", step.batch},
                             {"is_without_exchange", step.is_without_exchange},
                             {"lines_s", json_of(step.middle)}});
  json["buckets"] = Json::array();
  for (const auto& bucket : model.buckets)
    json["buckets"].push_back({{"bytes", bucket.bytes},
                               {"ready", bucket.ready},
                               {"transfer_s", bucket.transfer_s ? Json(*bucket.transfer_s) : Json(nullptr)}});
  std::vector<std::int64_t> workers;
  for (const auto& point : points) workers.push_back(point.workers);
  json["largest"] = Json::array();
  const auto largest = largest_factors(model.own, workers, Tail::exponential);
  for (std::size_t i = 0; i < workers.size(); ++i)
    json["largest"].push_back({{"workers", workers[i]}, {"factors", largest[i].parts}});
  return json;
}

std::vector<TimedStep> timed_steps(const StepModel& model, const StepRequest& request) {
  std::map<int, const MeasuredStep*> by_workers;
  for (const auto& step : model.steps) {
    if (step.is_without_exchange) continue;
    const auto [at, is_new] = by_workers.try_emplace(step.workers, &step);
    if (!is_new && request.distance(step) < request.distance(*at->second)) at->second = &step;
  }
  std::vector<TimedStep> timed;
  for (const auto& [workers, step] : by_workers) {
    // Of another batch, the overhead over the fewest workers at that batch is what the rivals get.
    const double batch = request.local_batch(workers);
    const double factor =
        model.alone(batch).at(std::nullopt).total() / model.alone(step->batch).at(std::nullopt).total();
    timed.push_back({static_cast<double>(workers), factor * step->middle.total()});
  }
  return timed;
}

template <typename T>
T required(const nlohmann::json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end())
    base::fail(base::ErrorKind::data,
               "{}: the prediction has no key '{}'; it was edited or is of another version", where, key);
  try {
    return found->template get<T>();
  } catch (const nlohmann::json::exception&) {
    base::fail(base::ErrorKind::data,
               "{}: '{}' of the prediction has another type than expected; it was edited", where, key);
  }
}

Predicted predicted_of(const nlohmann::json& json, const std::string& where) {
  Predicted figure{required<double>(json, "median", where), required<double>(json, "low", where),
                   required<double>(json, "high", where)};
  if (!(figure.low > 0) || !(figure.low <= figure.value) || !(figure.value <= figure.high))
    base::fail(base::ErrorKind::data,
               "{}: a predicted time of {} s has the interval {} to {} s; it was edited", where, figure.value,
               figure.low, figure.high);
  return figure;
}

ScoreKind kind_named(const std::string& text, const std::string& where) {
  for (const auto kind : {ScoreKind::ghosts, ScoreKind::this_host, ScoreKind::another_host})
    if (text == name(kind)) return kind;
  base::fail(base::ErrorKind::data, "{}: a score has the unknown kind '{}'", where, text);
}

nlohmann::json parsed(const std::string& text, const std::string& where) {
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("schema"))
    base::fail(base::ErrorKind::data,
               "{}: is no prediction: it has no \"schema\"; predict --out FILE writes one", where);
  const auto schema = required<std::string>(json, "schema", where);
  if (schema != Prediction::kSchema)
    base::fail(base::ErrorKind::data, "{}: has schema '{}', a prediction has '{}'", where, schema,
               Prediction::kSchema);
  return json;
}

Json json_of(const ScoredStep& step) {
  return {{"workers", step.workers},
          {"local_batch", step.local_batch},
          {"cell", step.cell},
          {"kind", name(step.kind)},
          {"predicted_s", json_of(step.predicted)},
          {"measured_s", step.measured},
          {"measured_over_predicted", step.ratio()},
          {"is_inside", step.is_inside()},
          {"constant_overhead_s", step.constant_overhead},
          {"scalability_law_s", step.scalability_law}};
}

}  // namespace

std::string to_json(const Forecast& forecast, const StepModel& model, std::span<const PredictionInput> inputs,
                    const std::string& command, const std::string& version, const std::string& created) {
  const auto& request = forecast.request;
  Json json{
      {"schema", Prediction::kSchema}, {"created", created}, {"version", version}, {"command", command}};
  json["subject"] = json_of(forecast.subject);
  json["emulated"] = model.emulated;
  json["inputs"] = Json::array();
  for (const auto& input : inputs) json["inputs"].push_back({{"id", input.id}, {"sha256", input.sha256}});
  json["scaling"] = name(request.step.mode);
  json["batch"] = request.step.batch;
  json["what_if"] = {{"bandwidth", request.what_if.bandwidth},
                     {"latency", request.what_if.latency},
                     {"loader", request.what_if.loader},
                     {"compute", request.what_if.compute}};
  json["is_as_measured"] = !request.cluster && request.what_if == WhatIf{};
  json["cluster"] = json_of(forecast.cluster);
  json["interval"] = 0.9;
  json["widening"] = request.widening;
  std::vector<std::int64_t> workers;
  for (const auto& point : forecast.points) workers.push_back(point.workers);
  const auto naive = rivals(timed_steps(model, request.step), workers, request.step.mode);
  json["points"] = Json::array();
  for (std::size_t i = 0; i < forecast.points.size(); ++i) {
    auto point = json_of(forecast.points[i]);
    point["rivals_s"] = {{kConstantOverhead, naive.constant_overhead[i]},
                         {kScalabilityLaw, naive.scalability_law[i]}};
    json["points"].push_back(std::move(point));
  }
  json["measured"] = Json::array();
  for (const auto& one : forecast.measured)
    json["measured"].push_back({{"workers", one.workers},
                                {"local_batch", one.local_batch},
                                {"cell", one.name},
                                {"step_s", one.step_s.median},
                                {"low_s", one.step_s.low},
                                {"high_s", one.step_s.high}});
  json["knees"] = Json::array({json_of(forecast.knee), json_of(forecast.half)});
  json["fastest"] = forecast.fastest;
  json["limit"] = nullptr;
  if (forecast.limit)
    json["limit"] = {{"part", name(*forecast.limit)},
                     {"workers", forecast.limit_at},
                     {"points", forecast.limit_points},
                     {"source", name(forecast.limit_source)}};
  json["next"] = nullptr;
  if (forecast.next)
    json["next"] = {{"workers", forecast.next->workers},
                    {"correlation", forecast.next->correlation},
                    {"target", forecast.next->target}};
  json["unknown"] = forecast.unknown;
  json["not_used"] = forecast.not_used;
  json["closed_form"] = closed_form(model, forecast.points);
  json["scores"] = Json::array();
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Prediction prediction_from_json(const std::string& text, const std::string& where) {
  const auto json = parsed(text, where);
  Prediction prediction;
  const auto subject = required<nlohmann::json>(json, "subject", where);
  prediction.subject = {.model = required<std::string>(subject, "model", where),
                        .data = required<std::string>(subject, "data", where),
                        .precision = required<std::string>(subject, "precision", where),
                        .device = required<std::string>(subject, "device", where),
                        .parameters = required<std::int64_t>(subject, "parameters", where),
                        .cpu = required<std::string>(subject, "cpu", where),
                        .host = required<std::string>(subject, "host", where),
                        .emulated_compute = required<std::string>(subject, "emulated_compute", where),
                        .settings = required<std::map<std::string, std::string>>(subject, "settings", where)};
  for (const auto& input : required<std::vector<nlohmann::json>>(json, "inputs", where))
    prediction.inputs.push_back(
        {required<std::string>(input, "id", where), required<std::string>(input, "sha256", where)});
  prediction.widening = required<double>(json, "widening", where);
  prediction.is_as_measured = required<bool>(json, "is_as_measured", where);
  for (const auto& point : required<std::vector<nlohmann::json>>(json, "points", where)) {
    const auto rival = required<std::map<std::string, double>>(point, "rivals_s", where);
    const auto marks = required<std::vector<std::string>>(point, "marks", where);
    const auto of = [&](std::string_view key) {
      const auto found = rival.find(std::string(key));
      return found == rival.end() ? 0.0 : found->second;
    };
    prediction.points.push_back(
        {.workers = required<std::int64_t>(point, "workers", where),
         .local_batch = required<double>(point, "local_batch", where),
         .step_s = predicted_of(required<nlohmann::json>(point, "step_s", where), where),
         .constant_overhead = of(kConstantOverhead),
         .scalability_law = of(kScalabilityLaw),
         .is_bound =
             std::ranges::any_of(marks, [](const auto& one) { return one.starts_with("at least"); })});
  }
  for (const auto& one : required<std::vector<nlohmann::json>>(json, "scores", where))
    prediction.scores.push_back(
        {.workers = required<std::int64_t>(one, "workers", where),
         .local_batch = required<double>(one, "local_batch", where),
         .predicted = predicted_of(required<nlohmann::json>(one, "predicted_s", where), where),
         .measured = required<double>(one, "measured_s", where),
         .cell = required<std::string>(one, "cell", where),
         .kind = kind_named(required<std::string>(one, "kind", where), where),
         .constant_overhead = required<double>(one, "constant_overhead_s", where),
         .scalability_law = required<double>(one, "scalability_law_s", where)});
  return prediction;
}

std::string with_scores(const std::string& text, const std::string& where,
                        std::span<const ScoredStep> scores) {
  (void)parsed(text, where);
  auto json = Json::parse(text);
  auto added = Json::array(), all = Json::array();
  for (const auto& one : scores) added.push_back(json_of(one));
  const auto is_of_one_cell = [](const Json& one, const Json& other) {
    return std::ranges::all_of(std::array{"cell", "workers", "local_batch", "kind"},
                               [&](const char* key) { return one[key] == other[key]; });
  };
  for (const auto& earlier : json["scores"])
    if (std::ranges::none_of(added, [&](const Json& one) { return is_of_one_cell(one, earlier); }))
      all.push_back(earlier);
  all.insert(all.end(), added.begin(), added.end());
  json["scores"] = std::move(all);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace paceline::analysis
