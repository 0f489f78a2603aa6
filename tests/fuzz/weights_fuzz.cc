/// Any bytes as a file of trained weights, given to a small model: a file of torch.save() or of safetensors
/// as it is, or only the pickle of the former, since few changes of a zip archive keep its checksums.

#include <archive.h>
#include <archive_entry.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "graph/layout.h"
#include "graph/zoo.h"
#include "input.h"
#include "train/checkpoint/given_weights.h"
#include "train/checkpoint/torch_file.h"

namespace {

paceline::graph::Graph small_model() {
  paceline::graph::Builder model("small");
  const int value = model.batch_norm(model.conv2d(model.input({1, 3, 3}), "c", {.channels = 2}), "b");
  model.loss(model.dense(value, "f", {.features = 3}), 0);
  return model.finish();
}

/// The pickle beside a part of zeros and one of bytes.
std::size_t zipped(const std::uint8_t* pickle, std::size_t bytes, std::vector<std::uint8_t>& zip) {
  static const std::vector<std::uint8_t> zeros(256), numbers(64, 0x3c);
  zip.resize(bytes + 4096);
  std::size_t used = 0;
  archive* const handle = archive_write_new();
  archive_write_set_format_zip(handle);
  archive_write_set_format_option(handle, "zip", "compression", "store");
  archive_write_open_memory(handle, zip.data(), zip.size(), &used);
  const auto put = [&](const char* name, const std::uint8_t* data, std::size_t size) {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_size(entry, static_cast<std::int64_t>(size));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_write_header(handle, entry);
    archive_write_data(handle, data, size);
    archive_entry_free(entry);
  };
  put("a/data.pkl", pickle, bytes);
  put("a/data/0", zeros.data(), zeros.size());
  put("a/data/1", numbers.data(), numbers.size());
  archive_write_free(handle);
  return used;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  static const fuzz::Directory directory;
  static const graph::Graph graph = small_model();
  static const graph::Layout layout = graph::flat_layout(graph);
  std::vector<std::uint8_t> zip;
  const bool is_whole = bytes > 8 && (data[0] == 'P' || data[8] == '{');
  if (!is_whole) {
    bytes = zipped(data, bytes, zip);
    data = zip.data();
  }
  const auto path = directory.write("a.pth", data, bytes);
  for (const bool by_order : {false, true}) try {
      std::vector<float> weights(static_cast<std::size_t>(layout.elements));
      (void)train::read_given_weights({path, by_order}, graph, layout, weights);
      for (const float weight : weights)
        if (!std::isfinite(weight)) std::abort();
    } catch (const base::Error&) {
    }
  try {
    if (!train::is_torch_file(path)) return 0;
    train::TorchFile file(path);
    std::vector<const train::Tensor*> small;
    for (const auto& tensor : file.tensors()) {
      double elements = 1;
      for (const auto extent : tensor.shape) elements *= static_cast<double>(extent);
      if (elements < 1000 && small.size() < 100) small.push_back(&tensor);
    }
    file.load(small);
    unsigned sum = 0;
    for (const auto* tensor : small)
      for (const auto byte : tensor->bytes) sum += static_cast<unsigned>(byte);
    if (sum == std::numeric_limits<unsigned>::max()) std::abort();
  } catch (const base::Error&) {
  }
  return 0;
}
