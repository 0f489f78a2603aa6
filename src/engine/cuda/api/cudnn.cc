#include "engine/cuda/api/cudnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/error.h"

namespace paceline::engine::cuda {

void forbid_tf32() { ::setenv("NVIDIA_TF32_OVERRIDE", "0", 1); }

CudnnApi cudnn_api(const base::SharedLibrary& library) {
  CudnnApi api;
  const auto find = [&](auto*& function, const char* name) {
    if (!library.find(name, function))
      base::fail(base::ErrorKind::device, "cuDNN: {} has no function {}; install another cuDNN 9",
                 library.path, name);
  };
#define PACELINE_FIND(Result, name, parameters) find(api.name, #name);
  PACELINE_CUDNN_FUNCTIONS(PACELINE_FIND)
#undef PACELINE_FIND
  return api;
}

std::string cudnn_version(const CudnnApi& api) {
  const std::size_t version = api.cudnnGetVersion();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string error_text(const CudnnApi& api, cudnn::Status status) {
  const char* const name = api.cudnnGetErrorString(status);
  std::string text = fmt::format("{} ({})", name == nullptr ? "unknown status" : name, status);
  std::array<char, 1024> details{};
  api.cudnnGetLastErrorString(details.data(), details.size() - 1);
  const std::string_view first(details.data());
  std::string line(first.substr(0, std::min(first.find('\n'), first.size())));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  if (!line.empty()) text += ": " + line;
  return text;
}

void check(const CudnnApi& api, cudnn::Status status, std::string_view call, std::string_view problem) {
  if (status != cudnn::kSuccess)
    base::fail(base::ErrorKind::device, "cuDNN: {} failed for {}: {}", call, problem,
               error_text(api, status));
}

}  // namespace paceline::engine::cuda
