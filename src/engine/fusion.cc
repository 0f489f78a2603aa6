#include "engine/fusion.h"

#include <algorithm>

namespace paceline::engine {
namespace {

class Fuser {
 public:
  explicit Fuser(const graph::Graph& graph)
      : graph_(graph), readers_(graph.nodes.size()), taken_(graph.nodes.size()) {
    for (int node = 0; node < size(); ++node)
      for (const int input : at(node).inputs) readers_[static_cast<std::size_t>(input)].push_back(node);
  }

  std::vector<FusedGroup> run() {
    std::vector<FusedGroup> groups;
    for (int node = 0; node < size(); ++node)
      if (!taken_[static_cast<std::size_t>(node)]) groups.push_back(group_from(node));
    std::stable_sort(groups.begin(), groups.end(),
                     [](const FusedGroup& a, const FusedGroup& b) { return a.last < b.last; });
    return groups;
  }

 private:
  [[nodiscard]] int size() const { return static_cast<int>(graph_.nodes.size()); }
  [[nodiscard]] const graph::Node& at(int node) const { return graph_.nodes[static_cast<std::size_t>(node)]; }

  /// The only op that reads `node`, if it is an Op that no group has yet; else -1.
  template <typename Op>
  [[nodiscard]] int sole_reader(int node) const {
    const auto& readers = readers_[static_cast<std::size_t>(node)];
    if (readers.size() != 1 || taken_[static_cast<std::size_t>(readers[0])]) return -1;
    return at(readers[0]).as<Op>() != nullptr ? readers[0] : -1;
  }

  void take(FusedGroup& group, int node) {
    taken_[static_cast<std::size_t>(node)] = true;
    group.last = node;
  }

  FusedGroup group_from(int node) {
    FusedGroup group{.node = node, .last = node, .inputs = at(node).inputs};
    take(group, node);
    const bool is_norm = at(node).as<graph::BatchNorm>() != nullptr;
    if (const int sum = is_norm ? sole_reader<graph::Add>(node) : -1; sum >= 0) {
      const auto& sides = at(sum).inputs;
      group.inputs.push_back(sides[0] == node ? sides[1] : sides[0]);
      group.sum = true;
      take(group, sum);
    }
    const bool takes_relu =
        is_norm || at(node).as<graph::Conv2d>() || at(node).as<graph::Dense>() || at(node).as<graph::Add>();
    if (const int relu = takes_relu ? sole_reader<graph::Relu>(group.last) : -1; relu >= 0) {
      group.relu = true;
      take(group, relu);
    }
    return group;
  }

  const graph::Graph& graph_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> taken_;
};

}  // namespace

std::vector<FusedGroup> fuse(const graph::Graph& graph) { return Fuser(graph).run(); }

}  // namespace paceline::engine
