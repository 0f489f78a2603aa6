/// The file of a reference curve, in the form of MLPerf's reference convergence points, and what that form
/// calls the parts of a record.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "analysis/compare/setup.h"
#include "analysis/trainings/reference_curve.h"
#include "base/error.h"

namespace paceline::analysis {
namespace {

using measure::Record;
using OrderedJson = nlohmann::ordered_json;

// Keys of MLPerf's form, and ours beyond it.
constexpr const char* kBatchKey = "BS";
constexpr const char* kEpochsKey = "Epochs to converge";
constexpr const char* kAccuracyKey = "Accuracy";
constexpr const char* kAccuracyOfKey = "Accuracy of";
constexpr const char* kEveryKey = "Epochs between evaluations";
constexpr const char* kTrainKey = "Training samples";
constexpr const char* kTestKey = "Test samples";
constexpr const char* kSettingsKey = "Settings";

std::string given_setting(const Record& record, measure::Setting setting, const char* otherwise) {
  const auto text = setting_text(record, setting);
  return text.empty() ? otherwise : text;
}

/// Whether batch norm has the statistics of the global batch, which a worker then computes in one pass.
bool has_whole_batch(const Record& record) { return given_setting(record, "bn", "local") == "sync"; }

/// `otherwise` where the key is missing.
template <typename T>
T value_in(const nlohmann::json& object, const char* key, T otherwise, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) return otherwise;
  try {
    return found->template get<T>();
  } catch (const nlohmann::json::exception&) {
    base::fail(base::ErrorKind::data, "{}: '{}' has another type than a reference has there", where, key);
  }
}

OrderedJson json_of_point(const ReferencePoint& point, const ReferenceCurve& curve) {
  auto hyperparameters = OrderedJson::object();
  for (const auto& [key, value] : point.hyperparameters)
    hyperparameters[key] = std::visit([](const auto& one) { return OrderedJson(one); }, value);
  OrderedJson json{{"Benchmark", point.benchmark}, {"Creator", point.creator},
                   {"When", point.when},           {"Platform", point.platform},
                   {kBatchKey, point.batch},       {"Hyperparams", std::move(hyperparameters)},
                   {kEpochsKey, point.epochs}};
  if (curve.target) {
    json[kAccuracyKey] = curve.target->accuracy;
    json[kAccuracyOfKey] = curve.target->of_validation.value_or(false) ? "validation" : "test";
  }
  json[kEveryKey] = point.evaluated_every;
  json[kTrainKey] = point.train_samples;
  json[kTestKey] = point.test_samples;
  json[kSettingsKey] = point.settings;
  return json;
}

ReferencePoint point_of(const nlohmann::json& json, const std::string& where) {
  ReferencePoint point;
  point.batch = value_in<std::int64_t>(json, kBatchKey, 0, where);
  point.epochs = value_in<std::vector<double>>(json, kEpochsKey, {}, where);
  const auto is_wrong = [](double epochs) { return !(epochs > 0) || !std::isfinite(epochs); };
  if (point.batch <= 0 || point.epochs.empty() || std::ranges::any_of(point.epochs, is_wrong))
    base::fail(
        base::ErrorKind::data,
        "{}: has no batch '{}' or no numbers of epochs '{}' above 0; a file of 'paceline reference make' has both",
        where, kBatchKey, kEpochsKey);
  point.benchmark = value_in<std::string>(json, "Benchmark", "", where);
  point.creator = value_in<std::string>(json, "Creator", "", where);
  point.when = value_in<std::string>(json, "When", "", where);
  point.platform = value_in<std::string>(json, "Platform", "", where);
  point.evaluated_every = value_in<double>(json, kEveryKey, 0, where);
  point.train_samples = value_in<std::int64_t>(json, kTrainKey, 0, where);
  point.test_samples = value_in<std::int64_t>(json, kTestKey, 0, where);
  point.settings = value_in<measure::SettingTexts>(json, kSettingsKey, {}, where);
  return point;
}

std::optional<AccuracyTarget> target_of(const nlohmann::json& json, const std::string& where) {
  if (!json.contains(kAccuracyKey)) return std::nullopt;
  const auto of = value_in<std::string>(json, kAccuracyOfKey, "test", where);
  return AccuracyTarget{.accuracy = value_in<double>(json, kAccuracyKey, 0, where),
                        .of_validation = of == "validation"};
}

}  // namespace

double number_of_setting(const Record& record, measure::Setting setting) {
  const std::string text = given_setting(record, setting, "0");
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return end != nullptr && *end == '\0' ? number : 0;
}

std::int64_t passes_of_step(const Record& record) {
  if (has_whole_batch(record)) return 1;
  for (const auto cut : {measure::Setting("shard"), measure::Setting("micro-batch")})
    if (const double samples = number_of_setting(record, cut); samples >= 1)
      return std::max(std::int64_t{1}, record.local_batch / static_cast<std::int64_t>(samples));
  return 1;
}

std::vector<Hyperparameter> mlperf_hyperparameters(const Record& record) {
  return {{"opt_name", given_setting(record, "optimizer", "sgd")},
          {"opt_base_learning_rate", record.learning_rate.peak},
          {"opt_learning_rate_warmup_epochs", number_of_setting(record, "warmup")},
          {"opt_weight_decay", number_of_setting(record, "weight-decay")},
          {"model_bn_span",
           has_whole_batch(record) ? record.global_batch : record.local_batch / passes_of_step(record)}};
}

std::string mlperf_benchmark(const Record& record) {
  return fmt::format("{} on {}", record.model.name, measure::name_of_data(record));
}

std::string mlperf_platform(const Record& record) {
  return fmt::format("{} x {}", record.workers, record.device_name.value_or(record.environment.cpu));
}

std::string to_json(const ReferenceCurve& curve) {
  auto json = OrderedJson::object();
  for (const auto& point : curve.points) {
    auto name = fmt::format("{}_ref_{}", point.benchmark, point.batch);
    std::ranges::replace(name, ' ', '_');
    json[name] = json_of_point(point, curve);
  }
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + '\n';
}

ReferenceCurve reference_from_json(const std::string& text, const std::string& where) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object())
    base::fail(base::ErrorKind::data, "{}: is no reference; 'paceline reference make' writes one", where);
  ReferenceCurve curve;
  for (const auto& [name, one] : json.items()) {
    if (!one.is_object()) continue;
    const auto place = fmt::format("{}: {}", where, name);
    curve.points.push_back(point_of(one, place));
    const auto target = target_of(one, place);
    if (curve.points.size() == 1) curve.target = target;
    if (target != curve.target || curve.points.back().benchmark != curve.points.front().benchmark)
      base::fail(base::ErrorKind::data,
                 "{}: has another accuracy or another benchmark than the entries before it", place);
  }
  if (curve.points.empty()) base::fail(base::ErrorKind::data, "{}: is no reference: it has no batch", where);
  std::ranges::sort(curve.points, {}, &ReferencePoint::batch);
  const auto twice = std::ranges::adjacent_find(curve.points, {}, &ReferencePoint::batch);
  if (twice != curve.points.end())
    base::fail(base::ErrorKind::data, "{}: has batch {} twice; keep one of the two", where, twice->batch);
  return curve;
}

}  // namespace paceline::analysis
