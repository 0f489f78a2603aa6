#pragma once

/// `--weights FILE`: begins a training with weights that another program or training made.
///
/// The file is a safetensors file with PyTorch's names and shapes, in F32, F16, BF16 or F64, as a checkpoint
/// of this program is too; or one of torch.save() (torch_file.h). Every parameter of the model and every
/// running statistic must be there. Three things may differ: the last layer, if only its number of classes
/// does, keeps its random values; arrays that the model does not have are left out; and all names may have
/// one prefix ("module.", "state_dict.").

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/layout.h"

namespace paceline::train {

/// Which file, and how its arrays find the model's parameters.
struct WeightsFile {
  std::filesystem::path path;
  /// The file's arrays one after the other, whatever they are called; else by name.
  bool by_order = false;
};

/// Which arrays of a file a model takes.
struct GivenWeights {
  std::vector<std::string> drawn;     ///< parameters of a last layer of other classes: they stay random
  std::vector<std::string> left_out;  ///< arrays that the model does not have
  /// "weights from resnet50.safetensors: 318 arrays; fc.weight and fc.bias are drawn anew, ..."
  std::string sentence;
};

/// Compares the file's header with the model.
///
/// Cost     reads the header
/// Errors   Error(data): the file is damaged or of another kind; Error(usage): an array is missing, has
///          another shape or type; with the array, both shapes and what to do
[[nodiscard]] GivenWeights check_given_weights(const WeightsFile& file, const graph::Graph& graph);

/// Copies the file's arrays into the flat `weights`; others keep their values.
///
/// Errors   as check_given_weights(); Error(data) for a value that is no finite number
GivenWeights read_given_weights(const WeightsFile& file, const graph::Graph& graph,
                                const graph::Layout& layout, std::span<float> weights);

}  // namespace paceline::train
