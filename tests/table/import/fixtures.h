#pragma once

/// Invented files in the forms that other programs write: small, and with figures that can be added up by
/// hand.

#include <fmt/format.h>

#include <string>

namespace paceline::table::fixtures {

/// all_reduce_perf on 2 ranks of 2 hosts behind mpirun, two sizes, out of place and in place.
inline std::string nccl_text() {
  return "[1,0]<stdout>:# nThread 1 nGpus 1 minBytes 1024 maxBytes 1048576 step: 1024(factor) warmup iters: 5 iters: 20 agg iters: 1 "
         "validation: 1 graph: 0\n"
         "[1,0]<stdout>:#\n[1,0]<stdout>:# Using devices\n"
         "[1,0]<stdout>:#  Rank  0 Group  0 Pid   1001 on  node-a device  0 [0x07] Example GPU\n"
         "[1,0]<stdout>:#  Rank  1 Group  0 Pid   1002 on  node-b device  0 [0x07] Example GPU\n"
         "[1,0]<stdout>:#\n"
         "[1,0]<stdout>:#                                                              out-of-place                       in-place\n"
         "[1,0]<stdout>:#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
         "[1,0]<stdout>:#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
         "[1,0]<stdout>:        1024           256     float     sum      -1    12.50    0.08    0.08      0    12.00    0.09    0.09    N/A\n"
         "[1,0]<stdout>:     1048576        262144     float     sum      -1   104.9   10.00   10.00      3  1.1e+02    9.53    9.53      0\n"
         "[1,0]<stdout>:# Out of bounds values : 3 FAILED\n"
         "[1,0]<stdout>:# Avg bus bandwidth    : 4.925\n[1,0]<stdout>:#\n";
}

inline std::string nccl_json() {
  return R"({"version": 3, "start_time": "2026-01-01", "args": ["./all_reduce_perf", "-b", "8M", "-J", "x.json"],
 "env": ["SECRET_TOKEN=abc"], "nccl_version": 22304,
 "config": {"nthreads": 1, "ngpus": 2, "warmup_iters": 5, "iterations": 4, "blocking_collectives": "0"},
 "devices": [{"group": 0, "rank": 0, "pid": 1, "hostname": "node-a", "device": 0, "device_info": "Example GPU"},
             {"group": 0, "rank": 1, "pid": 1, "hostname": "node-a", "device": 1, "device_info": "Example GPU"}],
 "results": [{"size": 8388608, "count": 2097152, "type": "float", "redop": "sum", "root": "  -1",
   "out_of_place": {"time": 840.0, "alg_bw": 9.986, "bus_bw": 9.986, "nwrong": "0"},
   "in_place": {"time": "nan", "alg_bw": "nan", "bus_bw": "nan", "nwrong": "N/A"}},
  {"size": 1024, "count": 256, "type": "float", "redop": "sum", "root": "  -1",
   "out_of_place": {"time": 12.0, "alg_bw": 0.085, "bus_bw": 0.085, "nwrong": "0"},
   "out_of_place_per_iter": {"times_us": [10.0, 11.0, 12.0, 30.0],
                             "per_process_max_times_us": [[10.0, 11.0], [12.0, 11.0], [13.0, 9.0], [30.0, 29.0]]}}],
 "out_of_bounds": "0", "average_bus_bandwidth": 5.03, "errors": []})";
}

inline std::string ddp() {
  return R"({"pytorch_version": "2.0", "distributed_backend": "nccl", "bucket_size": 25,
 "benchmark_results": [{"model": "resnet50", "batch_size": 32, "result": [
   {"ranks": [0], "measurements": [0.100, 0.101, 0.099]},
   {"ranks": [0], "measurements": [0.103, 0.104, 0.102]},
   {"ranks": [0, 1], "measurements": [0.110, 0.111, 0.112, 0.110, 0.111, 0.112]}]}]})";
}

