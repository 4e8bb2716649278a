#include "sockets.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace pipewright::exec {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses addresses_of(const std::string& host, int port, int family, int flags) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_flags = flags;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints,
                  &found) != 0)
    found = nullptr;
  return {found, &freeaddrinfo};
}

FileDescriptor socket_for(const addrinfo& address) {
  return FileDescriptor(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

void set_option(const FileDescriptor& socket, int level, int option, int value) {
  setsockopt(socket.get(), level, option, &value, sizeof value);
}

}  // namespace

FileDescriptor listen_on(const std::string& host, int port) {
  std::string why = "no such address";
  // An IPv6 socket accepts IPv4 connections as well. A machine may lack either protocol.
  for (const int family : {AF_INET6, AF_INET}) {
    const Addresses address = addresses_of(host, port, family, AI_PASSIVE);
    if (!address)
      continue;
    FileDescriptor socket = socket_for(*address);
    set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
    if (family == AF_INET6)
      set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (bind(socket.get(), address->ai_addr, address->ai_addrlen) == 0 &&
        listen(socket.get(), SOMAXCONN) == 0)
      return socket;
    why = std::strerror(errno);
  }
  throw std::runtime_error(fmt::format("cannot listen on port {}: {}", port, why));
}

FileDescriptor connect_to(const std::string& host, int port) {
  const Addresses addresses = addresses_of(host, port, AF_UNSPEC, 0);
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    FileDescriptor socket = socket_for(*each);
    if (connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0) {
      disable_nagle(socket);
      return socket;
    }
  }
  return {};
}

int port_of(const FileDescriptor& listening) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

void disable_nagle(const FileDescriptor& socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

}  // namespace pipewright::exec
