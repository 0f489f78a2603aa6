#pragma once

/// OpBuilder: a Builder with a short form of the ops that only model files use.

#include <string>
#include <utility>
#include <vector>

#include "graph/zoo.h"

namespace paceline::graph {

struct OpBuilder : Builder {
  using Builder::Builder;

  int average_pool(int src, const AveragePool& attributes, std::string name = "") {
    return append(attributes, {src}, std::move(name));
  }
  int adaptive_average_pool(int src, Pair size, std::string name = "") {
    return append(AdaptiveAveragePool{size}, {src}, std::move(name));
  }
  int mul(int left, int right, std::string name = "") {
    return append(Mul{}, {left, right}, std::move(name));
  }
  int concat(std::vector<int> src, std::string name = "") {
    return append(Concat{}, std::move(src), std::move(name));
  }
  int slice(int src, const Slice& attributes, std::string name = "") {
    return append(attributes, {src}, std::move(name));
  }
  int channel_shuffle(int src, int groups, std::string name = "") {
    return append(ChannelShuffle{groups}, {src}, std::move(name));
  }
  int pad(int src, const Pad& attributes, std::string name = "") {
    return append(attributes, {src}, std::move(name));
  }
  int stochastic_depth(int src, const StochasticDepth& attributes, std::string name = "") {
    return append(attributes, {src}, std::move(name));
  }
  int layer_norm(int src, std::string name, const LayerNorm& attributes = {}) {
    return append(attributes, {src}, std::move(name));
  }
  int group_norm(int src, std::string name, const GroupNorm& attributes) {
    return append(attributes, {src}, std::move(name));
  }
  int scale(int src, std::string name, const Scale& attributes = {}) {
    return append(attributes, {src}, std::move(name));
  }
  int position(int src, std::string name, const ParameterNames& parameters = {}) {
    return append(Position{}, {src}, std::move(name), parameters);
  }
  int class_token(int src, std::string name, const ParameterNames& parameters = {}) {
    return append(ClassToken{}, {src}, std::move(name), parameters);
  }
  int first_place(int src, std::string name = "") { return append(FirstPlace{}, {src}, std::move(name)); }
  int attention(int src, int heads, std::string name = "") {
    return append(Attention{heads}, {src}, std::move(name));
  }
};

}  // namespace paceline::graph
