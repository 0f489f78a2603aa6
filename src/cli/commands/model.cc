// paceline model list, and paceline model show MODEL: what a model is made of, before it is trained. For
// export see model_export.cc.

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "base/topology.h"
#include "cli/commands/commands.h"
#include "cli/screen/screen.h"
#include "engine/engine.h"
#include "engine/make.h"
#include "graph/ops.h"
#include "graph/plan.h"
#include "graph/zoo.h"
#include "report/text.h"
#include "train/given/resolve.h"

namespace paceline::cli {
namespace {

using Model = Settings::ModelRequest;

graph::Shape input_of(const Model& request, const std::string& model) {
  return request.input.channels > 0 ? request.input : graph::usual_input(model);
}

std::int64_t parameters_of(const graph::Graph& graph, const graph::Node& node) {
  std::int64_t count = 0;
  for (const int index : node.parameters)
    if (const auto& one = graph.parameters[static_cast<std::size_t>(index)]; graph::is_trainable(one.role))
      count += one.elements();
  return count;
}

std::int64_t batch_of(const Settings& settings) {
  constexpr std::int64_t kUsual = 32;
  return settings.train.local_batch > 0 ? settings.train.local_batch : kUsual;
}

graph::MemoryPlan plan_of(const Settings& settings, const graph::Graph& graph, engine::Precision precision) {
  engine::CompileOptions how;
  how.batch = static_cast<int>(batch_of(settings));
  how.precision = precision;
  how.threads = settings.train.threads > 0 ? settings.train.threads : base::usable_cores();
  how.rule = settings.train.rule;
  return engine::plan(settings.train.device, graph, how);
}

std::string millions(std::int64_t count) { return fmt::format("{:.2f} M", static_cast<double>(count) / 1e6); }

void list_models(const Settings& settings, Screen& screen) {
  auto all = nlohmann::ordered_json::array();
  if (!settings.json)
    screen.say(fmt::format("{:<24} {:<10} {:>10} {:>14}", "--model", "input", "parameters", "multiply-adds"));
  for (const std::string& name : graph::model_names()) {
    const auto input = input_of(settings.model, name);
    const auto graph = graph::make_model(name, input, settings.model.classes, 0);
    const auto multiply_adds = graph::forward_flops(graph) / 2;
    if (settings.json)
      all.push_back({{"model", name},
                     {"input", graph::text(input)},
                     {"parameters", graph.trainable_elements()},
                     {"multiply_adds", multiply_adds}});
    else
      screen.say(fmt::format("{:<24} {:<10} {:>10} {:>14}", name,
                             fmt::format("{}x{}x{}", input.channels, input.height, input.width),
                             millions(graph.trainable_elements()), millions(multiply_adds)));
  }
  if (settings.json)
    std::printf("%s\n", all.dump(1).c_str());
  else
    screen.say(fmt::format(
        "With {} classes, for one image forward. Every model takes other inputs and classes: those of the "
        "data. 'paceline model show MODEL' has its layers",
        settings.model.classes));
}

void show_model(const Settings& settings, Screen& screen) {
  const std::string& name = settings.model.name;
  const auto graph = graph::make_model(name, input_of(settings.model, name), settings.model.classes, 0);
  const auto precision =
      train::precision_of(settings.train.precision, engine::auto_precision(settings.train.device).precision);
  const auto plan = plan_of(settings, graph, precision);
  if (settings.json) {
    auto layers = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const auto& node = graph.nodes[i];
      layers.push_back({{"name", node.name},
                        {"op", std::string(graph::rule_of(node.op).kind)},
                        {"output", graph::text(node.shape)},
                        {"parameters", parameters_of(graph, node)},
                        {"multiply_adds", graph::multiply_adds(graph, static_cast<int>(i))}});
    }
    nlohmann::ordered_json memory;
    for (const auto& line : plan.lines) memory[line.purpose] = line.bytes;
    std::printf("%s\n", nlohmann::ordered_json{{"model", graph.name},
                                               {"layers", layers},
                                               {"parameters", graph.trainable_elements()},
                                               {"multiply_adds", graph::forward_flops(graph) / 2},
                                               {"training_flops", graph::training_flops(graph)},
                                               {"local_batch", batch_of(settings)},
                                               {"memory", memory}}
                            .dump(1)
                            .c_str());
    return;
  }
  std::size_t width = 5;
  for (const auto& node : graph.nodes) width = std::max(width, node.name.size());
  screen.say(fmt::format("{:<{}}  {:<21} {:<14} {:>10} {:>13}", "layer", width, "op", "output", "parameters",
                         "multiply-adds"));
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto& node = graph.nodes[i];
    const auto parameters = parameters_of(graph, node);
    const auto multiply_adds = graph::multiply_adds(graph, static_cast<int>(i));
    screen.say(fmt::format("{:<{}}  {:<21} {:<14} {:>10} {:>13}", base::visible(node.name), width,
                           graph::rule_of(node.op).kind, graph::text(node.shape),
                           parameters > 0 ? report::integer(static_cast<double>(parameters)) : "",
                           multiply_adds > 0 ? millions(multiply_adds) : ""));
  }
  screen.say(fmt::format(
      "{}: {} parameters are trained; an image costs {} multiply-adds forward, {:.2f} GFLOP to train",
      base::visible(graph.name), report::integer(static_cast<double>(graph.trainable_elements())),
      millions(graph::forward_flops(graph) / 2), static_cast<double>(graph::training_flops(graph)) / 1e9));
  std::string parts;
  for (const auto& line : plan.lines)
    if (line.bytes > 0)
      parts += fmt::format("{}{} {:.0f} MB", parts.empty() ? "" : ", ", line.purpose,
                           static_cast<double>(line.bytes) / 1e6);
  screen.say(fmt::format(
      "Training with {} images at a time in {} needs {:.2f} GB: {}; images and the program come on top. "
      "'paceline train --plan' has the whole for a data set",
      batch_of(settings), train::name(precision), static_cast<double>(plan.total_bytes()) / 1e9, parts));
}

/// Refuses options of another action.
void require_own_options(const Settings& settings) {
  const bool is_export = settings.model.action == "export";
  using measure::Setting;
  for (const auto& [setting, is_of_export] :
       {std::pair{Setting("onnx"), true}, std::pair{Setting("raw-input"), true},
        std::pair{Setting("use-ema"), true}, std::pair{Setting("input"), false},
        std::pair{Setting("classes"), false}, std::pair{Setting("device"), false},
        std::pair{Setting("precision"), false}, std::pair{Setting("threads"), false},
        std::pair{Setting("local-batch"), false}})
    if (settings.is_given(setting) && is_of_export != is_export)
      base::fail(base::ErrorKind::usage, "model {}: --{} {}", settings.model.action, setting.key(),
                 is_export ? "is of model show, and exporting reads none of it; leave it out"
                           : "is for a checkpoint: paceline model export CHECKPOINT --onnx FILE");
  if (is_export && settings.model.onnx.empty())
    base::fail(base::ErrorKind::usage,
               "model export: say which file to write: paceline model export {} --onnx model.onnx",
               base::shell_word(settings.model.name));
}

}  // namespace

int model_command(const Settings& settings) {
  Screen screen(settings.json);
  require_own_options(settings);
  const auto& action = settings.model.action;
  if (action == "list")
    list_models(settings, screen);
  else if (action == "show")
    show_model(settings, screen);
  else
    export_model(settings, screen);
  return 0;
}

}  // namespace paceline::cli
