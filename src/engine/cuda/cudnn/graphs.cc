#include "engine/cuda/cudnn/graphs.h"

#include <fmt/format.h>

#include "base/error.h"

namespace paceline::engine::cuda::cudnn {
namespace {

constexpr int kSamples = 0, kChannels = 1, kHeight = 2, kWidth = 3;  // indices in cuDNN's order of dimensions

TensorLayout channels_last(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  return {{n, c, h, w}, {h * w * c, 1, w * c, c}};
}

void require_layout(const TensorLayout& tensor, const char* name, std::int64_t elements,
                    const ConvProblem& problem) {
  const auto& [n, c, h, w] = tensor.sizes;
  require_of(problem, tensor.strides == channels_last(n, c, h, w).strides,
             "the {}'s strides must be those of channels that lie beside one another, [{}], but are [{}]",
             name, fmt::join(channels_last(n, c, h, w).strides, ", "), fmt::join(tensor.strides, ", "));
  require_of(problem, tensor.elements() == elements, "the {} must have {} elements, but has {}", name,
             elements, tensor.elements());
}

/// The attributes that set the tensors of an operation.
struct OperationAttributes {
  DescriptorType type;
  Attribute alpha, beta, geometry, src, weight, dst;
};

OperationAttributes attributes_of(ConvDirection direction) {
  using enum Attribute;
  switch (direction) {
    case ConvDirection::forward:
      return {DescriptorType::convolution_forward,
              forward_alpha,
              forward_beta,
              forward_convolution,
              forward_src,
              forward_weight,
              forward_dst};
    case ConvDirection::backward_data:
      return {DescriptorType::convolution_backward_data,
              backward_data_alpha,
              backward_data_beta,
              backward_data_convolution,
              backward_data_d_src,
              backward_data_weight,
              backward_data_d_dst};
    default:
      return {DescriptorType::convolution_backward_weights,
              backward_weights_alpha,
              backward_weights_beta,
              backward_weights_convolution,
              backward_weights_src,
              backward_weights_d_weight,
              backward_weights_d_dst};
  }
}

DataType data_type(Precision precision) {
  return precision == Precision::f32    ? DataType::f32
         : precision == Precision::bf16 ? DataType::bf16
                                        : DataType::f16;
}

Descriptor tensor(const CallSite& site, const TensorLayout& layout, std::int64_t id, Precision precision) {
  Descriptor descriptor(site, DescriptorType::tensor);
  descriptor.set(Attribute::tensor_data_type, data_type(precision))
      .set(Attribute::tensor_dimensions, layout.sizes)
      .set(Attribute::tensor_strides, layout.strides)
      .set(Attribute::tensor_unique_id, id)
      .set(Attribute::tensor_byte_alignment, kTensorAlignment)
      .finalize();
  return descriptor;
}

Descriptor geometry(const CallSite& site, const ConvProblem& problem) {
  const std::array<std::int64_t, 2> paddings = {problem.padding.height, problem.padding.width};
  const std::array<std::int64_t, 2> strides = {problem.stride.height, problem.stride.width};
  const std::array<std::int64_t, 2> dilations = {problem.dilation.height, problem.dilation.width};
  Descriptor descriptor(site, DescriptorType::convolution);
  descriptor.set(Attribute::convolution_compute_type, DataType::f32)
      .set(Attribute::convolution_mode, ConvolutionMode::cross_correlation)
      .set(Attribute::convolution_spatial_dimensions, std::int64_t{2})
      .set(Attribute::convolution_dilations, dilations)
      .set(Attribute::convolution_strides, strides)
      .set(Attribute::convolution_pre_paddings, paddings)
      .set(Attribute::convolution_post_paddings, paddings)
      .finalize();
  return descriptor;
}

}  // namespace

void TargetDevice::apply_to_graph(Descriptor& graph) const {
  if (!properties_) graph.set(Attribute::graph_handle, handle_);
}

void TargetDevice::apply_to_heuristics(Descriptor& heuristics) const {
  if (properties_.has_value()) heuristics.set(Attribute::heuristics_device_properties, *properties_);
}

void TargetDevice::apply_to_plan(Descriptor& plan) const {
  if (!properties_)
    plan.set(Attribute::plan_handle, handle_);
  else
    plan.set(Attribute::plan_device_properties, *properties_);
}

ConvTensors conv_tensors(const ConvProblem& p) {
  return {.src = channels_last(p.samples, p.channels_in, p.height_in, p.width_in),
          .weight = channels_last(p.channels_out, p.channels_in / p.groups, p.kernel_height, p.kernel_width),
          .dst = channels_last(p.samples, p.channels_out, p.height_out, p.width_out)};
}

void check(const ConvTensors& tensors, const ConvProblem& problem) {
  const auto& [src, weight, dst] = tensors;
  // cuDNN takes the quotient of these for the number of groups.
  require_of(problem, weight.sizes[kChannels] * problem.groups == src.sizes[kChannels],
             "the weight's channels must be the input's, {}, over the number of groups, {}, but are {}",
             src.sizes[kChannels], problem.groups, weight.sizes[kChannels]);
  require_of(problem, weight.sizes[kSamples] == dst.sizes[kChannels],
             "the weight must make the output's {} channels, but makes {}", dst.sizes[kChannels],
             weight.sizes[kSamples]);
  require_of(problem, src.sizes[kSamples] == problem.samples && dst.sizes[kSamples] == problem.samples,
             "input and output must have {} samples, but have {} and {}", problem.samples,
             src.sizes[kSamples], dst.sizes[kSamples]);
  require_of(problem,
             weight.sizes[kHeight] == problem.kernel_height && weight.sizes[kWidth] == problem.kernel_width,
             "the weight must be {}x{}, but is {}x{}", problem.kernel_height, problem.kernel_width,
             weight.sizes[kHeight], weight.sizes[kWidth]);
  require_layout(src, "input", problem.src_elements(), problem);
  require_layout(weight, "weight", problem.weight_elements(), problem);
  require_layout(dst, "output", problem.dst_elements(), problem);
}

ConvGraph make_conv_graph(const TargetDevice& device, const ConvProblem& problem,
                          const ConvTensors& tensors) {
  cuda::check(problem);
  check(tensors, problem);
  const CallSite site{&device.api(), describe(problem)};
  const OperationAttributes attributes = attributes_of(problem.direction);
  ConvGraph all{.src = tensor(site, tensors.src, kSrcId, problem.precision),
                .weight = tensor(site, tensors.weight, kWeightId, problem.precision),
                .dst = tensor(site, tensors.dst, kDstId, problem.precision),
                .geometry = geometry(site, problem),
                .operation = Descriptor(site, attributes.type),
                .graph = Descriptor(site, DescriptorType::operation_graph)};
  all.operation.set(attributes.geometry, all.geometry)
      .set(attributes.src, all.src)
      .set(attributes.weight, all.weight)
      .set(attributes.dst, all.dst)
      .set(attributes.alpha, 1.0f)
      .set(attributes.beta, 0.0f)  // the result is overwritten
      .finalize();
  device.apply_to_graph(all.graph);
  all.graph.set(Attribute::graph_operations, all.operation).finalize();
  return all;
}

}  // namespace paceline::engine::cuda::cudnn
