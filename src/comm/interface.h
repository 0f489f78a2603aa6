#pragma once

/// Finds addresses of this host's network interfaces by name, for --interface.

#include <cstdint>
#include <string>
#include <vector>

namespace paceline::comm {

/// The address, as text, at which other processes can reach this process over the interface `name`: its first
/// IPv4 address, else its first IPv6 address that is not link-local.
///
/// Errors   Error(comm) naming the host and its usable interfaces: there is no such interface, it has no such
///          address, or it is down
[[nodiscard]] std::string address_of_interface(const std::string& name);

/// The IPv4 addresses of `interface` in network byte order; "": of all interfaces except the loopback. Empty
/// if there are none.
[[nodiscard]] std::vector<std::uint32_t> ipv4_addresses(const std::string& interface);

}  // namespace paceline::comm
