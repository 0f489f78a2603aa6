#include "comm/gloo/load.h"

namespace paceline::comm::gloo {

std::unique_ptr<Wire> open_wire(const Launch& launch, const std::function<void(const std::string&)>& say,
                                const std::filesystem::path& folder) {
  const auto entry = reinterpret_cast<decltype(&paceline_open_gloo)>(base::open_module(kModule, folder));
  return std::unique_ptr<Wire>(entry(launch, say));
}

}  // namespace paceline::comm::gloo
