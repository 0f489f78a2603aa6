#pragma once

/// The interface between the module paceline_gloo.so and the program.

#include <functional>
#include <string>

#include "comm/launch.h"
#include "comm/wire.h"

extern "C" {
/// Meets the other processes of `launch` at its meeting place. `say(text)`, unless empty, hears for whom it
/// has waited long.
///
/// Errors   Error(comm)
paceline::comm::Wire* paceline_open_gloo(const paceline::comm::Launch& launch,
                                         const std::function<void(const std::string&)>& say);
}
