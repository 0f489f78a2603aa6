#include "engine/cpu/conv/onednn.h"

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/batch_split.h"

namespace paceline::engine::cpu {
namespace {

using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

/// Every call into oneDNN goes through this function, because oneDNN's exceptions give only a status; context
/// is added here.
template <typename Call>
auto checked(const ConvShape& shape, const char* what, Call call) {
  try {
    return call();
  } catch (const dnnl::error& error) {
    base::fail(
        base::ErrorKind::device,
        "{}: oneDNN must offer {} for src [{},{},{}], dst [{},{},{}], kernel {}, stride {}, padding {}, "
        "{} samples, but answered \"{}\" ({}); try --precision fp32 or the reference engine",
        shape.is_dense ? "dense" : "conv2d", what, shape.src.channels, shape.src.height, shape.src.width,
        shape.dst.channels, shape.dst.height, shape.dst.width, text(shape.window().kernel),
        text(shape.window().stride), text(shape.window().padding), shape.samples, error.message,
        static_cast<int>(error.status));
  }
}

memory::data_type type_of(Storage storage) {
  return storage == Storage::f32 ? memory::data_type::f32 : memory::data_type::bf16;
}

memory::dims activation_dims(int samples, const graph::Shape& shape) {
  return {samples, shape.channels, shape.height, shape.width};
}

memory::desc activation(int samples, const graph::Shape& shape, Storage type) {
  return {activation_dims(samples, shape), type_of(type), memory::format_tag::nhwc};
}

/// The weight's dimensions as in PyTorch. A dense layer's [features, C*H*W] has the same order as [features,
/// C, H, W].
memory::dims weight_dims(const ConvShape& s) {
  if (s.is_dense) return {s.dst.channels, s.src.channels, s.src.height, s.src.width};
  const graph::Pair kernel = s.window().kernel;
  if (s.groups > 1)
    return {s.groups, s.dst.channels / s.groups, s.src.channels / s.groups, kernel.height, kernel.width};
  return {s.dst.channels, s.src.channels, kernel.height, kernel.width};
}

struct Descriptors {
  dnnl::prop_kind forward = dnnl::prop_kind::undef;
  memory::desc src, dst, d_dst, weight, d_weight, flat_weight;
  memory::desc bias;                    ///< zero: none
  memory::desc any_weight;              ///< the forward weights, with which backward primitives are described
  memory::dims strides, gaps, padding;  ///< gaps: between two taps, 0 without dilation
  dnnl::primitive_attr attributes;
};

Descriptors descriptors(const ConvShape& s) {
  const auto any = memory::format_tag::any;
  Descriptors d;
  d.forward = s.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  d.src = activation(s.samples, s.src, s.type);
  d.dst = activation(s.samples, s.dst, s.dst_type);
  d.d_dst = activation(s.samples, s.dst, s.type);
  if (s.is_dense) {
    const memory::dims rows = {s.samples, s.dst.channels};
    d.dst = {rows, type_of(s.dst_type), memory::format_tag::nc};
    d.d_dst = {rows, type_of(s.type), memory::format_tag::nc};
  }
  d.weight = d.any_weight = {weight_dims(s), type_of(s.type), any};
  d.d_weight = {weight_dims(s), memory::data_type::f32, any};
  d.flat_weight = {weight_dims(s), memory::data_type::f32,
                   s.groups > 1 ? memory::format_tag::goihw : memory::format_tag::oihw};
  if (s.bias) d.bias = {{s.dst.channels}, memory::data_type::f32, memory::format_tag::x};
  const graph::SlidingWindow window = s.window();
  d.strides = {window.stride.height, window.stride.width};
  d.gaps = {window.dilation.height - 1, window.dilation.width - 1};
  d.padding = {window.padding.height, window.padding.width};
  d.attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return d;
}

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

/// The common view of primitives for either op and any direction.
struct Described {
  dnnl::primitive primitive;
  memory::desc weight, scratchpad;
  std::string name;
};

template <typename Primitive, typename Description>
Described described(const Description& description, const memory::desc& weight) {
  const char* name = nullptr;
  dnnl_primitive_desc_query(description.get(), dnnl_query_impl_info_str, 0, &name);
  return {.primitive = Primitive(description),
          .weight = weight,
          .scratchpad = description.scratchpad_desc(),
          .name = std::string("onednn ") + (name != nullptr ? name : "unnamed")};
}

Described describe_conv(Direction direction, const Descriptors& d, const dnnl::engine& engine) {
  using Forward = dnnl::convolution_forward;
  const auto& weight = direction == Direction::forward ? d.weight : d.any_weight;
  const Forward::desc forward_op(d.forward, kDirect, d.src, weight, d.bias, d.dst, d.strides, d.gaps,
                                 d.padding, d.padding);
  const Forward::primitive_desc forward(forward_op, d.attributes, engine);
  if (direction == Direction::forward) return described<Forward>(forward, forward.weights_desc());
  if (direction == Direction::backward_data) {
    using Backward = dnnl::convolution_backward_data;
    const Backward::primitive_desc pd(
        {kDirect, d.src, d.weight, d.d_dst, d.strides, d.gaps, d.padding, d.padding}, d.attributes, engine,
        forward);
    return described<Backward>(pd, pd.weights_desc());
  }
  using Backward = dnnl::convolution_backward_weights;
  const Backward::desc op(kDirect, d.src, d.d_weight, d.bias, d.d_dst, d.strides, d.gaps, d.padding,
                          d.padding);
  const Backward::primitive_desc pd(op, d.attributes, engine, forward);
  return described<Backward>(pd, pd.diff_weights_desc());
}

Described describe_dense(Direction direction, const Descriptors& d, const dnnl::engine& engine) {
  using Forward = dnnl::inner_product_forward;
  const auto& weight = direction == Direction::forward ? d.weight : d.any_weight;
  const Forward::primitive_desc forward({d.forward, d.src, weight, d.bias, d.dst}, d.attributes, engine);
  if (direction == Direction::forward) return described<Forward>(forward, forward.weights_desc());
  if (direction == Direction::backward_data) {
    using Backward = dnnl::inner_product_backward_data;
    const Backward::primitive_desc pd({d.src, d.weight, d.d_dst}, d.attributes, engine, forward);
    return described<Backward>(pd, pd.weights_desc());
  }
  using Backward = dnnl::inner_product_backward_weights;
  const Backward::primitive_desc pd({d.src, d.d_weight, d.bias, d.d_dst}, d.attributes, engine, forward);
  return described<Backward>(pd, pd.diff_weights_desc());
}

/// Taps of a convolution that read only padding for every output, so that their products and their gradient
/// are 0.
std::vector<int> idle_taps(const ConvShape& s) {
  std::vector<int> taps;
  if (s.is_dense) return taps;
  const auto& [kernel, stride, padding, dilation, ceil] = s.window();
  const auto is_idle = [](int first, int step, int pixels, int outputs) {
    for (int output = 0; output < outputs; ++output)
      if (const int at = output * step + first; at >= 0 && at < pixels) return false;
    return true;
  };
  for (int row = 0; row < kernel.height; ++row)
    for (int column = 0; column < kernel.width; ++column)
      if (is_idle(row * dilation.height - padding.height, stride.height, s.src.height, s.dst.height) ||
          is_idle(column * dilation.width - padding.width, stride.width, s.src.width, s.dst.width))
        taps.push_back(row * kernel.width + column);
  return taps;
}

/// A primitive of one direction, and the reorder between its weights (or their gradient) and flat ones.
class OnednnPrimitive {
 protected:
  OnednnPrimitive(const ConvShape& shape, Direction direction, const OnednnPrimitive* like)
      : shape_(shape), direction_(direction) {
    checked(shape_, "a kernel", [&] {
      desc_ = descriptors(shape_);
      const bool is_gradient = direction_ == Direction::backward_weights;
      if (like != nullptr) (is_gradient ? desc_.d_weight : desc_.weight) = like->made_.weight;
      if (shape_.is_dense) generate_matrix_product();
      made_ = shape_.is_dense ? describe_dense(direction_, desc_, engine_)
                              : describe_conv(direction_, desc_, engine_);
      const memory flat = at(desc_.flat_weight, nullptr), packed = at(made_.weight, nullptr);
      reorder_ = is_gradient ? dnnl::reorder(packed, flat) : dnnl::reorder(flat, packed);
    });
  }

