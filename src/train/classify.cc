#include "train/classify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/topology.h"
#include "data/augment.h"
#include "data/image/unlabelled.h"
#include "data/loader.h"
#include "graph/layout.h"
#include "train/checkpoint/checkpoint.h"
#include "train/evaluate.h"
#include "train/evaluate_checkpoint.h"
#include "train/given/names.h"

namespace paceline::train {
namespace {

constexpr std::int64_t kMostAtOnce = 32;  ///< images of a step

/// The `top` likeliest of `classes`, of equal ones the first, by the logits [classes].
std::vector<std::pair<std::string, double>> likeliest(std::span<const double> logits, std::size_t top,
                                                      const std::vector<std::string>& classes) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto kept = std::min(top, order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(kept), {},
                            [&](std::size_t i) { return std::pair(-logits[i], i); });
  double total = 0;
  for (const double logit : logits) total += std::exp(logit - logits[order.front()]);
  std::vector<std::pair<std::string, double>> chosen;
  for (std::size_t i = 0; i < kept; ++i)
    chosen.emplace_back(classes[order[i]], std::exp(logits[order[i]] - logits[order.front()]) / total);
  return chosen;
}

}  // namespace

graph::Graph graph_in(const CheckpointInfo& info) {
  const auto where = info.path.string();
  if (info.graph.empty() || info.data.classes.empty())
    base::fail(
        base::ErrorKind::data,
        "{}: a version wrote it that kept neither the graph nor the names of the classes in checkpoints; "
        "'paceline evaluate {}' takes both from the training's data, and a resumed training writes a "
        "checkpoint that holds them",
        where, where);
  auto graph = graph::graph_from_text(info.graph, info.model, where);
  const auto& [height, width, channels] = info.data.format;
  const auto values = static_cast<std::size_t>(channels);
  if (graph.input_shape() != graph::Shape{channels, height, width} || (channels != 1 && channels != 3) ||
      static_cast<std::size_t>(graph.classes()) != info.data.classes.size() ||
      info.data.mean.size() != values || info.data.stddev.size() != values)
    base::fail(base::ErrorKind::data,
               "{}: its images, {}x{}x{} in {}, do not fit its graph; it is damaged: take an earlier one",
               where, height, width, channels,
               base::counted(static_cast<std::int64_t>(info.data.classes.size()), "class", "classes"));
  const auto& seen = info.data.evaluated;
  if (seen == info.data.format) return graph;
  auto evaluated = graph::for_input(graph, {seen.channels, seen.height, seen.width});
  if (!evaluated)
    base::fail(
        base::ErrorKind::data,
        "{}: its graph does not take the {}x{} images of its evaluation; it is damaged: take an earlier one",
        where, seen.height, seen.width);
  return *std::move(evaluated);
}

void classify_images(const Options& asked, const ClassifyRequest& request, const Backend& backend,
                     std::stop_token stop, const std::function<void(const ImagesToClassify&)>& begin,
                     const std::function<void(const ClassifiedImage&)>& take) {
  const auto info = read_checkpoint_info(request.checkpoint);
  const auto graph = graph_in(info);
  const auto& seen = info.data;
  auto found = data::find_images(request.images);

  Options options = as_evaluated(asked);
  options.model = info.model;
  // A processor computes no fp16, and fp32 has all of its numbers.
  const bool is_elsewhere =
      info.precision == name(engine::Precision::f16) && !options.device.starts_with("cuda");
  if (options.precision == "auto" && !info.precision.empty())
    options.precision = is_elsewhere ? name(engine::Precision::f32) : info.precision;
  options.workers = 1;
  options.loader_threads = base::usable_cores();

  const auto make_set = [&] {
    return std::make_unique<data::UnlabelledImages>(found.files, seen.evaluated, seen.eval_resize, seen.range,
                                                    found.archives);
  };
  data::Source source;
  source.spec = request.checkpoint.string();
  source.train = make_set();
  auto images = make_set();
  const auto& set = *images;
  source.test = std::move(images);
  source.class_names = seen.classes;
  source.mean = seen.mean;
  source.stddev = seen.stddev;
  const RunParts parts{graph,
                       source,
                       backend,
                       {.train_samples = std::max(set.size(), kMostAtOnce * options.test_views),
                        .cores = base::usable_cores(),
                        .auto_precision = backend.auto_precision},
                       memory_limits(backend, 1)};
  options.local_batch = std::clamp<std::int64_t>(set.size(), 1, kMostAtOnce) * options.test_views;
  const auto fits = largest_local_batch(options, parts, options.local_batch);
  options.local_batch = std::max<std::int64_t>(fits, options.test_views);
  auto resolved = resolve(options, parts.conditions);
  ImagesToClassify all{
      .images = set.size(),
      .description = fmt::format(
          "{}: {}, update {}, {}, images {}x{}; {} to classify, {}", info.path.string(), info.model,
          info.updates, base::counted(static_cast<std::int64_t>(seen.classes.size()), "class", "classes"),
          seen.evaluated.height, seen.evaluated.width, base::counted(set.size(), "image"),
          name(resolved.precision)),
      .classes = seen.classes,
      .faults = std::move(found.faults)};
  if (found.passed_over > 0)
    all.notes.push_back(
        fmt::format("skipped: {} not end in {}",
                    base::counted(found.passed_over, "file whose name does", "files whose names do"),
                    data::kImageEndings));
  if (set.size() > 0) prepare_evaluation(info, options, resolved, parts, all.notes);
  begin(all);
  if (set.size() == 0) return;
  const auto engine = engine_with_weights(info.path, options, resolved, graph, backend, 0);
  const int views = options.test_views;
  auto loading = evaluation_options(options, resolved, set.size(), 0);
  loading.threads = options.loader_threads;
  loading.passes = 1;
  const data::Augment augment(seen.evaluated, {.mean = seen.mean, .stddev = seen.stddev});
  data::EvaluationBatches batches(set, augment, loading);
  (void)evaluate_samples(
      batches, views, *engine, stop,
      [&](std::int64_t index, std::int32_t /*label*/, std::span<const double> logits) {
        ClassifiedImage image{
            .file = set.sample_name(index), .path = set.path_below(index), .fault = set.fault(index)};
        if (image.fault.empty())
          image.classes = likeliest(logits, static_cast<std::size_t>(request.top), seen.classes);
        take(image);
      });
}

}  // namespace paceline::train
