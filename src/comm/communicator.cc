#include "comm/communicator.h"

namespace paceline::comm {

base::OwnedArray Communicator::array(std::size_t size, const base::Memory& where) {
  base::expects(where.is_host(), "a communicator without host_bounce.h has memory of the host");
  return base::host_array(memory(size * sizeof(float)));
}

std::unique_ptr<Pending> Communicator::all_reduce(base::Array src, base::Array dst) {
  return all_reduce(std::span<const float>(src.host()), dst.host());
}

std::unique_ptr<Pending> Communicator::reduce_scatter(base::Array src, base::Array dst) {
  return reduce_scatter(std::span<const float>(src.host()), dst.host());
}

void Communicator::scatter(std::span<const std::byte> /*all*/, std::span<std::byte> /*mine*/, int /*root*/) {
  base::expects(false, "this communicator offers scatter");
}

void Communicator::gather(std::span<const std::byte> /*mine*/, std::span<std::byte> /*all*/, int /*root*/) {
  base::expects(false, "this communicator offers gather");
}

void Communicator::reduce(std::span<float> /*values*/, int /*root*/) {
  base::expects(false, "this communicator offers reduce");
}

}  // namespace paceline::comm
