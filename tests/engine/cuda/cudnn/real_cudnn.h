#pragma once

/// The cuDNN of this machine, for tests that need no GPU.

#include <optional>
#include <string>

#include "base/error.h"
#include "engine/cuda/api/cudnn.h"
#include "engine/cuda/runtime/load.h"

namespace paceline::engine::cuda::cudnn::test {

/// Nothing, and `reason` says what is missing, where there is none.
inline std::optional<CudnnApi> real_cudnn(std::string& reason) {
  try {
    return cudnn_api(find_cudnn(base::library_folders(base::process_environment()), 0));
  } catch (const base::Error& error) {
    reason = error.what();
    return std::nullopt;
  }
}

}  // namespace paceline::engine::cuda::cudnn::test
