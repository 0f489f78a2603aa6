#pragma once

/// Files of CIFAR-10's python version, byte for byte as Python 2's cPickle wrote the published ones.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "files.h"

namespace paceline::data {

/// Writes the operations of a pickle one after the other, and remembers each value under the next number, as
/// cPickle does.
class PickleWriter {
 public:
  PickleWriter() : bytes_{0x80, 2} {}
  PickleWriter& op(std::string_view bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  PickleWriter& remember() {
    if (memo_ < 256) return op("q").number(memo_++, 1);
    return op("r").number(memo_++, 4);
  }
  PickleWriter& text(std::string_view text) {
    if (text.size() < 256)
      op("U").number(text.size(), 1);
    else
      op("T").number(text.size(), 4);
    return op(text).remember();
  }
  PickleWriter& integer(std::int64_t value) {
    if (value >= 0 && value < 256) return op("K").number(static_cast<std::uint64_t>(value), 1);
    if (value >= 0 && value < 65536) return op("M").number(static_cast<std::uint64_t>(value), 2);
    return op("J").number(static_cast<std::uint64_t>(value) & 0xffffffff, 4);
  }
  PickleWriter& name(std::string_view module, std::string_view name) {
    return op("c").op(module).op("\n").op(name).op("\n").remember();
  }
  PickleWriter& number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    return *this;
  }
  [[nodiscard]] Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
  std::uint64_t memo_ = 1;
};

struct CifarPickle {
  std::vector<int> labels;
  std::string pixels;  ///< [labels.size()][3072]
  std::string type = "u1";
  std::int64_t columns = 3072;
  std::string module = "numpy.core.multiarray";
  std::string key = "labels";           ///< in CIFAR-100 "fine_labels"
  std::vector<int> coarse_labels = {};  ///< of CIFAR-100, behind the fine ones
};

/// The keys of a published batch, in its order.
inline Bytes cifar_pickle(const CifarPickle& batch) {
  PickleWriter pickle;
  const auto rows = static_cast<std::int64_t>(batch.labels.size());
  pickle.op("}").remember().op("(").text("batch_label").text("training batch 1 of 5");
  const auto add_list = [&](const std::string& key, const std::vector<int>& labels) {
    pickle.text(key).op("]").remember().op("(");
    for (const int label : labels) pickle.integer(label);
    pickle.op("e");
  };
  add_list(batch.key, batch.labels);
  if (!batch.coarse_labels.empty()) add_list("coarse_labels", batch.coarse_labels);
  pickle.text("data").name(batch.module, "_reconstruct").name("numpy", "ndarray");
  pickle.integer(0).op("\x85").remember().text("b").op("\x87").remember().op("R").remember();
  pickle.op("(").integer(1).integer(rows).integer(batch.columns).op("\x86").remember();
  pickle.name("numpy", "dtype")
      .text(batch.type)
      .integer(0)
      .integer(1)
      .op("\x87")
      .remember()
      .op("R")
      .remember();
  pickle.op("(").integer(3).text("|").op("NNN").integer(-1).integer(-1).integer(0).op("t").remember().op("b");
  pickle.op("\x89").text(batch.pixels).op("t").remember().op("b");
  pickle.text("filenames").op("]").remember().op("(");
  for (std::size_t i = 0; i < batch.labels.size(); ++i) pickle.text("image_" + std::to_string(i) + ".png");
  return pickle.op("eu.").take();
}

}  // namespace paceline::data
