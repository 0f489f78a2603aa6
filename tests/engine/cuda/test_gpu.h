#pragma once

/// How tests that compute on a GPU treat a machine without one, and how they say where they have computed.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "engine/cuda/runtime/runtime.h"

namespace paceline::engine::cuda {

/// PACELINE_TEST_DEVICE=cuda: tests that need a GPU must not be skipped, a missing GPU is their failure.
inline bool gpu_is_required() {
  const char* device = std::getenv("PACELINE_TEST_DEVICE");
  return device != nullptr && std::string_view(device) == "cuda";
}

/// Prints "device: GPU 0 (NVIDIA H100 80GB HBM3)". tools/gpu_processes.py looks for this line: tests that
/// passed without it have not seen a GPU.
inline void print_device(const Runtime& gpu, int number = 0) {
  std::printf("device: GPU %d (%s)\n", number, gpu.facts().name.c_str());
  std::fflush(stdout);
}

}  // namespace paceline::engine::cuda
