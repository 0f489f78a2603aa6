#pragma once

/// Opens gloo on demand; the program itself does not link it.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/shared_library.h"
#include "comm/launch.h"
#include "comm/wire.h"

// The interface between the module paceline_gloo.so and the program.

extern "C" {
/// Meets the other processes of `launch` at its meeting place. `say(text)`, unless empty, hears for whom it
/// has waited long.
///
/// Errors   Error(comm)
paceline::comm::Wire* paceline_open_gloo(const paceline::comm::Launch& launch,
                                         const std::function<void(const std::string&)>& say);
}

namespace paceline::comm::gloo {

inline constexpr base::Module kModule{.kind = base::ErrorKind::comm,
                                      .library = "gloo",
                                      .file = "paceline_gloo.so",
                                      .entry = "paceline_open_gloo",
                                      .built_with = "libgloo-dev",
                                      .remedy = "install libgloo0 (Debian: apt-get install libgloo0)",
                                      .global = true};

/// Opens the module, of `folder` as in open_module(), and meets the other processes of `launch`. `say` as in
/// comm::open_wire.
///
/// Errors   as open_module, and Error(comm) when the others do not come
[[nodiscard]] std::unique_ptr<Wire> open_wire(const Launch& launch,
                                              const std::function<void(const std::string&)>& say,
                                              const std::filesystem::path& folder = {});

}  // namespace paceline::comm::gloo
