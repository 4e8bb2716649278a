// A job that has a secret, and processes that connect without it.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>

#include <array>
#include <chrono>
#include <memory>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "exec/support/processes.hpp"
#include "job/crypto.hpp"
#include "job/secure_channel.hpp"
#include "job/sockets.hpp"
#include "job/store_client.hpp"
#include "pipewright/exec/aborted.hpp"
#include "pipewright/exec/transport/gloo_transport.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"
#include "support/uninvited.hpp"

namespace job_secret_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace std::chrono_literals;

/// Returns the message of the exception that `body` throws; empty if there is none.
template <class Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

const std::string secret = "sixteen letters or more";

TEST_CASE("HMAC-SHA-256 has the values of RFC 4231", "[exec][job]") {
  const std::string mac = hmac_sha256("Jefe", "what do ya want for nothing?");
  CHECK(to_hex(mac) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(to_hex(hmac_sha256(std::string(131, '\xaa'),
                           "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  CHECK(equal_in_constant_time(mac, hmac_sha256("Jefe", "what do ya want for nothing?")));
  CHECK_FALSE(equal_in_constant_time(mac, hmac_sha256("Jefe", "what do ya want for nothing!")));
  CHECK_FALSE(equal_in_constant_time(mac, mac.substr(1)));
}

/// Both ends of a connection. The test passes the bytes between them.
struct Ends {
  SecureChannel server{SecureChannel::Role::Server, secret};
  SecureChannel client{SecureChannel::Role::Client, secret};
  std::string of_client = client.take_outgoing();  // all that it has sent so far

  Ends() {
    server.receive(of_client);
    client.receive(server.take_outgoing());
    const std::string finished = client.take_outgoing();
    of_client += finished;
    server.receive(finished);
    REQUIRE(client.is_authenticated());
    REQUIRE(server.is_authenticated());
  }
  std::string sent(const Message& message) {
    client.send(message);
    return client.take_outgoing();
  }
};

TEST_CASE("Messages arrive in order and complete, and no third party can read them",
          "[exec][job]") {
  Ends ends;
  const Message long_message{"set", std::string("\0\xff", 2), std::string(100'000, 'x')};
  const std::string first = ends.sent({"set", "name", "value"}), second = ends.sent(long_message);
  CHECK(first.find("value") == std::string::npos);
  ends.server.receive(first);
  ends.server.receive(second.substr(0, 70'000));
  CHECK(ends.server.next_message() == Message{"set", "name", "value"});
  CHECK_FALSE(ends.server.next_message());
  ends.server.receive(second.substr(70'000));
  CHECK(ends.server.next_message() == long_message);
}

TEST_CASE("A message that was altered, omitted, repeated or reflected is rejected", "[exec][job]") {
  const auto is_refused = [](SecureChannel& channel, const std::string& bytes) {
    return !error_of([&] { channel.receive(bytes); }).empty() && !channel.next_message();
  };
  {
    Ends ends;
    const std::string first = ends.sent({"count"});
    ends.server.receive(first);
    CHECK(ends.server.next_message() == Message{"count"});
    CHECK(is_refused(ends.server, first));
  }
  {
    Ends ends;
    ends.sent({"count"});
    CHECK(is_refused(ends.server, ends.sent({"count"})));
  }
  {
    Ends ends;
    CHECK(is_refused(ends.client, ends.sent({"count"})));
  }
  for (std::size_t byte = 0; byte < Ends().sent({"count"}).size(); ++byte) {
    Ends ends;
    std::string altered = ends.sent({"count"});
    altered[byte] = static_cast<char>(altered[byte] ^ 1);
    const bool is_length = byte == 3 || byte == 4;  // then it may wait for more bytes
    if (!is_length)
      CHECK(is_refused(ends.server, altered));
    else
      CHECK((is_refused(ends.server, altered) || !ends.server.next_message()));
  }
}

TEST_CASE("A handshake fails with another secret, and a recorded one cannot be replayed",
          "[exec][job]") {
  SecureChannel server(SecureChannel::Role::Server, secret);
  SecureChannel other(SecureChannel::Role::Client, secret + ".");
  CHECK_FALSE(error_of([&] { server.receive(other.take_outgoing()); }).empty());
  CHECK_THROWS_AS(other.receive(server.take_outgoing()), WrongSecret);
  CHECK_FALSE(server.is_authenticated());
  CHECK_FALSE(other.is_authenticated());

  Ends recorded;
  recorded.of_client += recorded.sent({"set", "a", "2"});
  SecureChannel again(SecureChannel::Role::Server, secret);
  CHECK_FALSE(error_of([&] { again.receive(recorded.of_client); }).empty());
  CHECK_FALSE(again.is_authenticated());
  CHECK_FALSE(again.next_message());
}

/// Returns the answer of a TLS server that does not know the secret and presents a certificate
/// instead.
std::string answer_with_certificate(const std::string& hello) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  REQUIRE(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_method()),
                                                                  &SSL_CTX_free);
  REQUIRE(SSL_CTX_use_certificate(context.get(), certificate.get()) == 1);
  REQUIRE(SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
  BIO *const in = BIO_new(BIO_s_mem()), *const out = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl.get(), in, out);
  BIO_write(in, hello.data(), static_cast<int>(hello.size()));
  SSL_accept(ssl.get());
  std::string answer(BIO_ctrl_pending(out), '\0');
  BIO_read(out, answer.data(), static_cast<int>(answer.size()));
  return answer;
}

TEST_CASE("A server with a certificate instead of the secret is rejected", "[exec][job]") {
  SecureChannel client(SecureChannel::Role::Client, secret);
  const std::string answer = answer_with_certificate(client.take_outgoing());
  REQUIRE(answer.size() > 500);  // more than an alert
  CHECK(error_of([&] { client.receive(answer); }).find("certificate verify failed") !=
        std::string::npos);
  CHECK_FALSE(client.is_authenticated());
}

/// A store on this machine, and clients of it.
struct Opened {
  std::shared_ptr<StoreServer> server = std::make_shared<StoreServer>(listen_on("", 0), secret);
  int port = server->port();

  c10::intrusive_ptr<StoreClient> visit(const std::string& with = secret) const {
    return c10::make_intrusive<StoreClient>(StoreClient::Place{"127.0.0.1", port, with}, 3000ms,
                                            nullptr);
  }
};

std::vector<std::uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }

TEST_CASE("A store with a secret behaves as c10d requires", "[exec][job]") {
  const Opened opened;
  const auto one = opened.visit(), other = opened.visit();
  c10d::Store& store = *one;
  store.set("a", "1");
  CHECK(other->get("a") == bytes("1"));
  CHECK(store.compareSet("b", "", "new") == "new");
  CHECK(store.compareSet("b", "old", "newer") == "new");
  CHECK(store.compareSet("b", "new", "newer") == "newer");
  CHECK(store.compareSet("c", "there", "newer") == "there");  // as in TCPStore
  CHECK(store.add("n", 40) == 40);
  CHECK(other->add("n", 2) == 42);
  other->append("a", bytes("23"));
  CHECK(store.get_to_str("a") == "123");
  CHECK(store.check({"a", "b"}));
  CHECK_FALSE(store.check({"a", "c"}));
  CHECK(store.getNumKeys() == 3);
  CHECK(store.deleteKey("b"));
  CHECK_FALSE(store.deleteKey("b"));
  CHECK(store.multiGet({"n", "a"}) == std::vector{bytes("42"), bytes("123")});
  CHECK_THROWS_AS(store.wait({"late"}, 50ms), c10::DistStoreError);
  std::thread later([&] {
    std::this_thread::sleep_for(50ms);
    other->set("late", bytes(std::string(100'000, 'x')));
  });
  CHECK(store.get_to_str("late") == std::string(100'000, 'x'));
  later.join();
}

TEST_CASE("A client without the store's secret is rejected and delays no other", "[exec][job]") {
  const Opened opened;
  const auto store = opened.visit();
  store->set("a", bytes("1"));
  const std::string wrong = error_of([&] { opened.visit("another secret, as long"); });
  CHECK(wrong.find("the job's store has another secret (PIPEWRIGHT_JOB_SECRET)") !=
        std::string::npos);
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(opened.port);
  options.waitWorkers = false;
  options.timeout = 500ms;
  CHECK_FALSE(error_of([&] {
                c10d::TCPStore plain("127.0.0.1", options);
                plain.set("a", bytes("2"));
              }).empty());
  // More connections than may wait at once. Half of them send nothing, and half send almost all of
  // a handshake.
  std::vector<int> strangers;
  for (int stranger = 0; stranger < 200; ++stranger) {
    strangers.push_back(test::connected_to(opened.port));
    REQUIRE(strangers.back() >= 0);
    std::string most = SecureChannel(SecureChannel::Role::Client, secret).take_outgoing();
    most.resize(stranger % 2 == 0 ? 0 : most.size() - 1);
    ::send(strangers.back(), most.data(), most.size(), MSG_NOSIGNAL);
    CHECK(store->get("a") == bytes("1"));
  }
  CHECK(opened.visit()->get("a") == bytes("1"));
  CHECK(opened.server->rejected() >= 136 + 1);
  // In the end all of them are rejected.
  for (const int stranger : strangers) {
    timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(stranger, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    std::array<char, 100> said{};
    ssize_t count = 0, all = 0;
    while ((count = ::recv(stranger, said.data(), said.size(), 0)) > 0)
      all += count;
    CHECK(((count == 0) || (count < 0 && errno == ECONNRESET)));
    CHECK(all == 0);
    ::close(stranger);
  }
  CHECK(store->get("a") == bytes("1"));
}

TEST_CASE("rank of a job with a secret", "[.]") {
  auto place = test::rank_place();
  if (!place)
    test::skip("a test starts it");
  const int rank = place->environment.rank;
  const bool odd = rank == 2;
  place->environment.secret =
      odd && place->argument == "wrong" ? "another secret, as long" : secret;
  if (odd && place->argument == "none")
    place->environment.secret.clear();
  try {
    Job job(place->environment, {.join_timeout = 3000ms, .timeout = 3000ms});
    if (odd && place->argument == "impostor")  // in the mesh only
      const_cast<JobEnvironment&>(job.environment()).secret = "another secret, as long";
    try {
      const auto transport = make_gloo_transport(job);
      for (int round = 0; round < 200; ++round) {
        const auto all = transport->all_gather({0, 1, 2}, rank, {at::full({1000}, rank)});
        if (all.at(2).at(0)[999].item().toLong() != 2)
          throw std::runtime_error("wrong");
        std::this_thread::sleep_for(10ms);
      }
      test::say("right");
    } catch (const Aborted& aborted) {
      test::say(aborted.what());
    } catch (const std::exception& error) {
      job.abort(error.what());
      test::say(error.what());
    }
  } catch (const std::exception& error) {
    test::say(error.what());
  }
}

test::RanksSetup with_secrets(const std::string& argument) {
  return {.size = 3, .test_case = "rank of a job with a secret", .argument = argument};
}

TEST_CASE("A job with a secret continues while strangers connect to all its ports",
          "[exec][job][faults]") {
  test::Ranks ranks(with_secrets("right"));
  const test::Uninvited uninvited([&] { return ranks.ids(); });
  for (int rank = 0; rank < 3; ++rank)
    CHECK(ranks.said(rank) == "right\n");
  CHECK(uninvited.visits() > 20);
}

TEST_CASE("A rank with another secret, or none, cannot join the job", "[exec][job][faults]") {
  test::Ranks wrong(with_secrets("wrong")), none(with_secrets("none"));
  CHECK(wrong.said(2).find("the job's store has another secret (PIPEWRIGHT_JOB_SECRET)") !=
        std::string::npos);
  CHECK(wrong.said(0).starts_with("rank 2 of 3 did not join the job at 127.0.0.1:"));
  CHECK(wrong.said(0).ends_with("within 3 s; connections without the job's secret: 1\n"));
  CHECK(none.said(2).find("rank 2 cannot reach the job's store at") != std::string::npos);
  CHECK(none.said(0).find("without the job's secret") != std::string::npos);
}

TEST_CASE("An impostor that connects in place of a rank and does not know the secret is named",
          "[exec][job][faults]") {
  test::Ranks ranks(with_secrets("impostor"));
  const std::string of_0 = ranks.said(0), of_1 = ranks.said(1);
  const std::string words = "the process that connected as rank 2 does not know the job's secret\n";
  CHECK((of_0 + of_1).find(words) != std::string::npos);
  CHECK((of_0 + of_1).find("right") == std::string::npos);
}

}  // namespace job_secret_test
