// Our constants of cuDNN's against its header, where there is one.

#include <gtest/gtest.h>

#include "engine/cuda/api/cudnn.h"

#if __has_include(<cudnn.h>) && __has_include(<cuda_runtime_api.h>)

#include <cudnn.h>

namespace paceline::engine::cuda::cudnn {
namespace {

template <typename Ours, typename Theirs>
constexpr bool same(Ours ours, Theirs theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs) && sizeof ours == sizeof theirs;
}

using D = DescriptorType;
static_assert(same(D::convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
static_assert(same(D::engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
static_assert(same(D::engine_config, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
static_assert(same(D::heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
static_assert(same(D::execution_plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
static_assert(same(D::knob_choice, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
static_assert(same(D::convolution_forward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR));
static_assert(same(D::convolution_backward_weights,
                   CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR));
static_assert(same(D::convolution_backward_data,
                   CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR));
static_assert(same(D::operation_graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
static_assert(same(D::variant_pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
static_assert(same(D::tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
static_assert(same(D::device_properties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR));

using A = Attribute;
static_assert(same(A::convolution_compute_type, CUDNN_ATTR_CONVOLUTION_COMP_TYPE));
static_assert(same(A::convolution_mode, CUDNN_ATTR_CONVOLUTION_CONV_MODE));
static_assert(same(A::convolution_dilations, CUDNN_ATTR_CONVOLUTION_DILATIONS));
static_assert(same(A::convolution_strides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES));
static_assert(same(A::convolution_post_paddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS));
static_assert(same(A::convolution_pre_paddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS));
static_assert(same(A::convolution_spatial_dimensions, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
static_assert(same(A::heuristics_mode, CUDNN_ATTR_ENGINEHEUR_MODE));
static_assert(same(A::heuristics_operation_graph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
static_assert(same(A::heuristics_results, CUDNN_ATTR_ENGINEHEUR_RESULTS));
static_assert(same(A::heuristics_device_properties, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP));
static_assert(same(A::engine_config_engine, CUDNN_ATTR_ENGINECFG_ENGINE));
static_assert(same(A::engine_config_knob_choices, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES));
static_assert(same(A::plan_handle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE));
static_assert(same(A::plan_engine_config, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
static_assert(same(A::plan_workspace_size, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
static_assert(same(A::plan_device_properties, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP));
static_assert(same(A::knob_choice_type, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE));
static_assert(same(A::knob_choice_value, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
static_assert(same(A::forward_alpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA));
static_assert(same(A::forward_beta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA));
static_assert(same(A::forward_convolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC));
static_assert(same(A::forward_weight, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W));
static_assert(same(A::forward_src, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X));
static_assert(same(A::forward_dst, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y));
static_assert(same(A::backward_data_alpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA));
static_assert(same(A::backward_data_beta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA));
static_assert(same(A::backward_data_convolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC));
static_assert(same(A::backward_data_weight, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W));
static_assert(same(A::backward_data_d_src, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX));
static_assert(same(A::backward_data_d_dst, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY));
static_assert(same(A::backward_weights_alpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA));
static_assert(same(A::backward_weights_beta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA));
static_assert(same(A::backward_weights_convolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC));
static_assert(same(A::backward_weights_d_weight, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW));
static_assert(same(A::backward_weights_src, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X));
static_assert(same(A::backward_weights_d_dst, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY));
static_assert(same(A::graph_handle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE));
static_assert(same(A::graph_operations, CUDNN_ATTR_OPERATIONGRAPH_OPS));
static_assert(same(A::tensor_byte_alignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT));
static_assert(same(A::tensor_data_type, CUDNN_ATTR_TENSOR_DATA_TYPE));
static_assert(same(A::tensor_dimensions, CUDNN_ATTR_TENSOR_DIMENSIONS));
static_assert(same(A::tensor_strides, CUDNN_ATTR_TENSOR_STRIDES));
static_assert(same(A::tensor_unique_id, CUDNN_ATTR_TENSOR_UNIQUE_ID));
static_assert(same(A::variant_pack_unique_ids, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS));
static_assert(same(A::variant_pack_data_pointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS));
static_assert(same(A::variant_pack_workspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
static_assert(same(A::engine_global_index, CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
static_assert(same(A::engine_numerical_notes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE));
static_assert(same(A::engine_behavior_notes, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE));
static_assert(same(A::device_properties_device_id, CUDNN_ATTR_DEVICEPROP_DEVICE_ID));
static_assert(same(A::device_properties_json, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION));

using T = AttributeType;
static_assert(same(T::handle, CUDNN_TYPE_HANDLE));
static_assert(same(T::data_type, CUDNN_TYPE_DATA_TYPE));
static_assert(same(T::integer64, CUDNN_TYPE_INT64));
static_assert(same(T::real32, CUDNN_TYPE_FLOAT));
static_assert(same(T::pointer, CUDNN_TYPE_VOID_PTR));
static_assert(same(T::convolution_mode, CUDNN_TYPE_CONVOLUTION_MODE));
static_assert(same(T::heuristics_mode, CUDNN_TYPE_HEUR_MODE));
static_assert(same(T::knob_type, CUDNN_TYPE_KNOB_TYPE));
static_assert(same(T::numerical_note, CUDNN_TYPE_NUMERICAL_NOTE));
static_assert(same(T::descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR));
static_assert(same(T::behavior_note, CUDNN_TYPE_BEHAVIOR_NOTE));
static_assert(same(T::integer32, CUDNN_TYPE_INT32));
static_assert(same(T::character, CUDNN_TYPE_CHAR));

static_assert(same(DataType::f32, CUDNN_DATA_FLOAT) && same(DataType::bf16, CUDNN_DATA_BFLOAT16) &&
              same(DataType::f16, CUDNN_DATA_HALF));
static_assert(same(ConvolutionMode::cross_correlation, CUDNN_CROSS_CORRELATION));
static_assert(same(HeuristicsMode::a, CUDNN_HEUR_MODE_A) && same(HeuristicsMode::b, CUDNN_HEUR_MODE_B) &&
              same(HeuristicsMode::fallback, CUDNN_HEUR_MODE_FALLBACK));
using N = NumericalNote;
static_assert(same(N::tensor_core, CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
static_assert(same(N::down_convert_inputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
static_assert(same(N::reduced_precision_reduction, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION));
static_assert(same(N::nondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
static_assert(same(BehaviorNote::compiled_at_run_time, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION));
static_assert(kNumericalNotes >= CUDNN_NUMERICAL_NOTE_TYPE_COUNT &&
              kBehaviorNotes >= CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
static_assert(same(N::fft, CUDNN_NUMERICAL_NOTE_FFT) && same(N::winograd, CUDNN_NUMERICAL_NOTE_WINOGRAD));
static_assert(same(kSuccess, CUDNN_STATUS_SUCCESS) &&
              same(kHostAllocationFailed, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED) &&
              same(kDeviceAllocationFailed, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) &&
              same(kExecutionFailed, CUDNN_STATUS_EXECUTION_FAILED));
static_assert(failed_to_execute(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER) &&
              !failed_to_execute(CUDNN_STATUS_NOT_SUPPORTED_SHAPE));

/// Whether a function of the table is passed the same as cuDNN's: as many arguments of the same sizes.
template <typename... Ours, typename... Theirs, typename R, typename S>
constexpr bool is_called_alike(R (*)(Ours...), S (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs))
    return ((sizeof(Ours) == sizeof(Theirs)) && ...) && std::is_void_v<R> == std::is_void_v<S>;
  else
    return false;
}
constexpr CudnnApi kTable;
static_assert(is_called_alike(kTable.cudnnGetVersion, cudnnGetVersion));
static_assert(is_called_alike(kTable.cudnnGetErrorString, cudnnGetErrorString));
static_assert(is_called_alike(kTable.cudnnGetLastErrorString, cudnnGetLastErrorString));
static_assert(is_called_alike(kTable.cudnnCreate, cudnnCreate));
static_assert(is_called_alike(kTable.cudnnDestroy, cudnnDestroy));
static_assert(is_called_alike(kTable.cudnnSetStream, cudnnSetStream));
static_assert(is_called_alike(kTable.cudnnBackendCreateDescriptor, cudnnBackendCreateDescriptor));
static_assert(is_called_alike(kTable.cudnnBackendDestroyDescriptor, cudnnBackendDestroyDescriptor));
static_assert(is_called_alike(kTable.cudnnBackendSetAttribute, cudnnBackendSetAttribute));
static_assert(is_called_alike(kTable.cudnnBackendGetAttribute, cudnnBackendGetAttribute));
static_assert(is_called_alike(kTable.cudnnBackendFinalize, cudnnBackendFinalize));
static_assert(is_called_alike(kTable.cudnnBackendExecute, cudnnBackendExecute));

TEST(CudnnConstants, AreThoseOfItsHeader) {
  // The assertions above have been compiled; the version is for the log.
  fmt::print("held against cuDNN {}.{}.{}\n", CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL);
}

}  // namespace
}  // namespace paceline::engine::cuda::cudnn

#else

TEST(CudnnConstants, AreThoseOfItsHeader) { GTEST_SKIP() << "no cudnn.h on this machine"; }

#endif
