#pragma once

/// The network interfaces of this host, by name: what --interface says.

#include <cstdint>
#include <string>
#include <vector>

namespace paceline::comm {

/// The first address of the interface `name`, as text: IPv4, else IPv6 that is not of the link alone. Other
/// processes reach this one there.
///
/// Errors   Error(comm): there is no such interface here, or it has no address or is down; names host, and
///          the interfaces that have one
[[nodiscard]] std::string address_of_interface(const std::string& name);

/// The IPv4 addresses of `interface`, in network order; of all but the loopback where it is "".
[[nodiscard]] std::vector<std::uint32_t> ipv4_addresses(const std::string& interface);

}  // namespace paceline::comm
