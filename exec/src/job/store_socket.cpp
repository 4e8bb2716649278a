#include "store_socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

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

void StoreSocket::hand_on() const {
  fcntl(socket_, F_SETFD, 0);
  setenv(variable_of_socket, std::to_string(socket_).c_str(), /*overwrite=*/1);
}

std::optional<int> socket_of_launcher() {
  const char* const number = std::getenv(variable_of_socket);
  if (number == nullptr)
    return std::nullopt;
  const int socket = std::atoi(number);
  unsetenv(variable_of_socket);
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  return socket;
}

}  // namespace pipewright::exec