/// One rank's trace: two steps of 1,000 us; in each compute 400, a collective of 300 of which 100 are hidden,
/// a copy of 50, and 150 idle while the loader is waited for; 200 are nobody's. `late`: how much longer the
/// collectives of this rank stay.
inline std::string kineto(int rank, int world,
                          const std::string& collective = "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                          double late = 0, bool with_args = true) {
  std::string text = fmt::format(
      R"({{"schemaVersion": 1, "deviceProperties": [{{"id": 0, "name": "Example GPU", "totalGlobalMem": 1}}],
 "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": {}}}, "baseTimeNanoseconds": 1700000000000000000,
 "traceEvents": [)",
      rank, world);
  const auto event = [&](const std::string& category, const std::string& name, double at, double us,
                         const std::string& args = "") {
    text +=
        fmt::format(
            R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 0, "tid": 7, "ts": {:.3f}, "dur": {:.3f}, "args": {{{}}}}},)",
            category, name, at, us, args) +
        "\n";
  };
  for (int step = 0; step < 2; ++step) {
    const double at = 5000000 + step * 1000;
    event("user_annotation", fmt::format("ProfilerStep#{}", step + 3), at, 1000);
    event("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, 200);
    event("gpu_memcpy", "Memcpy HtoD", at + 150, 50);
    event("kernel", "conv_kernel", at + 200, 300);
    event("kernel", "other_kernel", at + 450, 150);  // overlaps by 50
    event(
        "kernel", collective, at + 500 - late, 300 + late,
        with_args
            ? R"("stream": 20, "Collective name": "allreduce", "In msg nelems": 1000, "dtype": "Float", "Process Group Name": "0")"
            : "\"stream\": 20");
    event("cpu_op", "aten::conv2d", at, 20);
  }
  text += R"({"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}}]})";
  return text;
}

/// Two steps of 1,000 us: a kernel of 300 us that the model launched, one of 120 us that the optimizer did
/// (50 of them behind the other's end), both by the number of the call; a call of another thread in the same
/// stretch, which is the model's. Launches stand behind the kernels, as profilers write them.
inline std::string kineto_with_update(bool has_annotation = true) {
  std::string text =
      R"({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [)";
  const auto event = [&](const char* category, const char* name, int thread, double at, double us, int call) {
    text += fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 7, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, "args": {{"correlation": {}}}}},)",
        category, name, thread, at, us, call);
  };
  for (int step = 0; step < 2; ++step) {
    const double at = 5000000 + step * 1000;
    const int call = 10 * step + 1;
    event("user_annotation", fmt::format("ProfilerStep#{}", step).c_str(), 1, at, 1000, 0);
    event("kernel", "conv_kernel", 7, at + 200, 300, call);
    event("kernel", "multi_tensor_apply", 7, at + 430, 120, call + 1);
    event("kernel", "side_kernel", 8, at + 600, 40, call + 2);
    event("cuda_runtime", "cudaLaunchKernel", 1, at + 100, 5, call);
    event("cuda_runtime", "cudaLaunchKernel", 1, at + 310, 5, call + 1);
    event("cuda_runtime", "cudaLaunchKernel", 2, at + 320, 5, call + 2);
    if (has_annotation) event("user_annotation", "Optimizer.step#SGD.step", 1, at + 300, 60, 0);
  }
  text += R"({"ph": "M", "name": "process_name", "pid": 7}]})";
  return text;
}

