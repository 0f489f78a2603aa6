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

}  // namespace

Bf16Products bf16_products_here() {
  const unsigned isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());  // a set of bits
  const auto includes = [&](dnnl::cpu_isa wanted) {
    return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  if (includes(dnnl::cpu_isa::avx512_core_bf16)) return Bf16Products::in_hardware;
  return includes(dnnl::cpu_isa::avx512_core) ? Bf16Products::in_software : Bf16Products::none;
}

struct Product::Parts {
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

void Product::Parts::describe_conv(const ProductParts& wanted) {
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

void Product::Parts::describe_dense(const ProductParts& wanted) {
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

Product::Product(const ProductShape& shape, const ProductParts& wanted) : parts_(std::make_unique<Parts>()) {
  parts_->shape = shape;
  checked(shape, "a kernel", [&] {
    parts_->desc = descriptors(shape);
    shape.is_dense ? parts_->describe_dense(wanted) : parts_->describe_conv(wanted);
  });
  parts_->shares_packed = !parts_->d_src || parts_->d_src->weight == parts_->forward->weight;
}

Product::~Product() = default;
Product::Product(Product&&) noexcept = default;

namespace {
std::int64_t size_of(const memory::desc& description) {
  return static_cast<std::int64_t>(description.get_size());
}
memory::desc scratchpad_of(const Described& part) {
  return part.description.query_md(dnnl::query::scratchpad_md);
}
}  // namespace

std::int64_t Product::packed_forward_bytes() const { return size_of(parts_->forward->weight); }
std::int64_t Product::packed_backward_bytes() const {
  return parts_->shares_packed ? 0 : size_of(parts_->d_src->weight);
}
std::int64_t Product::packed_gradient_bytes() const {
  return parts_->d_weight ? size_of(parts_->d_weight->weight) : 0;
}

std::int64_t Product::scratchpad_bytes() const {
  std::int64_t bytes = 0;
  for (const auto* part : {&parts_->forward, &parts_->d_src, &parts_->d_weight})
    if (*part) bytes = std::max(bytes, size_of(scratchpad_of(**part)));
  return bytes;
}

void Product::bind(const ProductMemory& m) {
  Parts& p = *parts_;
  checked(p.shape, "a kernel", [&] {
    const memory src = p.at(p.desc.src, m.src);
    const memory d_dst = p.at(p.desc.d_dst, m.d_dst);
    const auto scratchpad = [&](const Described& part) { return p.at(scratchpad_of(part), m.scratchpad); };
    p.packed_forward = p.at(p.forward->weight, m.packed_forward);
    p.run_forward = p.forward->make();
    p.forward_arguments = {{DNNL_ARG_SRC, src},
                           {DNNL_ARG_WEIGHTS, p.packed_forward},
                           {DNNL_ARG_DST, p.at(p.desc.dst, m.dst)},
                           {DNNL_ARG_SCRATCHPAD, scratchpad(*p.forward)}};
    if (p.shape.bias) p.forward_arguments.emplace(DNNL_ARG_BIAS, p.at(p.desc.bias, m.bias));
    p.pack_forward = dnnl::reorder(p.flat(nullptr), p.packed_forward);
    if (p.d_src) {
      p.packed_backward = p.shares_packed ? p.packed_forward : p.at(p.d_src->weight, m.packed_backward);
      if (!p.shares_packed) p.pack_backward = dnnl::reorder(p.flat(nullptr), p.packed_backward);
      p.run_d_src = p.d_src->make();
      p.d_src_arguments = {{DNNL_ARG_DIFF_DST, d_dst},
                           {DNNL_ARG_WEIGHTS, p.packed_backward},
                           {DNNL_ARG_DIFF_SRC, p.at(p.desc.src, m.d_src)},
                           {DNNL_ARG_SCRATCHPAD, scratchpad(*p.d_src)}};
    }
    if (p.d_weight) {
      const memory d_weight = p.at(p.d_weight->weight, m.d_weight);
      p.run_d_weight = p.d_weight->make();
      p.d_weight_arguments = {{DNNL_ARG_SRC, src},
                              {DNNL_ARG_DIFF_DST, d_dst},
                              {DNNL_ARG_DIFF_WEIGHTS, d_weight},
                              {DNNL_ARG_SCRATCHPAD, scratchpad(*p.d_weight)}};
      if (p.shape.bias) p.d_weight_arguments.emplace(DNNL_ARG_DIFF_BIAS, p.at(p.desc.bias, m.d_bias));
      p.unpack = dnnl::reorder(d_weight, p.flat(nullptr));
    }
  });
}

void Product::pack(const float* weights) {
  Parts& p = *parts_;
  checked(p.shape, "a reorder of weights", [&] {
    memory flat = p.flat(weights);
    p.pack_forward.execute(p.stream, flat, p.packed_forward);
    if (p.d_src && !p.shares_packed) p.pack_backward.execute(p.stream, flat, p.packed_backward);
    p.stream.wait();
  });
}

void Product::unpack_gradient(const float* packed, float* d_weights) {
  Parts& p = *parts_;
  checked(p.shape, "a reorder of gradients", [&] {
    memory src = p.at(p.d_weight->weight, packed), dst = p.flat(d_weights);
    p.unpack.execute(p.stream, src, dst);
    p.stream.wait();
  });
}

void Product::forward() {
  checked(parts_->shape, "forward", [&] {
    parts_->run_forward.execute(parts_->stream, parts_->forward_arguments);
    parts_->stream.wait();
  });
}
void Product::backward_d_src() {
  checked(parts_->shape, "backward data", [&] {
    parts_->run_d_src.execute(parts_->stream, parts_->d_src_arguments);
    parts_->stream.wait();
  });
}
void Product::backward_d_weight() {
  checked(parts_->shape, "backward weights", [&] {
    parts_->run_d_weight.execute(parts_->stream, parts_->d_weight_arguments);
    parts_->stream.wait();
  });
}

namespace {
std::string name_of(const std::optional<Described>& part) {
  if (!part) return "none";
  const char* name = nullptr;
  dnnl_primitive_desc_query(part->description.get(), dnnl_query_impl_info_str, 0, &name);
  return std::string("onednn ") + (name != nullptr ? name : "unnamed");
}
}  // namespace

std::string Product::forward_name() const { return name_of(parts_->forward); }
std::string Product::d_src_name() const { return name_of(parts_->d_src); }
std::string Product::d_weight_name() const { return name_of(parts_->d_weight); }

}  // namespace paceline::engine::cpu
