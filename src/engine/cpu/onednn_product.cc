#include "engine/cpu/product.h"

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <unordered_map>

#include "base/error.h"

namespace paceline::engine::cpu {
namespace {

using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

/// Every call into oneDNN goes through here: its exceptions say a status and nothing of ours.
template <typename Call>
auto checked(const ProductShape& shape, const char* what, Call call) {
  try {
    return call();
  } catch (const dnnl::error& error) {
    base::fail(
        base::ErrorKind::device,
        "{}: oneDNN must offer {} for src [{},{},{}], dst [{},{},{}], kernel {}, stride {}, padding {}, "
        "{} samples, but answered \"{}\" ({}); try --precision fp32 or the reference engine",
        shape.is_dense ? "dense" : "conv2d", what, shape.src.channels, shape.src.height, shape.src.width,
        shape.dst.channels, shape.dst.height, shape.dst.width, shape.kernel, shape.stride, shape.padding,
        shape.samples, error.message, static_cast<int>(error.status));
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

/// The same numbers as PyTorch shapes them: a dense layer's weight is [features, C*H*W], which is the order
/// of [features, C, H, W].
memory::dims weight_dims(const ProductShape& s) {
  if (s.is_dense) return {s.dst.channels, s.src.channels, s.src.height, s.src.width};
  return {s.dst.channels, s.src.channels, s.kernel, s.kernel};
}

struct Descriptors {
  memory::desc src, dst, d_dst, weight, d_weight, flat_weight, bias;
  memory::dims strides, padding;
  dnnl::primitive_attr attributes;
};

Descriptors descriptors(const ProductShape& s) {
  const auto any = memory::format_tag::any;
  Descriptors d;
  d.src = activation(s.samples, s.src, s.type);
  d.dst = activation(s.samples, s.dst, s.dst_type);
  d.d_dst = activation(s.samples, s.dst, s.type);
  if (s.is_dense) {
    const memory::dims rows = {s.samples, s.dst.channels};
    d.dst = {rows, type_of(s.dst_type), memory::format_tag::nc};
    d.d_dst = {rows, type_of(s.type), memory::format_tag::nc};
  }
  d.weight = {weight_dims(s), type_of(s.type), any};
  d.d_weight = {weight_dims(s), memory::data_type::f32, any};
  d.flat_weight = {weight_dims(s), memory::data_type::f32, memory::format_tag::oihw};
  if (s.bias) d.bias = {{s.dst.channels}, memory::data_type::f32, memory::format_tag::x};
  d.strides = {s.stride, s.stride};
  d.padding = {s.padding, s.padding};
  d.attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return d;
}

/// A primitive descriptor of either op, seen the same way.
struct Described {
  dnnl::primitive_desc_base description;
  std::function<dnnl::primitive()> make;
  memory::desc weight;
};

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

template <typename Primitive, typename Description>
Described described(const Description& description, const memory::desc& weight) {
  return {description, [description] { return Primitive(description); }, weight};
}

struct Parts {
  ProductShape shape;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  Descriptors desc;
  std::optional<Described> forward, d_src, d_weight;
  bool shares_packed = false;

  // After bind.
  dnnl::primitive run_forward, run_d_src, run_d_weight;
  Arguments forward_arguments, d_src_arguments, d_weight_arguments;
  memory packed_forward, packed_backward;
  dnnl::reorder pack_forward, pack_backward, unpack;

  void describe_conv(const ProductParts& wanted);
  void describe_dense(const ProductParts& wanted);
  [[nodiscard]] memory at(const memory::desc& description, const void* address) const {
    return {description, engine, const_cast<void*>(address)};
  }
  [[nodiscard]] memory flat(const float* weights) const { return at(desc.flat_weight, weights); }
};

void Parts::describe_conv(const ProductParts& wanted) {
  using dnnl::prop_kind;
  const Descriptors& d = desc;
  const auto kind = wanted.d_weight ? prop_kind::forward_training : prop_kind::forward_inference;
  const dnnl::convolution_forward::desc forward_op =
      shape.bias ? dnnl::convolution_forward::desc(kind, kDirect, d.src, d.weight, d.bias, d.dst, d.strides,
                                                   d.padding, d.padding)
                 : dnnl::convolution_forward::desc(kind, kDirect, d.src, d.weight, d.dst, d.strides,
                                                   d.padding, d.padding);
  const dnnl::convolution_forward::primitive_desc forward_pd(forward_op, d.attributes, engine);
  forward = described<dnnl::convolution_forward>(forward_pd, forward_pd.weights_desc());
  if (wanted.d_src) {
    const dnnl::convolution_backward_data::primitive_desc pd(
        {kDirect, d.src, d.weight, d.d_dst, d.strides, d.padding, d.padding}, d.attributes, engine,
        forward_pd);
    d_src = described<dnnl::convolution_backward_data>(pd, pd.weights_desc());
  }
  if (wanted.d_weight) {
    const dnnl::convolution_backward_weights::desc op =
        shape.bias ? dnnl::convolution_backward_weights::desc(kDirect, d.src, d.d_weight, d.bias, d.d_dst,
                                                              d.strides, d.padding, d.padding)
                   : dnnl::convolution_backward_weights::desc(kDirect, d.src, d.d_weight, d.d_dst, d.strides,
                                                              d.padding, d.padding);
    const dnnl::convolution_backward_weights::primitive_desc pd(op, d.attributes, engine, forward_pd);
    d_weight = described<dnnl::convolution_backward_weights>(pd, pd.diff_weights_desc());
  }
}

void Parts::describe_dense(const ProductParts& wanted) {
  using dnnl::prop_kind;
  const Descriptors& d = desc;
  const auto kind = wanted.d_weight ? prop_kind::forward_training : prop_kind::forward_inference;
  const dnnl::inner_product_forward::desc forward_op =
      shape.bias ? dnnl::inner_product_forward::desc(kind, d.src, d.weight, d.bias, d.dst)
                 : dnnl::inner_product_forward::desc(kind, d.src, d.weight, d.dst);
  const dnnl::inner_product_forward::primitive_desc forward_pd(forward_op, d.attributes, engine);
  forward = described<dnnl::inner_product_forward>(forward_pd, forward_pd.weights_desc());
  if (wanted.d_src) {
    const dnnl::inner_product_backward_data::primitive_desc pd({d.src, d.weight, d.d_dst}, d.attributes,
                                                               engine, forward_pd);
    d_src = described<dnnl::inner_product_backward_data>(pd, pd.weights_desc());
  }
  if (wanted.d_weight) {
    const dnnl::inner_product_backward_weights::desc op =
        shape.bias ? dnnl::inner_product_backward_weights::desc(d.src, d.d_weight, d.bias, d.d_dst)
                   : dnnl::inner_product_backward_weights::desc(d.src, d.d_weight, d.d_dst);
    const dnnl::inner_product_backward_weights::primitive_desc pd(op, d.attributes, engine, forward_pd);
    d_weight = described<dnnl::inner_product_backward_weights>(pd, pd.diff_weights_desc());
  }
}

std::int64_t size_of(const memory::desc& description) {
  return static_cast<std::int64_t>(description.get_size());
}
memory::desc scratchpad_of(const Described& part) {
  return part.description.query_md(dnnl::query::scratchpad_md);
}

std::string name_of(const std::optional<Described>& part) {
  if (!part) return "none";
  const char* name = nullptr;
  dnnl_primitive_desc_query(part->description.get(), dnnl_query_impl_info_str, 0, &name);
  return std::string("onednn ") + (name != nullptr ? name : "unnamed");
}

class OnednnProduct final : public Product {
 public:
  OnednnProduct(const ProductShape& shape, const ProductParts& wanted) {
    p_.shape = shape;
    checked(shape, "a kernel", [&] {
      p_.desc = descriptors(shape);
      shape.is_dense ? p_.describe_dense(wanted) : p_.describe_conv(wanted);
    });
    p_.shares_packed = !p_.d_src || p_.d_src->weight == p_.forward->weight;
  }

  [[nodiscard]] std::int64_t packed_forward_bytes() const override { return size_of(p_.forward->weight); }
  [[nodiscard]] std::int64_t packed_backward_bytes() const override {
    return p_.shares_packed ? 0 : size_of(p_.d_src->weight);
  }
  [[nodiscard]] std::int64_t packed_gradient_bytes() const override {
    return p_.d_weight ? size_of(p_.d_weight->weight) : 0;
  }
  [[nodiscard]] std::int64_t scratchpad_bytes() const override {
    std::int64_t bytes = 0;
    for (const auto* part : {&p_.forward, &p_.d_src, &p_.d_weight})
      if (*part) bytes = std::max(bytes, size_of(scratchpad_of(**part)));
    return bytes;
  }

  void bind(const ProductMemory& m) override;

  void pack(const float* weights) override {
    checked(p_.shape, "a reorder of weights", [&] {
      memory flat = p_.flat(weights);
      p_.pack_forward.execute(p_.stream, flat, p_.packed_forward);
      if (p_.d_src && !p_.shares_packed) p_.pack_backward.execute(p_.stream, flat, p_.packed_backward);
      p_.stream.wait();
    });
  }
  void unpack_gradient(const float* packed, float* d_weights) override {
    checked(p_.shape, "a reorder of gradients", [&] {
      memory src = p_.at(p_.d_weight->weight, packed), dst = p_.flat(d_weights);
      p_.unpack.execute(p_.stream, src, dst);
      p_.stream.wait();
    });
  }

  void forward() override { run("forward", p_.run_forward, p_.forward_arguments); }
  void backward_d_src() override { run("backward data", p_.run_d_src, p_.d_src_arguments); }
  void backward_d_weight() override { run("backward weights", p_.run_d_weight, p_.d_weight_arguments); }

  [[nodiscard]] std::string forward_name() const override { return name_of(p_.forward); }
  [[nodiscard]] std::string d_src_name() const override { return name_of(p_.d_src); }
  [[nodiscard]] std::string d_weight_name() const override { return name_of(p_.d_weight); }

 private:
  void run(const char* what, const dnnl::primitive& primitive, const Arguments& arguments) {
    checked(p_.shape, what, [&] {
      primitive.execute(p_.stream, arguments);
      p_.stream.wait();
    });
  }
  Parts p_;
};

void OnednnProduct::bind(const ProductMemory& m) {
  checked(p_.shape, "a kernel", [&] {
    const memory src = p_.at(p_.desc.src, m.src);
    const memory d_dst = p_.at(p_.desc.d_dst, m.d_dst);
    const auto scratchpad = [&](const Described& part) { return p_.at(scratchpad_of(part), m.scratchpad); };
    p_.packed_forward = p_.at(p_.forward->weight, m.packed_forward);
    p_.run_forward = p_.forward->make();
    p_.forward_arguments = {{DNNL_ARG_SRC, src},
                            {DNNL_ARG_WEIGHTS, p_.packed_forward},
                            {DNNL_ARG_DST, p_.at(p_.desc.dst, m.dst)},
                            {DNNL_ARG_SCRATCHPAD, scratchpad(*p_.forward)}};
    if (p_.shape.bias) p_.forward_arguments.emplace(DNNL_ARG_BIAS, p_.at(p_.desc.bias, m.bias));
    p_.pack_forward = dnnl::reorder(p_.flat(nullptr), p_.packed_forward);
    if (p_.d_src) {
      p_.packed_backward = p_.shares_packed ? p_.packed_forward : p_.at(p_.d_src->weight, m.packed_backward);
      if (!p_.shares_packed) p_.pack_backward = dnnl::reorder(p_.flat(nullptr), p_.packed_backward);
      p_.run_d_src = p_.d_src->make();
      p_.d_src_arguments = {{DNNL_ARG_DIFF_DST, d_dst},
                            {DNNL_ARG_WEIGHTS, p_.packed_backward},
                            {DNNL_ARG_DIFF_SRC, p_.at(p_.desc.src, m.d_src)},
                            {DNNL_ARG_SCRATCHPAD, scratchpad(*p_.d_src)}};
    }
    if (p_.d_weight) {
      const memory d_weight = p_.at(p_.d_weight->weight, m.d_weight);
      p_.run_d_weight = p_.d_weight->make();
      p_.d_weight_arguments = {{DNNL_ARG_SRC, src},
                               {DNNL_ARG_DIFF_DST, d_dst},
                               {DNNL_ARG_DIFF_WEIGHTS, d_weight},
                               {DNNL_ARG_SCRATCHPAD, scratchpad(*p_.d_weight)}};
      if (p_.shape.bias) p_.d_weight_arguments.emplace(DNNL_ARG_DIFF_BIAS, p_.at(p_.desc.bias, m.d_bias));
      p_.unpack = dnnl::reorder(d_weight, p_.flat(nullptr));
    }
  });
}

}  // namespace

std::unique_ptr<Product> make_onednn_product(const ProductShape& shape, const ProductParts& parts) {
  return std::make_unique<OnednnProduct>(shape, parts);
}

Bf16Products bf16_products_here() {
  const unsigned isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());  // a set of bits
  const auto includes = [&](dnnl::cpu_isa wanted) {
    return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  if (includes(dnnl::cpu_isa::avx512_core_bf16)) return Bf16Products::in_hardware;
  return includes(dnnl::cpu_isa::avx512_core) ? Bf16Products::in_software : Bf16Products::none;
}

}  // namespace paceline::engine::cpu
