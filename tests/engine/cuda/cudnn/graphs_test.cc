#include "engine/cuda/cudnn/graphs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <utility>

#include "base/error.h"
#include "engine/cuda/cudnn/fake_cudnn.h"

namespace paceline::engine::cuda::cudnn {
namespace {

using test::FakeCudnn;
using test::FakeDescriptor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ConvProblem small_problem(ConvDirection direction = ConvDirection::forward) {
  return {.direction = direction,
          .precision = Precision::bf16,
          .samples = 2,
          .channels_in = 32,
          .height_in = 6,
          .width_in = 4,
          .channels_out = 16,
          .height_out = 3,
          .width_out = 2,
          .kernel_height = 3,
          .kernel_width = 3,
          .stride = 2,
          .padding = 1};
}

/// What is said when the tensors are described wrongly.
std::string refusal(const std::function<void(ConvTensors&)>& change) {
  FakeCudnn fake;
  ConvTensors tensors = conv_tensors(small_problem());
  change(tensors);
  try {
    const auto graph = make_conv_graph(TargetDevice(fake.api(), nullptr), small_problem(), tensors);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::device);
    EXPECT_EQ(fake.calls, 0) << "cuDNN has seen it";
    return error.what();
  }
  return "";
}

TEST(CudnnGraphs, TensorsAreToldAsTheyLieWithChannelsLast) {
  const ConvTensors tensors = conv_tensors(small_problem());
  EXPECT_THAT(tensors.src.sizes, ElementsAre(2, 32, 6, 4));
  EXPECT_THAT(tensors.src.strides, ElementsAre(6 * 4 * 32, 1, 4 * 32, 32));
  EXPECT_THAT(tensors.weight.sizes, ElementsAre(16, 32, 3, 3));
  EXPECT_THAT(tensors.weight.strides, ElementsAre(3 * 3 * 32, 1, 3 * 32, 32));
  EXPECT_THAT(tensors.dst.sizes, ElementsAre(2, 16, 3, 2));
  EXPECT_EQ(refusal([](ConvTensors&) {}), "");
}

// cuDNN takes weights with half the channels as a convolution of two groups, without complaint.
TEST(CudnnGraphs, HalvedChannelsAreRefusedBeforeCudnnSeesThem) {
  EXPECT_EQ(
      refusal([](ConvTensors& t) {
        t.weight.sizes[1] = 16;
        t.weight.strides = {3 * 3 * 16, 1, 3 * 16, 16};
      }),
      "convolution (forward, bf16, 2x6x4x32 to 2x3x2x16, kernel 3x3, stride 2, padding 1): the weight's "
      "channels must be the input's, 32, over the number of groups, 1, but are 16");
  EXPECT_THAT(refusal([](ConvTensors& t) { t.weight.sizes[0] = 8; }),
              HasSubstr("the weight must make the output's 16 channels, but makes 8"));
  // Input and weight halved alike.
  EXPECT_THAT(refusal([](ConvTensors& t) {
                t.src.sizes[1] = t.weight.sizes[1] = 16;
                t.src.strides = {6 * 4 * 16, 1, 4 * 16, 16};
                t.weight.strides = {3 * 3 * 16, 1, 3 * 16, 16};
              }),
              HasSubstr("the input must have 1536 elements, but has 768"));
}

TEST(CudnnGraphs, SwappedLayoutsAreRefusedBeforeCudnnSeesThem) {
  EXPECT_THAT(refusal([](ConvTensors& t) {
                t.src.strides = {32 * 6 * 4, 6 * 4, 4, 1};
              }),
              HasSubstr("the input's strides must be those of channels that lie beside one another, [768, 1, "
                        "128, 32], but are [768, 24, 4, 1]"));
  EXPECT_THAT(refusal([](ConvTensors& t) {
                t.weight.strides = {32 * 9, 9, 3, 1};
              }),
              HasSubstr("the weight's strides must be"));
  EXPECT_THAT(refusal([](ConvTensors& t) { std::swap(t.dst.strides[2], t.dst.strides[3]); }),
              HasSubstr("the output's strides must be"));
  EXPECT_THAT(refusal([](ConvTensors& t) { std::swap(t.src.sizes[2], t.src.sizes[3]); }),
              HasSubstr("the input's strides must be"));
}

TEST(CudnnGraphs, TensorsThatDoNotFitAreRefused) {
  EXPECT_THAT(refusal([](ConvTensors& t) { t.src.sizes[0] = 4; }),
              HasSubstr("input and output must have 2 samples, but have 4 and 2"));
  EXPECT_THAT(refusal([](ConvTensors& t) { t.weight.sizes[2] = 1; }),
              HasSubstr("the weight must be 3x3, but is 1x3"));
}

template <typename T>
std::vector<T> values(const FakeDescriptor& descriptor, Attribute attribute) {
  const std::vector<char>& bytes = descriptor.attributes.at(attribute);
  std::vector<T> all(bytes.size() / sizeof(T));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

TEST(CudnnGraphs, EachDirectionIsToldWithItsOwnAttributes) {
  const struct {
    ConvDirection direction;
    DescriptorType type;
    Attribute geometry, src, weight, dst, alpha, beta;
  } cases[] = {
      {ConvDirection::forward, DescriptorType::convolution_forward, Attribute::forward_convolution,
       Attribute::forward_src, Attribute::forward_weight, Attribute::forward_dst, Attribute::forward_alpha,
       Attribute::forward_beta},
      {ConvDirection::backward_data, DescriptorType::convolution_backward_data,
       Attribute::backward_data_convolution, Attribute::backward_data_d_src, Attribute::backward_data_weight,
       Attribute::backward_data_d_dst, Attribute::backward_data_alpha, Attribute::backward_data_beta},
      {ConvDirection::backward_weights, DescriptorType::convolution_backward_weights,
       Attribute::backward_weights_convolution, Attribute::backward_weights_src,
       Attribute::backward_weights_d_weight, Attribute::backward_weights_d_dst,
       Attribute::backward_weights_alpha, Attribute::backward_weights_beta}};
  for (const auto& each : cases) {
    FakeCudnn fake;
    const ConvProblem asked = small_problem(each.direction);
    const ConvGraph graph = make_conv_graph(TargetDevice(fake.api(), nullptr), asked, conv_tensors(asked));
    ASSERT_EQ(fake.finalized.size(), 6u);
    const FakeDescriptor& operation = fake.finalized[4];
    EXPECT_EQ(operation.type, each.type);
    EXPECT_EQ(operation.attributes.size(), 6u);
    EXPECT_THAT(values<RawDescriptor>(operation, each.geometry), ElementsAre(graph.geometry.raw()));
    EXPECT_THAT(values<RawDescriptor>(operation, each.src), ElementsAre(graph.src.raw()));
    EXPECT_THAT(values<RawDescriptor>(operation, each.weight), ElementsAre(graph.weight.raw()));
    EXPECT_THAT(values<RawDescriptor>(operation, each.dst), ElementsAre(graph.dst.raw()));
    EXPECT_THAT(values<float>(operation, each.alpha), ElementsAre(1.0f));
    EXPECT_THAT(values<float>(operation, each.beta), ElementsAre(0.0f));
    const FakeDescriptor& geometry = fake.finalized[3];
    EXPECT_THAT(values<std::int64_t>(geometry, Attribute::convolution_strides), ElementsAre(2, 2));
    EXPECT_THAT(values<std::int64_t>(geometry, Attribute::convolution_pre_paddings), ElementsAre(1, 1));
    EXPECT_THAT(values<DataType>(geometry, Attribute::convolution_compute_type), ElementsAre(DataType::f32));
    EXPECT_THAT(values<DataType>(fake.finalized[0], Attribute::tensor_data_type),
                ElementsAre(DataType::bf16));
  }
}

TEST(CudnnGraphs, SayTheWindowOfEachAxis) {
  FakeCudnn fake;
  ConvProblem asked = small_problem();
  asked.kernel_width = 2;
  asked.stride = {2, 1};
  asked.padding = {1, 0};
  asked.dilation = {1, 3};
  asked.width_out = 1;
  const ConvGraph graph = make_conv_graph(TargetDevice(fake.api(), nullptr), asked, conv_tensors(asked));
  const FakeDescriptor& geometry = fake.finalized[3];
  EXPECT_THAT(values<std::int64_t>(geometry, Attribute::convolution_strides), ElementsAre(2, 1));
  EXPECT_THAT(values<std::int64_t>(geometry, Attribute::convolution_pre_paddings), ElementsAre(1, 0));
  EXPECT_THAT(values<std::int64_t>(geometry, Attribute::convolution_post_paddings), ElementsAre(1, 0));
  EXPECT_THAT(values<std::int64_t>(geometry, Attribute::convolution_dilations), ElementsAre(1, 3));
}

}  // namespace
}  // namespace paceline::engine::cuda::cudnn