/// Two ranks, one tensor of 1,000 floats, three steps of 10,000 us: rank 1 is 500 us late, the reduction
/// takes 2,000 us.
inline std::string horovod(bool has_end = true) {
  std::string text =
      "[\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": \"grad/conv1\"}},\n";
  for (int step = 0; step < 3; ++step) {
    const int at = 1000 + step * 10000;
    text +=
        fmt::format("{{\"ph\": \"B\", \"name\": \"NEGOTIATE_ALLREDUCE\", \"ts\": {}, \"pid\": 1}},\n", at);
    text += fmt::format("{{\"ph\": \"X\", \"name\": \"0\", \"ts\": {}, \"pid\": 1, \"dur\": 0}},\n", at);
    text +=
        fmt::format("{{\"ph\": \"X\", \"name\": \"1\", \"ts\": {}, \"pid\": 1, \"dur\": 0}},\n", at + 500);
    text += fmt::format("{{\"ph\": \"E\", \"ts\": {}, \"pid\": 1}},\n", at + 510);
    text += fmt::format("{{\"ph\": \"B\", \"name\": \"ALLREDUCE\", \"ts\": {}, \"pid\": 1}},\n", at + 600);
    text +=
        fmt::format("{{\"ph\": \"B\", \"name\": \"NCCL_ALLREDUCE\", \"ts\": {}, \"pid\": 1}},\n", at + 700);
    text += fmt::format("{{\"ph\": \"E\", \"ts\": {}, \"pid\": 1}},\n", at + 2700);
    text += fmt::format(
        "{{\"ph\": \"E\", \"ts\": {}, \"pid\": 1, \"args\": {{\"dtype\": \"float32\", \"shape\": \"[10, 100]\"}}}},\n",
        at + 2800);
  }
  if (has_end) text += "{\"ph\": \"M\", \"name\": \"end\", \"pid\": 1}\n]\n";
  return text;
}

inline std::string metrics() {
  return "epoch,step,train_loss,val_loss,val_acc\n0,99,1.52,,\n0,99,,1.31,0.5120\n1,199,1.10,,\n1,199,,0.98,0.6543\n";
}

/// A trace of processors, as a profiler without Kineto writes it: two steps of 1,000 us; in each operators
/// for 600, the last 100 of them beside a sum of gloo's, which goes on for 200 more.
inline std::string kineto_of_host() {
  std::string text;
  const auto event = [&](const std::string& name, int at, int us) {
    text += fmt::format(
        R"({}{{"name": "{}", "ph": "X", "ts": {}, "dur": {}, "tid": 1, "pid": "CPU functions", "args": {{}}}})",
        text.empty() ? "[" : ", ", name, at, us);
  };
  for (const int at : {5000, 6000}) {
    event(fmt::format("ProfilerStep#{}", at / 1000), at, 1000);
    event("DistributedDataParallel.forward", at, 400);
    event("aten::conv2d", at + 100, 300);
    event("aten::convolution", at + 110, 280);
    event("autograd::engine::evaluate_function: ConvolutionBackward0", at + 400, 300);
    event("gloo:all_reduce", at + 600, 300);
  }
  return text + "]";
}

/// As share/paceline/paceline_ddp.py writes: three steps of each rank, two buckets.
inline std::string ddp_run(int workers) {
  std::string ranks;
  for (int rank = 0; rank < workers; ++rank)
    ranks += fmt::format(
        R"({}{{"rank": {}, "host": 0, "device": "Example", "threads": 1, "samples": 32, "batches": 1,
 "step_s": [0.1, 0.11, 0.12], "data_s": [0.01, 0, 0.02], "forward_s": [0.02, 0.02, 0.02], "buffers_s": [0, 0, 0],
 "backward_s": [0.041, 0.042, 0.043], "last_backward_s": [0.041, 0.042, 0.043], "exposed_s": [0.02, 0.021, 0.022],
 "late_s": [0.004, 0.005, 0.006], "ready_s": [[0.02, 0.021, 0.022], [0.04, 0.041, 0.042]],
 "end_s": [[0.04, 0.042, 0.044], [0.061, 0.063, 0.065]]}})",
        rank == 0 ? "" : ", ", rank);
  return fmt::format(
      R"({{"schema": "paceline-ddp-1", "workers": {0}, "hosts": 1, "warmup": 3, "every": 1,
 "notes": ["the first 3 steps are warm-up and left out"], "steps": [3, 4, 5], "bucket_bytes": [4000, 400], "ranks": [{1}],
 "row": {{"run": "n{0}", "program": "PyTorch", "workers": "{0}", "local_batch": "32", "time_s": "0.1100", "time_of": "step",
 "statistic": "mean", "repeats": "3", "compute_s": "0.062", "communication_s": "0.021", "setting.backend": "gloo"}}}}
)",
      workers, ranks);
}

}  // namespace paceline::table::fixtures
