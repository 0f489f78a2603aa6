#include "engine/cpu/conv/problem.h"

namespace paceline::engine::cpu {

const char* name_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return "forward";
    case Direction::backward_data:
      return "backward data";
    case Direction::backward_weights:
      return "backward weights";
  }
  return "";
}

std::int64_t ConvShape::weights() const {
  return is_dense ? dst.channels * src.elements()
                  : std::int64_t{1} * dst.channels * src.channels * kernel * kernel;
}
std::int64_t ConvShape::products() const { return weights() * dst_pixels(); }

}  // namespace paceline::engine::cpu
