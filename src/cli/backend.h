#pragma once

/// Makes the concrete engine and communicators for train, which itself names none. With a session the
/// communicators join all of its processes.

#include <span>
#include <string>

#include "cli/session.h"
#include "comm/emulate.h"
#include "train/backend.h"
#include "train/options.h"

namespace paceline::cli {

/// `members`: the processes of the session after regroup(); empty: all.
[[nodiscard]] train::Backend make_backend(const std::string& device, Session* session = nullptr,
                                          const comm::Emulation& emulation = {},
                                          comm::WireFormat wire_format = comm::WireFormat::fp32,
                                          std::span<const int> members = {});

/// The emulation that --emulate-link and --emulate-straggler describe.
[[nodiscard]] comm::Emulation emulation_of(const train::Options& options);

}  // namespace paceline::cli