  [[nodiscard]] std::int64_t weight_bytes() const {
    return static_cast<std::int64_t>(made_.weight.get_size());
  }
  [[nodiscard]] std::int64_t scratch_bytes() const {
    return static_cast<std::int64_t>(made_.scratchpad.get_size());
  }
  [[nodiscard]] memory at(const memory::desc& description, const void* address) const {
    return {description, engine_, const_cast<void*>(address)};
  }
  void reorder(const char* what, memory src, memory dst) const {
    checked(shape_, what, [&] {
      dnnl::stream stream(engine_);
      reorder_.execute(stream, src, dst);
      stream.wait();
    });
  }
  /// `add` adds the direction's own operands to the scratchpad.
  template <typename Add>
  void execute(void* scratchpad, const Add& add) const {
    checked(shape_, name_of(direction_), [&] {
      Arguments arguments{{DNNL_ARG_SCRATCHPAD, at(made_.scratchpad, scratchpad)}};
      add(arguments);
      dnnl::stream stream(engine_);
      made_.primitive.execute(stream, arguments);
      stream.wait();
    });
  }

  const ConvShape shape_;
  const Direction direction_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  Descriptors desc_;
  Described made_;
  dnnl::reorder reorder_;
};

class OnednnReader final : public WeightReader, private OnednnPrimitive {
 public:
  OnednnReader(const ConvShape& shape, Direction direction, const OnednnReader* like)
      : OnednnPrimitive(shape, direction, like) {}

