#include "base/error.h"
#include "graph/ops/rules.h"

namespace paceline::graph {
namespace {

Shape shape(const OpSite& site) {
  const Shape& src = site.src[0];
  const double smoothing = site.as<SoftmaxCrossEntropy>().label_smoothing;
  if (src.height != 1 || src.width != 1 || src.channels < 2)
    base::fail(base::ErrorKind::usage,
               "softmax_cross_entropy '{}': its input must be one number for each of 2 or more classes, but "
               "is {}; end the model with a dense layer of as many features as classes",
               site.name, text(src));
  if (!(smoothing >= 0 && smoothing < 1))
    base::fail(base::ErrorKind::usage,
               "softmax_cross_entropy '{}': label smoothing must be in [0, 1), but is {}; 0.1 is common",
               site.name, smoothing);
  return {1, 1, 1};
}

}  // namespace

OpRule make_rule(const SoftmaxCrossEntropy&) {
  return {.kind = "softmax_cross_entropy", .saved = {.dst = true}, .shape = shape};
}

}  // namespace paceline::graph
