#include "base/error.h"
#include "graph/ops/rules.h"

namespace paceline::graph {
namespace {

Shape shape(const OpSite& site) {
  const Shape& src = site.as<Input>().shape;
  if (src.channels < 1 || src.height < 1 || src.width < 1)
    base::fail(
        base::ErrorKind::usage,
        "input: channels, height and width must be at least 1, but are {}; check the data set's image size",
        text(src));
  return src;
}

}  // namespace

OpRule make_rule(const Input&) { return {.kind = "input", .inputs = 0, .shape = shape}; }

}  // namespace paceline::graph
