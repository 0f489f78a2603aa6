#pragma once

/// Network interfaces of this host by name, for --interface.

#include <cstdint>
#include <string>
#include <vector>

namespace paceline::comm {

/// The first address of the interface `name` as text, at which other processes reach this one: IPv4, else an
/// IPv6 address that is not link-local.
///
/// Errors   Error(comm) naming the host and its usable interfaces: there is no such interface, it has no
///          address, or it is down
[[nodiscard]] std::string address_of_interface(const std::string& name);

/// The IPv4 addresses of `interface` in network order; "": of all interfaces but the loopback.
[[nodiscard]] std::vector<std::uint32_t> ipv4_addresses(const std::string& interface);

}  // namespace paceline::comm
