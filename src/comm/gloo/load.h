#pragma once

/// Opens gloo on demand; the program itself does not link it.

#include <filesystem>
#include <memory>

#include "base/module.h"
#include "comm/launch.h"
#include "comm/wire.h"

namespace paceline::comm::gloo {

inline constexpr base::Module kModule{.kind = base::ErrorKind::comm,
                                      .library = "gloo",
                                      .file = "paceline_gloo.so",
                                      .entry = "paceline_open_gloo",
                                      .built_with = "libgloo-dev",
                                      .remedy = "install libgloo0 (Debian: apt-get install libgloo0)",
                                      .global = true};

/// Opens the module and meets the other processes of `launch`.
///
/// Errors   as open_module, and Error(comm) when the others do not come
[[nodiscard]] std::unique_ptr<Wire> open_wire(const Launch& launch);
/// The same with the module in `folder`.
[[nodiscard]] std::unique_ptr<Wire> open_wire(const Launch& launch, const std::filesystem::path& folder);

}  // namespace paceline::comm::gloo
