#include "store_of_secret.hpp"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace pipewright::exec {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds between_meetings{100};
/// For an answer of a store that lives.
constexpr milliseconds to_be_met{5000};

[[noreturn]] void fail_with(const std::string& why) { C10_THROW_ERROR(DistNetworkError, why); }

std::string as_text(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<std::uint8_t> as_bytes(const std::string& text) { return {text.begin(), text.end()}; }

/// The first address of the host that answers; -1 where none does.
int connected_socket(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return -1;
  int socket = -1;
  for (const addrinfo* each = found; each != nullptr && socket < 0; each = each->ai_next) {
    socket = ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket >= 0 && connect(socket, each->ai_addr, each->ai_addrlen) != 0) {
      close(socket);
      socket = -1;
    }
  }
  freeaddrinfo(found);
  const int at_once = 1;
  if (socket >= 0)
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  return socket;
}

}  // namespace

StoreOfSecret::StoreOfSecret(Place place, milliseconds timeout, std::shared_ptr<StoreServer> hosted)
    : Store(timeout), place_(std::move(place)), hosted_(std::move(hosted)) {
  const auto until = Clock::now() + timeout;
  while (!meets()) {
    if (Clock::now() >= until)
      fail_with("nobody there answers as the store of a job with a secret");
    std::this_thread::sleep_for(between_meetings);
  }
}

StoreOfSecret::~StoreOfSecret() {
  if (socket_ >= 0)
    close(socket_);
}

/// False where another try may do better.
bool StoreOfSecret::meets() {
  if (socket_ >= 0)
    close(socket_);
  received_.clear();
  socket_ = connected_socket(place_.address, place_.port);
  if (socket_ < 0)
    return false;
  patience_ = Clock::now() + to_be_met;
  std::string answer, verdict, challenge;
  try {
    challenge = receive(handshake::challenge_bytes);
    if (!handshake::is_challenge(challenge))
      return false;
    answer = handshake::answer(place_.secret, challenge);
    send(answer);
    verdict = receive(handshake::verdict_bytes);
  } catch (const c10::DistError&) {
    return false;
  }
  if (verdict != handshake::verdict(place_.secret, challenge, answer))
    fail_with("the job's store has another secret (PIPEWRIGHT_JOB_SECRET)");
  line_.emplace(place_.secret, challenge, answer, Sealed::End::Rank);
  return true;
}

void StoreOfSecret::read_some() {
  if (!line_) {
    pollfd end{socket_, POLLIN, 0};
    const auto left = std::chrono::duration_cast<milliseconds>(patience_ - Clock::now()).count();
    if (left <= 0 || poll(&end, 1, static_cast<int>(left)) == 0)
      fail_with("the job's store does not answer");
  }
  char bytes[4096];
  const auto count = recv(socket_, bytes, sizeof bytes, 0);
  if (count == 0)
    fail_with("the job's store has closed the connection");
  if (count < 0 && errno != EINTR)
    fail_with(std::strerror(errno));
  if (count > 0)
    received_.append(bytes, static_cast<std::size_t>(count));
}

std::string StoreOfSecret::receive(std::size_t count) {
  while (received_.size() < count)
    read_some();
  const std::string first = received_.substr(0, count);
  received_.erase(0, count);
  return first;
}

void StoreOfSecret::send(const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const auto count = ::send(socket_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR)
      fail_with(std::strerror(errno));
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
}

Message StoreOfSecret::asked(const Message& request) {
  const std::lock_guard lock(mutex_);
  send(line_->closed(request));
  try {
    while (true) {
      if (auto reply = line_->opened(received_))
        return *std::move(reply);
      read_some();
    }
  } catch (const c10::Error&) {
    throw;
  } catch (const std::exception& wrong) {
    fail_with(wrong.what());
  }
}

Message StoreOfSecret::values_of(const std::vector<std::string>& keys, milliseconds timeout) {
  Message request{"wait", std::to_string(timeout.count())};
  request.insert(request.end(), keys.begin(), keys.end());
  Message reply = asked(request);
  if (reply.front() != "all")
    C10_THROW_ERROR(DistStoreError, "not all of it has come to the job's store in time");
  reply.erase(reply.begin());
  return reply;
}

c10::intrusive_ptr<c10d::Store> StoreOfSecret::clone() {
  return c10::make_intrusive<StoreOfSecret>(place_, timeout_, hosted_);
}

void StoreOfSecret::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  asked({"set", key, as_text(value)});
}

std::vector<std::uint8_t> StoreOfSecret::compareSet(const std::string& key,
                                                    const std::vector<std::uint8_t>& expected,
                                                    const std::vector<std::uint8_t>& desired) {
  return as_bytes(asked({"compare", key, as_text(expected), as_text(desired)}).at(0));
}

std::vector<std::uint8_t> StoreOfSecret::get(const std::string& key) {
  return as_bytes(values_of({key}, timeout_).at(0));
}

std::int64_t StoreOfSecret::add(const std::string& key, std::int64_t value) {
  return std::stoll(asked({"add", key, std::to_string(value)}).at(0));
}

bool StoreOfSecret::deleteKey(const std::string& key) {
  return asked({"delete", key}).at(0) == "yes";
}

bool StoreOfSecret::check(const std::vector<std::string>& keys) {
  Message request{"check"};
  request.insert(request.end(), keys.begin(), keys.end());
  return asked(request).at(0) == "yes";
}

std::int64_t StoreOfSecret::getNumKeys() { return std::stoll(asked({"count"}).at(0)); }

void StoreOfSecret::wait(const std::vector<std::string>& keys) { wait(keys, timeout_); }

void StoreOfSecret::wait(const std::vector<std::string>& keys, const milliseconds& timeout) {
  values_of(keys, timeout);
}

void StoreOfSecret::append(const std::string& key, const std::vector<std::uint8_t>& value) {
  asked({"append", key, as_text(value)});
}

std::vector<std::vector<std::uint8_t>> StoreOfSecret::multiGet(
    const std::vector<std::string>& keys) {
  std::vector<std::vector<std::uint8_t>> values;
  for (const std::string& value : values_of(keys, timeout_))
    values.push_back(as_bytes(value));
  return values;
}

void StoreOfSecret::multiSet(const std::vector<std::string>& keys,
                             const std::vector<std::vector<std::uint8_t>>& values) {
  for (std::size_t each = 0; each < keys.size(); ++each)
    set(keys[each], values.at(each));
}

}  // namespace pipewright::exec
