/// What the program asks a cuDNN before it takes it.

#include <cstddef>

extern "C" std::size_t cudnnGetVersion() { return 91900; }
extern "C" std::size_t cudnnGetCudartVersion() { return PACELINE_CUDA_OF_CUDNN; }
