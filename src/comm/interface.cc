#include "comm/interface.h"

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "base/error.h"
#include "base/host_name.h"

namespace paceline::comm {
namespace {

/// Calls `take` for each address of an interface that is up.
void for_each_address(const std::function<void(const ifaddrs&)>& take) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, ::freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next)
    if (one->ifa_addr != nullptr && (one->ifa_flags & IFF_UP) != 0) take(*one);
}

std::string text_of_address(const ifaddrs& one) {
  const socklen_t size = one.ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  char text[NI_MAXHOST] = {};
  if (::getnameinfo(one.ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

}  // namespace

std::string address_of_interface(const std::string& name) {
  std::string four, six;
  std::vector<std::string> others;
  for_each_address([&](const ifaddrs& one) {
    const bool is_four = one.ifa_addr->sa_family == AF_INET;
    if (!is_four && one.ifa_addr->sa_family != AF_INET6) return;
    if (!is_four) {
      const auto& address = reinterpret_cast<const sockaddr_in6*>(one.ifa_addr)->sin6_addr;
      if (IN6_IS_ADDR_LINKLOCAL(&address)) return;
    }
    if (one.ifa_name == name) {
      auto& place = is_four ? four : six;
      if (place.empty()) place = text_of_address(one);
    } else if (std::ranges::find(others, one.ifa_name) == others.end()) {
      others.emplace_back(one.ifa_name);
    }
  });
  if (!four.empty()) return four;
  if (!six.empty()) return six;
  base::fail(
      base::ErrorKind::comm,
      "--interface {}: host {} has no network interface of that name that is up and has an address; it has {}",
      name, base::host_name(), others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", ")));
}

std::vector<std::uint32_t> ipv4_addresses(const std::string& interface) {
  std::vector<std::uint32_t> addresses;
  for_each_address([&](const ifaddrs& one) {
    if (one.ifa_addr->sa_family != AF_INET) return;
    const auto ipv4 = reinterpret_cast<const sockaddr_in*>(one.ifa_addr)->sin_addr.s_addr;
    if (interface.empty() ? ipv4 != htonl(INADDR_LOOPBACK) : one.ifa_name == interface)
      addresses.push_back(ipv4);
  });
  return addresses;
}

}  // namespace paceline::comm
