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

std::int64_t parameters_of(const graph::Graph& graph, const graph::Node& node) {
  std::int64_t count = 0;
  for (const int index : node.parameters)
    if (const auto& one = graph.parameters[static_cast<std::size_t>(index)]; graph::is_trainable(one.role))
      count += one.elements();
  return count;
}

std::string millions(std::int64_t count) { return fmt::format("{:.2f} M", static_cast<double>(count) / 1e6); }

void list_models(const Settings& settings, Screen& screen) {
  auto all = nlohmann::ordered_json::array();
  if (!settings.json)
    screen.say("{:<24} {:<10} {:>10} {:>14}", "--model", "input", "parameters", "multiply-adds");
  for (const std::string& name : graph::model_names()) {
    const auto graph = model_for(settings, name);
    const auto& input = graph.input_shape();
    const auto multiply_adds = graph::forward_flops(graph) / 2;
    if (settings.json)
      all.push_back({{"model", name},
                     {"input", graph::text(input)},
                     {"parameters", graph.trainable_elements()},
                     {"multiply_adds", multiply_adds}});
    else
      screen.say("{:<24} {:<10} {:>10} {:>14}", name,
                 fmt::format("{}x{}x{}", input.channels, input.height, input.width),
                 millions(graph.trainable_elements()), millions(multiply_adds));
  }
  if (settings.json)
    std::printf("%s\n", all.dump(1).c_str());
  else
    screen.say(
        "With {} classes, for one image forward. Every model takes other inputs and classes: those of the "
        "data. 'paceline model show MODEL' has its layers",
        settings.model.classes);
}

void show_model(const Settings& settings, Screen& screen) {
  const std::string& name = settings.model.name;
  const auto graph = model_for(settings, name);
  auto how = how_to_compile(settings);
  how.rule = settings.train.rule;
  const auto plan = engine::plan(settings.train.device, graph, how);
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
                                               {"local_batch", how.batch},
                                               {"memory", memory}}
                            .dump(1)
                            .c_str());
    return;
  }
  std::size_t width = 5;
  for (const auto& node : graph.nodes) width = std::max(width, node.name.size());
  screen.say("{:<{}}  {:<21} {:<14} {:>10} {:>13}", "layer", width, "op", "output", "parameters",
             "multiply-adds");
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto& node = graph.nodes[i];
    const auto parameters = parameters_of(graph, node);
    const auto multiply_adds = graph::multiply_adds(graph, static_cast<int>(i));
    screen.say("{:<{}}  {:<21} {:<14} {:>10} {:>13}", base::visible(node.name), width,
               graph::rule_of(node.op).kind, graph::text(node.shape),
               parameters > 0 ? report::integer(static_cast<double>(parameters)) : "",
               multiply_adds > 0 ? millions(multiply_adds) : "");
  }
  screen.say("{}: {} parameters are trained; an image costs {} multiply-adds forward, {:.2f} GFLOP to train",
             base::visible(graph.name), report::integer(static_cast<double>(graph.trainable_elements())),
             millions(graph::forward_flops(graph) / 2),
             static_cast<double>(graph::training_flops(graph)) / 1e9);
  std::string parts;
  for (const auto& line : plan.lines)
    if (line.bytes > 0)
      parts += fmt::format("{}{} {:.0f} MB", parts.empty() ? "" : ", ", line.purpose,
                           static_cast<double>(line.bytes) / 1e6);
  screen.say(
      "Training with {} images at a time in {} needs {:.2f} GB: {}; images and the program come on top. "
      "'paceline train --plan' has the whole for a data set",
      how.batch, train::name(how.precision), static_cast<double>(plan.total_bytes()) / 1e9, parts);
}

/// Refuses options of another action.
void require_own_options(const Settings& settings) {
  const bool is_export = settings.action == "export";
  using measure::Setting;
  for (const auto& [setting, is_of_export] :
       {std::pair{Setting("onnx"), true}, std::pair{Setting("raw-input"), true},
        std::pair{Setting("use-ema"), true}, std::pair{Setting("input"), false},
        std::pair{Setting("classes"), false}, std::pair{Setting("device"), false},
        std::pair{Setting("precision"), false}, std::pair{Setting("threads"), false},
        std::pair{Setting("local-batch"), false}})
    if (settings.is_given(setting) && is_of_export != is_export)
      base::fail(ErrorKind::usage, "model {}: --{} {}", settings.action, setting.key(),
                 is_export ? "is of model show, and exporting reads none of it; leave it out"
                           : "is for a checkpoint: paceline model export CHECKPOINT --onnx FILE");
  if (is_export && settings.model.onnx.empty())
    base::fail(ErrorKind::usage,
               "model export: say which file to write: paceline model export {} --onnx model.onnx",
               base::shell_word(settings.model.name));
}

}  // namespace

graph::Graph model_for(const Settings& settings, const std::string& name) {
  const auto& asked = settings.model;
  return graph::make_model(name, asked.input.channels > 0 ? asked.input : graph::usual_input(name),
                           asked.classes, 0);
}

engine::CompileOptions how_to_compile(const Settings& settings) {
  constexpr int kUsualBatch = 32;
  const auto& train = settings.train;
  engine::CompileOptions how;
  how.batch = train.local_batch > 0 ? static_cast<int>(train.local_batch) : kUsualBatch;
  how.precision = train::precision_of(train.precision, engine::auto_precision(train.device).precision);
  how.threads = train.threads > 0 ? train.threads : base::usable_cores();
  return how;
}

int model_command(const Settings& settings) {
  Screen screen(settings.json);
  require_own_options(settings);
  const auto& action = settings.action;
  if (action == "list")
    list_models(settings, screen);
  else if (action == "show")
    show_model(settings, screen);
  else
    export_model(settings, screen);
  return 0;
}

}  // namespace paceline::cli