  [[nodiscard]] std::int64_t packed_bytes() const override { return weight_bytes(); }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override { return scratch_bytes(); }
  [[nodiscard]] std::string name() const override { return made_.name; }

  void pack(const float* weights, void* packed) const override {
    reorder("a reorder of weights", at(desc_.flat_weight, weights), at(made_.weight, packed));
  }

  void run(const Operands& o, int) const override {
    execute(o.scratchpad, [&](Arguments& arguments) {
      arguments.emplace(DNNL_ARG_WEIGHTS, at(made_.weight, o.packed));
      if (direction_ == Direction::forward) {
        arguments.emplace(DNNL_ARG_SRC, at(desc_.src, o.src));
        arguments.emplace(DNNL_ARG_DST, at(desc_.dst, o.dst));
        if (shape_.bias) arguments.emplace(DNNL_ARG_BIAS, at(desc_.bias, o.bias));
      } else {
        arguments.emplace(DNNL_ARG_DIFF_DST, at(desc_.d_dst, o.d_dst));
        arguments.emplace(DNNL_ARG_DIFF_SRC, at(desc_.src, o.d_src));
      }
    });
  }
};

class OnednnWgrad final : public WgradKernel, private OnednnPrimitive {
 public:
  OnednnWgrad(const ConvShape& shape, const OnednnWgrad* like)
      : OnednnPrimitive(shape, Direction::backward_weights, like), idle_taps_(idle_taps(shape)) {}

  [[nodiscard]] std::int64_t packed_bytes() const override { return weight_bytes(); }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override { return scratch_bytes(); }
  [[nodiscard]] std::string name() const override { return made_.name; }

  void unpack(base::ThreadPool&, const float* packed, float* d_weights) const override {
    reorder("a reorder of gradients", at(made_.weight, packed), at(desc_.flat_weight, d_weights));
    // For bf16 oneDNN (2.6.3) splits a row into one for each remainder modulo the stride. If a row is
    // narrower than the stride, some of these have no pixel, and oneDNN then multiplies undefined values of
    // its scratchpad.
    const std::int64_t taps = shape_.window().kernel.product();
    for (const int tap : idle_taps_)
      for (std::int64_t at = tap; at < shape_.weights(); at += taps) d_weights[at] = 0;
  }

  void run(const Operands& o, int) const override {
    execute(o.scratchpad, [&](Arguments& arguments) {
      arguments.emplace(DNNL_ARG_SRC, at(desc_.src, o.src));
      arguments.emplace(DNNL_ARG_DIFF_DST, at(desc_.d_dst, o.d_dst));
      arguments.emplace(DNNL_ARG_DIFF_WEIGHTS, at(made_.weight, o.d_weight));
      if (shape_.bias) arguments.emplace(DNNL_ARG_DIFF_BIAS, at(desc_.bias, o.d_bias));
    });
  }

 private:
  const std::vector<int> idle_taps_;
};

}  // namespace

void generate_matrix_product() {
  [[maybe_unused]] static const bool is_generated = [] {
    constexpr dnnl_dim_t kSize = 32;
    std::vector<float> a(kSize * kSize), b(a), c(a);
    return dnnl_sgemm('N', 'N', kSize, kSize, kSize, 1, a.data(), kSize, b.data(), kSize, 0, c.data(),
                      kSize) == dnnl_success;
  }();
}

std::unique_ptr<WeightReader> make_onednn_reader(const ConvShape& shape, Direction direction,
                                                 const WeightReader* like) {
  return std::make_unique<OnednnReader>(shape, direction, dynamic_cast<const OnednnReader*>(like));
}

Bf16Products bf16_products_here() {
  const unsigned isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());  // a set of bits
  const auto includes = [&](dnnl::cpu_isa wanted) {
    return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  if (includes(dnnl::cpu_isa::avx512_core_bf16)) return Bf16Products::in_hardware;
  return includes(dnnl::cpu_isa::avx512_core) ? Bf16Products::in_software : Bf16Products::none;
}

std::optional<std::string> refusal_of_onednn(const ConvShape& s) {
  if (s.type == Storage::f32 || bf16_products_here() != Bf16Products::none) return std::nullopt;
  return "multiplies bf16 from AVX-512 on";
}

ConvAlgorithm onednn_algorithm() {
  return {.name = "onednn",
          .refusal = [](const ConvProblem& problem) { return refusal_of_onednn(problem.shape); },
          .prefers = [](const ConvProblem&) { return true; },
          .preference = [](const ConvProblem&) { return "comes last"; },
          .chunk = samples_of_chunk,
          .make_reader = make_onednn_reader,
          .make_wgrad =
              [](const ConvShape& chunk, const WgradKernel* like) {
                return std::make_unique<OnednnWgrad>(chunk, dynamic_cast<const OnednnWgrad*>(like));
              }};
}

}  // namespace paceline::engine::cpu
