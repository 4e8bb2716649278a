#include "network.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses addresses_of(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0)
    throw plan::InputError(fmt::format("unknown host \"{}\": {}", host, ::gai_strerror(error)));
  return {found, &::freeaddrinfo};
}

/// Returns the local address of the route to `address`; empty if there is no route.
std::string local_address_of_route(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, SOCK_DGRAM, 0);
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  char text[NI_MAXHOST] = {};
  // Connecting a datagram socket sends nothing; it only selects the route.
  const bool found = ::connect(socket, address.ai_addr, address.ai_addrlen) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&local), &length) == 0 &&
                     ::getnameinfo(reinterpret_cast<sockaddr*>(&local), length, text, sizeof text,
                                   nullptr, 0, NI_NUMERICHOST) == 0;
  ::close(socket);
  return found ? text : "";
}

}  // namespace

std::string local_address_towards(const std::string& host, int port) {
  const Addresses addresses = addresses_of(host, port);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next)
    if (std::string local = local_address_of_route(*address); !local.empty())
      return local;
  throw plan::InputError(fmt::format("no network interface leads to \"{}\"", host));
}

}  // namespace pipewright::exec
