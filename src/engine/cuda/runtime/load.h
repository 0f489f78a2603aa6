#pragma once

/// Loads CUDA at run time, when it is needed; the program itself does not link to it.
///
/// This project's kernels and the CUDA runtime are in paceline_cuda.so, beside the program. The user installs
/// cuDNN (base/shared_library.h says where it is searched).

#include <filesystem>

#include "base/shared_library.h"
#include "engine/cuda/api/cuda.h"

namespace paceline::engine::cuda {

inline constexpr base::Module kModule{.kind = base::ErrorKind::device,
                                      .library = "--device cuda",
                                      .file = "paceline_cuda.so",
                                      .entry = "paceline_cuda_api",
                                      .built_with = "the CUDA toolkit 12.8 or later",
                                      .remedy = "rebuild it: ./x build --all-gpus",
                                      .absent =
                                          "this program was built where no NVIDIA GPU is, or without "
                                          "the CUDA toolkit 12.8 or later; ./x build --all-gpus builds "
                                          "it where the toolkit is installed"};

/// Opens the module and returns its table of functions. The module stays open until the process ends.
///
/// Errors   Error(device), one sentence: the module is missing (and how to build it), or it belongs to
///          another build of this program
/// Threads  any
[[nodiscard]] const CudaApi& open_cuda();
/// The same for the module in `folder`.
[[nodiscard]] const CudaApi& open_cuda(const std::filesystem::path& folder);
/// Refuses a module of another build of this program. `module`: its path.
///
/// Errors   like open_cuda()
void check_module(const CudaApi& api, const std::filesystem::path& module);

/// The number of GPUs that this process may use, at least 1.
///
/// Errors   Error(device), one sentence: no driver, a driver that is too old, no GPU, CUDA_VISIBLE_DEVICES
///          hides all
[[nodiscard]] int visible_devices(const CudaApi& api, const base::EnvironmentLookup& environment);

/// Refuses a GPU that does not exist (`--device cuda:K`) or for which the kernels are not built. Returns its
/// compute capability: 90 for 9.0. Creates no CUDA context.
///
/// Errors   Error(device), one sentence; those of visible_devices()
int check_device(const CudaApi& api, int device, const base::EnvironmentLookup& environment);

/// Finds cuDNN, at least version 9.11, in the loader's default folders and `folders`. `driver`: the newest
/// CUDA that the driver supports, 13000 for 13.0; a cuDNN for a later CUDA does not start with it and is
/// passed over. 0: any cuDNN.
///
/// Errors   those of base::find_library()
[[nodiscard]] base::SharedLibrary find_cudnn(const std::vector<std::filesystem::path>& folders, int driver);

/// "13.0" for 13000.
[[nodiscard]] std::string cuda_version(int version);

}  // namespace paceline::engine::cuda
