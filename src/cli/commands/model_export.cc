// paceline model export CHECKPOINT --onnx FILE: a trained model for programs that know nothing of this one.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/screen/screen.h"
#include "graph/layout.h"
#include "graph/onnx/export.h"
#include "graph/onnx/graph_writer.h"
#include "measure/environment.h"
#include "train/checkpoint/checkpoint.h"
#include "train/classify.h"

namespace paceline::cli {
namespace {

/// Refuses a file that is there: unlike a report it cannot be told from a model of another training.
void require_new_file(const std::filesystem::path& file) {
  base::require_directory_of(file, "--onnx");
  if (std::filesystem::exists(file))
    base::fail(ErrorKind::data,
               "--onnx {}: is there already, and an export replaces nothing; remove it or give another file",
               file.string());
}

/// "[N,3,32,32]"
std::string shape_of_batch(const graph::Shape& shape) {
  return fmt::format("[N,{},{},{}]", shape.channels, shape.height, shape.width);
}

/// What `input` takes, in words.
std::string describe_input(const graph::Graph& graph, const data::DataIdentity& seen, bool is_raw) {
  const auto& shape = graph.input_shape();
  const auto range =
      is_raw ? std::string("pixels / 255, less the mean, over the standard deviation of each channel")
             : std::string("pixels / 255, from 0 to 1; the first node normalises them");
  const auto scaled = seen.range ? fmt::format("; values of 16 bits are first scaled to 255 by range={}",
                                               data::text_of(*seen.range))
                                 : std::string();
  const auto size =
      seen.eval_resize > 0
          ? fmt::format("with the shorter side resized to {}, then the centre cropped", seen.eval_resize)
          : fmt::format("the largest part in the middle of these proportions, resized");
  return fmt::format("float {}, {}, {}; {}{}", shape_of_batch(shape), shape.channels == 3 ? "RGB" : "grey",
                     range, size, scaled);
}

}  // namespace

void export_model(const Settings& settings, Screen& screen) {
  const auto& request = settings.model;
  require_new_file(request.onnx);
  const auto info = train::read_checkpoint_info(request.name);
  const auto graph = train::graph_in(info);
  graph::onnx::require_exportable(graph);
  const auto layout = graph::flat_layout(graph);
  std::vector<float> weights(static_cast<std::size_t>(layout.elements));
  const bool is_averaged = settings.train.use_ema;
  train::read_weights(info.path, graph, layout, weights, is_averaged);

  const auto& seen = info.data;
  const auto input = describe_input(graph, seen, request.is_raw_input);
  const graph::onnx::ModelFacts facts{
      .mean = request.is_raw_input ? std::vector<float>() : seen.mean,
      .stddev = request.is_raw_input ? std::vector<float>() : seen.stddev,
      .version = measure::version(),
      .description = fmt::format(
          "{}, trained by Paceline, {}update {}. input: {}. logits: float [N,{}], a number for each class in the "
          "order of 'classes' in the metadata; softmax makes them probabilities.",
          graph.name, is_averaged ? "averaged weights of " : "", info.updates, input, graph.classes()),
      .metadata = {
          {"model", graph.name},
          {"update", std::to_string(info.updates)},
          {"weights", is_averaged ? "averaged" : "trained"},
          {"input", input},
          {"mean", fmt::format("[{}]", fmt::join(seen.mean, ", "))},
          {"stddev", fmt::format("[{}]", fmt::join(seen.stddev, ", "))},
          {"classes",
           nlohmann::json(seen.classes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)}}};
  const auto bytes = graph::onnx::export_model(graph, layout, weights, facts);
  base::write_file(request.onnx, bytes);

  if (settings.json) {
    std::printf("%s\n", nlohmann::ordered_json{{"file", request.onnx.string()},
                                               {"checkpoint", info.path.string()},
                                               {"model", graph.name},
                                               {"update", info.updates},
                                               {"opset", graph::onnx::kOpset},
                                               {"input", input},
                                               {"classes", seen.classes},
                                               {"bytes", bytes.size()}}
                            .dump(1)
                            .c_str());
    return;
  }
  screen.say("{}: {}, {}update {}, ONNX with opset {}, {:.1f} MB", base::visible(request.onnx.string()),
             base::visible(graph.name), is_averaged ? "averaged weights of " : "", info.updates,
             graph::onnx::kOpset, static_cast<double>(bytes.size()) / 1e6);
  screen.say("input: {}", input);
  screen.say("logits: float [N,{}]", graph.classes());
  if (!info.precision.empty() && info.precision != "fp32")
    screen.say(
        "It was trained in {}; the file computes in fp32, so its logits differ from those of the training's "
        "evaluations by the rounding of {}",
        info.precision, info.precision);
}

}  // namespace paceline::cli
