// Steps of one value in, one value out: the input's conversion, ReLU, GELU, and the sum of two.

#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"
#include "graph/ops/rules.h"

namespace paceline::engine::cpu {
namespace {

/// Calls work(part) over the elements of a value, on all threads.
template <typename Work>
void over_elements(const Run& run, const Value& value, const Work& work) {
  parallel_ranges(run.pool, run.options.batch * value.shape.elements(), kRangeElements,
                  [&](int, Range part) { work(part); });
}

std::byte* offset(void* first, std::int64_t element, Storage storage) {
  return static_cast<std::byte*>(first) + element * bytes_of(storage);
}

/// Copies the images (the caller may reuse their memory before backward) into storage.
class InputStep final : public Step {
 public:
  InputStep(const Site& site, const Value& dst) : name_(site.op().name), dst_(dst) {}
  void forward(Run& run) override {
    void* dst = run.memory.at(dst_.buffer);
    const std::int64_t given = run.samples * dst_.shape.elements();
    over_elements(run, dst_, [&](Range part) {
      const TypedKernels& typed = run.typed(dst_.storage);
      const std::int64_t middle = std::clamp(given, part.begin, part.end);
      typed.from_float(run.input.images.data() + part.begin, offset(dst, part.begin, dst_.storage), false,
                       middle - part.begin);
      // Behind a short evaluation: zeros, so that nothing undefined is computed on.
      const std::int64_t size = bytes_of(dst_.storage);
      std::fill_n(offset(dst, middle, dst_.storage), (part.end - middle) * size, std::byte{0});
    });
  }
  void backward(Run&) override {}
  void describe(const Run&, std::vector<KernelChoice>&) const override {}

 private:
  const std::string name_;
  const Value& dst_;
};

/// An op that takes each element by itself: ReLU, GELU.
class MapStep final : public Step {
 public:
  MapStep(const Site& site, const Value& src, const Value& dst, BufferId d_src, const MapKernels& kernels)
      : name_(site.op().name),
        src_(src),
        dst_(dst),
        kept_(graph::rule_of(site.op().op).saved.dst ? dst : src),
        d_src_(d_src),
        kernels_(kernels) {}
  void forward(Run& run) override {
    void* src = run.memory.at(src_.buffer);
    void* dst = run.memory.at(dst_.buffer);
    const Storage s = dst_.storage;
    const auto kernel = run.typed(s).*kernels_.forward;
    over_elements(run, dst_, [&](Range part) {
      kernel(offset(src, part.begin, s), offset(dst, part.begin, s), part.size());
    });
  }
  void backward(Run& run) override {
    if (!d_src_) return;
    void* d_dst = merged_gradient(run, dst_);
    void* kept = run.memory.at(kept_.buffer);
    void* d_src = run.memory.at(d_src_);
    const Storage s = dst_.storage;
    const auto kernel = run.typed(s).*kernels_.backward;
    over_elements(run, dst_, [&](Range part) {
      kernel(offset(kept, part.begin, s), offset(d_dst, part.begin, s), offset(d_src, part.begin, s),
             part.size());
    });
  }
  void describe(const Run& run, std::vector<KernelChoice>& choices) const override {
    choices.push_back(own_kernel(run, name_));
  }

 private:
  const std::string name_;
  const Value& src_;
  const Value& dst_;
  const Value& kept_;  ///< one of these two
  const BufferId d_src_;
  const MapKernels kernels_;
};

class AddStep final : public Step {
 public:
  AddStep(const Site& site, const Value& left, const Value& right, const Value& dst, bool relu,
          BufferId d_left, BufferId d_right)
      : name_(site.op().name),
        left_(left),
        right_(right),
        dst_(dst),
        relu_(relu),
        d_left_(d_left),
        d_right_(d_right) {}
  void forward(Run& run) override {
    void* left = run.memory.at(left_.buffer);
    void* right = run.memory.at(right_.buffer);
    void* dst = run.memory.at(dst_.buffer);
    const Storage s = dst_.storage;
    over_elements(run, dst_, [&](Range part) {
      run.typed(s).add(offset(left, part.begin, s), offset(right, part.begin, s), offset(dst, part.begin, s),
                       relu_, part.size());
    });
  }
  void backward(Run& run) override {
    if (!d_left_ && !d_right_) return;
    void* d_dst = merged_gradient(run, dst_);
    const Storage s = dst_.gradient_storage;
    if (relu_) {
      void* dst = run.memory.at(dst_.buffer);
      over_elements(run, dst_, [&](Range part) {
        run.typed(s).relu_backward(offset(dst, part.begin, s), offset(d_dst, part.begin, s),
                                   offset(d_dst, part.begin, s), part.size());
      });
    }
    for (const BufferId d_src : {d_left_, d_right_}) {
      void* to = run.memory.at(d_src);
      if (to == nullptr || to == d_dst) continue;
      over_elements(run, dst_, [&](Range part) {
        std::copy_n(offset(d_dst, part.begin, s), part.size() * bytes_of(s), offset(to, part.begin, s));
      });
    }
  }
  void describe(const Run& run, std::vector<KernelChoice>& choices) const override {
    choices.push_back(own_kernel(run, name_ + (relu_ ? " + relu" : "")));
  }

 private:
  const std::string name_;
  const Value& left_;
  const Value& right_;
  const Value& dst_;
  const bool relu_;
  const BufferId d_left_, d_right_;
};

}  // namespace

std::unique_ptr<Step> make_input_step(const Site& site, const Value& dst) {
  return std::make_unique<InputStep>(site, dst);
}
std::unique_ptr<Step> make_map_step(const Site& site, const Value& src, const Value& dst, BufferId d_src,
                                    const MapKernels& kernels) {
  return std::make_unique<MapStep>(site, src, dst, d_src, kernels);
}
std::unique_ptr<Step> make_add_step(const Site& site, const Value& left, const Value& right, const Value& dst,
                                    bool relu, BufferId d_left, BufferId d_right) {
  return std::make_unique<AddStep>(site, left, right, dst, relu, d_left, d_right);
}

}  // namespace paceline::engine::cpu
