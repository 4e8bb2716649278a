#include "store_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cpu/unpinned_thread.hpp"

namespace pipewright::exec {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds to_prove{5};
/// Of those without proof, the one that came first makes room for the next.
constexpr int most_unproven = 64;
/// After no file was left for a visitor.
constexpr milliseconds to_get_a_file{50};

bool may_come_later() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

long number_told(const std::string& text) {
  long number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

StoreServer::StoreServer(int listening, std::string secret)
    : listening_(listening), wake_(eventfd(0, EFD_CLOEXEC)), secret_(std::move(secret)) {
  fcntl(listening_, F_SETFL, fcntl(listening_, F_GETFL) | O_NONBLOCK);
  fcntl(listening_, F_SETFD, FD_CLOEXEC);
  thread_ = unpinned_thread([this] { serve(); });
}

StoreServer::~StoreServer() {
  ending_ = true;
  const std::uint64_t one = 1;
  if (write(wake_, &one, sizeof one) == sizeof one)
    thread_.join();
  else
    thread_.detach();
  for (const Visitor& visitor : visitors_)
    close(visitor.socket);
  close(listening_);
  close(wake_);
}

void StoreServer::serve() {
  while (!ending_) {
    std::vector<pollfd> ends{{wake_, POLLIN, 0}, {listening_, POLLIN, 0}};
    for (const Visitor& visitor : visitors_)
      ends.push_back({visitor.socket,
                      static_cast<short>(POLLIN | (visitor.to_send.empty() ? 0 : POLLOUT)), 0});
    poll(ends.data(), ends.size(), milliseconds_to_rest());
    auto end = ends.begin() + 2;
    for (Visitor& visitor : visitors_) {
      if ((end->revents & POLLOUT) != 0)
        send_some(visitor);
      if ((end->revents & ~POLLOUT) != 0)
        hear(visitor);
      ++end;
    }
    if (ends[1].revents != 0)
      admit();
    turn_away_late();
    look_at_waits();
    visitors_.remove_if([](const Visitor& visitor) {
      if (visitor.gone)
        close(visitor.socket);
      return visitor.gone;
    });
  }
}

void StoreServer::admit() {
  while (true) {
    const int socket = accept4(listening_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
      if (!may_come_later())  // no file is left, perhaps
        std::this_thread::sleep_for(to_get_a_file);
      return;
    }
    const int at_once = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    make_room();
    Visitor& visitor = visitors_.emplace_back();
    visitor.socket = socket;
    visitor.until = Clock::now() + to_prove;
    visitor.challenge = handshake::challenge();
    visitor.to_send = visitor.challenge;
    send_some(visitor);
  }
}

void StoreServer::make_room() {
  const auto unproven = [](const Visitor& visitor) { return !visitor.line && !visitor.gone; };
  if (std::ranges::count_if(visitors_, unproven) < most_unproven)
    return;
  std::ranges::find_if(visitors_, unproven)->gone = true;
  ++turned_away_;
}

void StoreServer::hear(Visitor& visitor) {
  char bytes[4096];
  const auto count = recv(visitor.socket, bytes, sizeof bytes, 0);
  if (count == 0 || (count < 0 && !may_come_later())) {
    turned_away_ += visitor.line || visitor.gone ? 0 : 1;
    visitor.gone = true;
  }
  if (count <= 0 || visitor.gone)
    return;
  visitor.received.append(bytes, static_cast<std::size_t>(count));
  try {
    if (!visitor.line)
      judge(visitor);
    while (visitor.line && visitor.waits.empty()) {
      const auto request = visitor.line->opened(visitor.received);
      if (!request)
        break;
      answer(visitor, *request);
    }
  } catch (const std::exception&) {
    visitor.gone = true;
  }
}

void StoreServer::judge(Visitor& visitor) {
  if (visitor.received.size() < handshake::answer_bytes)
    return;
  const std::string answer = visitor.received.substr(0, handshake::answer_bytes);
  if (handshake::is_proven(secret_, visitor.challenge, answer)) {
    visitor.received.erase(0, handshake::answer_bytes);
    visitor.line.emplace(secret_, visitor.challenge, answer, Sealed::End::Store);
    visitor.to_send += handshake::verdict(secret_, visitor.challenge, answer);
    return send_some(visitor);
  }
  visitor.to_send += handshake::refusal();
  send_some(visitor);
  visitor.gone = true;
  ++turned_away_;
}

/// What a rank may ask, as StoreOfSecret does.
void StoreServer::answer(Visitor& visitor, const Message& request) {
  const std::string& what = request.at(0);
  if (what == "wait")
    return begin_wait(visitor, request);
  if (what == "check")
    return reply(visitor, {has_all({request.begin() + 1, request.end()}) ? "yes" : "no"});
  if (what == "count")
    return reply(visitor, {std::to_string(values_.size())});
  const std::string& name = request.at(1);
  if (what == "delete")
    return reply(visitor, {values_.erase(name) > 0 ? "yes" : "no"});
  const auto found = values_.find(name);
  if (what == "compare" &&
      (found == values_.end() ? !request.at(2).empty() : found->second != request.at(2)))
    return reply(visitor, {found == values_.end() ? request.at(2) : found->second});
  changed_ = true;
  std::string& value = values_[name];
  if (what == "add")
    value = std::to_string(number_told(value) + number_told(request.at(2)));
  else if (what == "append")
    value += request.at(2);
  else
    value = request.at(what == "compare" ? 3 : 2);
  reply(visitor, {value});
}

void StoreServer::begin_wait(Visitor& visitor, const Message& request) {
  visitor.waits.assign(request.begin() + 2, request.end());
  if (visitor.waits.empty())
    return reply(visitor, {"all"});
  visitor.waits_until = Clock::now() + milliseconds(number_told(request.at(1)));
  changed_ = true;  // they may be there
}

/// Who waits is told all the values, or that they have not come in time.
void StoreServer::look_at_waits() {
  const bool changed = std::exchange(changed_, false);
  for (Visitor& visitor : visitors_) {
    if (visitor.waits.empty() || visitor.gone)
      continue;
    Message told{"late"};
    if (changed && has_all(visitor.waits)) {
      told.front() = "all";
      for (const std::string& name : visitor.waits)
        told.push_back(values_.at(name));
    } else if (Clock::now() < visitor.waits_until) {
      continue;
    }
    visitor.waits.clear();
    reply(visitor, told);
  }
}

bool StoreServer::has_all(const Message& names) const {
  return std::ranges::all_of(names,
                             [&](const std::string& name) { return values_.contains(name); });
}

void StoreServer::reply(Visitor& visitor, const Message& message) {
  visitor.to_send += visitor.line->closed(message);
  send_some(visitor);
}

void StoreServer::send_some(Visitor& visitor) {
  const auto count =
      send(visitor.socket, visitor.to_send.data(), visitor.to_send.size(), MSG_NOSIGNAL);
  if (count > 0)
    visitor.to_send.erase(0, static_cast<std::size_t>(count));
  else if (count < 0 && !may_come_later())
    visitor.gone = true;
}

void StoreServer::turn_away_late() {
  for (Visitor& visitor : visitors_)
    if (!visitor.line && !visitor.gone && Clock::now() >= visitor.until) {
      visitor.gone = true;
      ++turned_away_;
    }
}

int StoreServer::milliseconds_to_rest() const {
  auto until = Clock::now() + std::chrono::hours(1);
  for (const Visitor& visitor : visitors_) {
    if (!visitor.line)
      until = std::min(until, visitor.until);
    if (!visitor.waits.empty())
      until = std::min(until, visitor.waits_until);
  }
  const auto rest = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::max<long>(0, rest)) + 1;
}

int listen_everywhere(int port) {
  const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1, off = 0;
  sockaddr_in6 all{};
  all.sin6_family = AF_INET6;
  all.sin6_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in all_of_ipv4{};
  all_of_ipv4.sin_family = AF_INET;
  all_of_ipv4.sin_port = all.sin6_port;
  int listening = socket;
  const sockaddr* address = reinterpret_cast<const sockaddr*>(&all);
  socklen_t length = sizeof all;
  if (socket < 0) {  // a machine without IPv6
    listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address = reinterpret_cast<const sockaddr*>(&all_of_ipv4);
    length = sizeof all_of_ipv4;
  } else {
    setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listening, address, length) != 0 || listen(listening, SOMAXCONN) != 0) {
    const std::string why = std::strerror(errno);
    close(listening);
    throw std::runtime_error(why);
  }
  return listening;
}

int StoreServer::port() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

}  // namespace pipewright::exec
