#pragma once

/// The part of cuDNN's C interface that the engine uses, declared without cuDNN's header: constants, opaque
/// types, and CudnnApi, a table of functions.
///
/// The values are those of cuDNN 9; tests/engine/cuda/cudnn/constants_test.cc compares them with cuDNN's
/// header, if it is installed. The comment beside a constant is its name in cuDNN, without the common prefix.
/// All calls go through the table, so that tests can make each of them fail.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/shared_library.h"

namespace paceline::engine::cuda {

namespace cudnn {

using Status = int;  ///< 0 is success; the thousands digit is the kind of error
using Handle = struct OpaqueHandle*;
using RawDescriptor = void*;

constexpr Status kSuccess = 0;
constexpr Status kHostAllocationFailed = 4003;
constexpr Status kDeviceAllocationFailed = 4004;
constexpr Status kExecutionFailed = 5000;  ///< to 5999
[[nodiscard]] constexpr bool lacks_memory(Status status) {
  return status == kHostAllocationFailed || status == kDeviceAllocationFailed;
}
[[nodiscard]] constexpr bool failed_to_execute(Status status) {
  return status / 1000 * 1000 == kExecutionFailed;
}

enum class DescriptorType : int {     // CUDNN_BACKEND_..._DESCRIPTOR
  convolution = 1,                    // CONVOLUTION
  engine = 2,                         // ENGINE
  engine_config = 3,                  // ENGINECFG
  heuristics = 4,                     // ENGINEHEUR
  execution_plan = 5,                 // EXECUTION_PLAN
  knob_choice = 7,                    // KNOB_CHOICE
  convolution_forward = 10,           // OPERATION_CONVOLUTION_FORWARD
  convolution_backward_weights = 11,  // OPERATION_CONVOLUTION_BACKWARD_FILTER
  convolution_backward_data = 12,     // OPERATION_CONVOLUTION_BACKWARD_DATA
  operation_graph = 15,               // OPERATIONGRAPH
  variant_pack = 16,                  // VARIANT_PACK
  tensor = 17,                        // TENSOR
  device_properties = 38,             // DEVICEPROP
};

enum class Attribute : int {             // CUDNN_ATTR_...
  convolution_compute_type = 100,        // CONVOLUTION_COMP_TYPE
  convolution_mode = 101,                // CONVOLUTION_CONV_MODE
  convolution_dilations = 102,           // CONVOLUTION_DILATIONS
  convolution_strides = 103,             // CONVOLUTION_FILTER_STRIDES
  convolution_post_paddings = 104,       // CONVOLUTION_POST_PADDINGS
  convolution_pre_paddings = 105,        // CONVOLUTION_PRE_PADDINGS
  convolution_spatial_dimensions = 106,  // CONVOLUTION_SPATIAL_DIMS
  heuristics_mode = 200,                 // ENGINEHEUR_MODE
  heuristics_operation_graph = 201,      // ENGINEHEUR_OPERATION_GRAPH
  heuristics_results = 202,              // ENGINEHEUR_RESULTS
  heuristics_device_properties = 204,    // ENGINEHEUR_DEVICEPROP
  engine_config_engine = 300,            // ENGINECFG_ENGINE
  engine_config_knob_choices = 302,      // ENGINECFG_KNOB_CHOICES
  plan_handle = 400,                     // EXECUTION_PLAN_HANDLE
  plan_engine_config = 401,              // EXECUTION_PLAN_ENGINE_CONFIG
  plan_workspace_size = 402,             // EXECUTION_PLAN_WORKSPACE_SIZE
  plan_device_properties = 407,          // EXECUTION_PLAN_DEVICEPROP
  knob_choice_type = 600,                // KNOB_CHOICE_KNOB_TYPE
  knob_choice_value = 601,               // KNOB_CHOICE_KNOB_VALUE
  forward_alpha = 700,                   // OPERATION_CONVOLUTION_FORWARD_ALPHA, and so on
  forward_beta = 701,
  forward_convolution = 702,
  forward_weight = 703,
  forward_src = 704,
  forward_dst = 705,
  backward_data_alpha = 706,  // OPERATION_CONVOLUTION_BWD_DATA_ALPHA, and so on
  backward_data_beta = 707,
  backward_data_convolution = 708,
  backward_data_weight = 709,
  backward_data_d_src = 710,
  backward_data_d_dst = 711,
  backward_weights_alpha = 712,  // OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, and so on
  backward_weights_beta = 713,
  backward_weights_convolution = 714,
  backward_weights_d_weight = 715,
  backward_weights_src = 716,
  backward_weights_d_dst = 717,
  graph_handle = 800,                  // OPERATIONGRAPH_HANDLE
  graph_operations = 801,              // OPERATIONGRAPH_OPS
  tensor_byte_alignment = 900,         // TENSOR_BYTE_ALIGNMENT
  tensor_data_type = 901,              // TENSOR_DATA_TYPE
  tensor_dimensions = 902,             // TENSOR_DIMENSIONS
  tensor_strides = 903,                // TENSOR_STRIDES
  tensor_unique_id = 906,              // TENSOR_UNIQUE_ID
  variant_pack_unique_ids = 1000,      // VARIANT_PACK_UNIQUE_IDS
  variant_pack_data_pointers = 1001,   // VARIANT_PACK_DATA_POINTERS
  variant_pack_workspace = 1003,       // VARIANT_PACK_WORKSPACE
  engine_global_index = 1301,          // ENGINE_GLOBAL_INDEX
  engine_numerical_notes = 1303,       // ENGINE_NUMERICAL_NOTE
  engine_behavior_notes = 1305,        // ENGINE_BEHAVIOR_NOTE
  device_properties_device_id = 2700,  // DEVICEPROP_DEVICE_ID
  device_properties_json = 2702,       // DEVICEPROP_JSON_REPRESENTATION
};

/// The type of an attribute's elements.
enum class AttributeType : int {  // CUDNN_TYPE_...
  handle = 0,                     // HANDLE
  data_type = 1,                  // DATA_TYPE
  integer64 = 3,                  // INT64
  real32 = 4,                     // FLOAT
  pointer = 6,                    // VOID_PTR
  convolution_mode = 7,           // CONVOLUTION_MODE
  heuristics_mode = 8,            // HEUR_MODE
  knob_type = 9,                  // KNOB_TYPE
  numerical_note = 11,            // NUMERICAL_NOTE
  descriptor = 15,                // BACKEND_DESCRIPTOR
  behavior_note = 19,             // BEHAVIOR_NOTE
  integer32 = 23,                 // INT32
  character = 24,                 // CHAR
};

enum class DataType : int { f32 = 0, f16 = 2, bf16 = 9 };    // CUDNN_DATA_FLOAT, _HALF, _BFLOAT16
enum class ConvolutionMode : int { cross_correlation = 1 };  // CUDNN_CROSS_CORRELATION
/// How cuDNN orders engines: b by a model of their time, a by a fast rule, fallback lists engines that always
/// exist.
enum class HeuristicsMode : int { b = 1, fallback = 2, a = 3 };  // CUDNN_HEUR_MODE_...
enum class NumericalNote : int {                                 // CUDNN_NUMERICAL_NOTE_...
  tensor_core = 0,
  down_convert_inputs = 1,
  reduced_precision_reduction = 2,
  fft = 3,
  nondeterministic = 4,
  winograd = 5,
};
constexpr int kNumericalNotes = 10;                          // CUDNN_NUMERICAL_NOTE_TYPE_COUNT
enum class BehaviorNote : int { compiled_at_run_time = 0 };  // CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION
constexpr int kBehaviorNotes = 5;                            // CUDNN_BEHAVIOR_NOTE_TYPE_COUNT

}  // namespace cudnn

/// cuDNN's functions: F(what it returns, name, parameters).
#define PACELINE_CUDNN_FUNCTIONS(F)                                                                         \
  F(std::size_t, cudnnGetVersion, ())                                                                       \
  F(const char*, cudnnGetErrorString, (cudnn::Status))                                                      \
  F(void, cudnnGetLastErrorString, (char* text, std::size_t size))                                          \
  F(cudnn::Status, cudnnCreate, (cudnn::Handle*))                                                           \
  F(cudnn::Status, cudnnDestroy, (cudnn::Handle))                                                           \
  F(cudnn::Status, cudnnSetStream, (cudnn::Handle, void* cuda_stream))                                      \
  F(cudnn::Status, cudnnBackendCreateDescriptor, (cudnn::DescriptorType, cudnn::RawDescriptor*))            \
  F(cudnn::Status, cudnnBackendDestroyDescriptor, (cudnn::RawDescriptor))                                   \
  F(cudnn::Status, cudnnBackendSetAttribute,                                                                \
    (cudnn::RawDescriptor, cudnn::Attribute, cudnn::AttributeType, std::int64_t count,                      \
     const void* elements))                                                                                 \
  F(cudnn::Status, cudnnBackendGetAttribute,                                                                \
    (cudnn::RawDescriptor, cudnn::Attribute, cudnn::AttributeType, std::int64_t most, std::int64_t * count, \
     void* elements))                                                                                       \
  F(cudnn::Status, cudnnBackendFinalize, (cudnn::RawDescriptor))                                            \
  F(cudnn::Status, cudnnBackendExecute,                                                                     \
    (cudnn::Handle, cudnn::RawDescriptor plan, cudnn::RawDescriptor variant_pack))

/// cuDNN's functions, under their own names.
struct CudnnApi {
#define PACELINE_MEMBER(Result, name, parameters) Result(*name) parameters = nullptr;
  PACELINE_CUDNN_FUNCTIONS(PACELINE_MEMBER)
#undef PACELINE_MEMBER
};

/// Disables TF32 in NVIDIA's libraries for this process, by an environment variable: otherwise cuDNN's
/// engines without tensor cores may multiply fp32 through cuBLASLt with TF32. bf16 is not affected.
///
/// Requires  cuDNN is not open yet
/// Threads   no other thread reads the environment meanwhile
void forbid_tf32();

/// The table of cuDNN's functions in `library`, which find_cudnn() opened.
///
/// Errors   Error(device) with library and function if one is missing
[[nodiscard]] CudnnApi cudnn_api(const base::SharedLibrary& library);

/// "9.19.0"
[[nodiscard]] std::string cudnn_version(const CudnnApi& api);

/// One line: the status's name and cuDNN's message.
[[nodiscard]] std::string error_text(const CudnnApi& api, cudnn::Status status);

/// Throws Error(device) unless `status` is success: "cudnnBackendFinalize of a tensor failed for PROBLEM:
/// TEXT".
void check(const CudnnApi& api, cudnn::Status status, std::string_view call, std::string_view problem);

}  // namespace paceline::engine::cuda
