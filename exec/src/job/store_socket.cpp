#include "store_socket.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "handed_on.hpp"

namespace pipewright::exec {
namespace {

/// Says the number of the socket that rank 0 has.
constexpr const char* variable_of_socket = "PIPEWRIGHT_STORE_SOCKET";

}  // namespace

StoreSocket::StoreSocket() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (socket_ < 0 || bind(socket_, generic, length) != 0 || listen(socket_, SOMAXCONN) != 0 ||
      getsockname(socket_, generic, &length) != 0) {
    const std::string why = std::strerror(errno);
    if (socket_ >= 0)
      close(socket_);
    throw std::runtime_error(fmt::format("no free port: {}", why));
  }
  port_ = ntohs(address.sin_port);
}

StoreSocket::~StoreSocket() { close(socket_); }

void StoreSocket::hand_on() const { exec::hand_on(socket_, variable_of_socket); }

std::optional<int> socket_of_launcher() { return handed_on(variable_of_socket); }

}  // namespace pipewright::exec
