// A job that has a secret, and who comes without it.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <signal.h>

#include <array>
#include <chrono>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "exec/support/processes.hpp"
#include "job/sealed.hpp"
#include "job/sha256.hpp"
#include "job/store_of_secret.hpp"
#include "pipewright/exec/aborted.hpp"
#include "pipewright/exec/transport/gloo_transport.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"
#include "support/uninvited.hpp"

namespace job_secret_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace std::chrono_literals;

/// What `body` throws says; empty: nothing.
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

TEST_CASE("SHA-256 has the digests of FIPS 180-4, and its proofs are those of RFC 4231",
          "[exec][job]") {
  CHECK(in_hex(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(in_hex(sha256("abc")) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(in_hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(in_hex(sha256(std::string(1'000'000, 'a'))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(in_hex(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(in_hex(hmac_sha256(std::string(131, '\xaa'),
                           "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("a message that was altered, left out or said twice is not taken", "[exec][job]") {
  const std::string challenge = handshake::challenge();
  const std::string answer = handshake::answer(secret, challenge);
  REQUIRE(handshake::is_proven(secret, challenge, answer));
  CHECK_FALSE(handshake::is_proven(secret + ".", challenge, answer));
  CHECK_FALSE(handshake::is_proven(secret, handshake::challenge(), answer));
  const auto end = [&](Sealed::End own) { return Sealed(secret, challenge, answer, own); };
  Sealed rank = end(Sealed::End::Rank);
  const std::string first = rank.closed({"set", "name", "value"}), second = rank.closed({"count"});
  const std::string refused = "a message of the job's store is not from who shares its secret";
  const auto error = [&](Sealed store, std::string line) {
    return error_of([&] { store.opened(line); });
  };
  std::string line = first + second;
  Sealed store = end(Sealed::End::Store);
  CHECK(store.opened(line) == Message{"set", "name", "value"});
  CHECK(store.opened(line) == Message{"count"});
  CHECK(line.empty());
  CHECK(error(store, second) == refused);                    // twice
  CHECK(error(end(Sealed::End::Store), second) == refused);  // the first was left out
  CHECK(error(end(Sealed::End::Rank), first) == refused);    // said back to who said it
  for (std::size_t byte = 4; byte < first.size(); ++byte) {
    std::string altered = first;
    altered[byte] = static_cast<char>(altered[byte] ^ 1);
    CHECK(error(end(Sealed::End::Store), altered) == refused);
  }
}

/// A store on this machine with one that uses it as it should.
struct Opened {
  std::shared_ptr<StoreServer> server = std::make_shared<StoreServer>(listen_everywhere(0), secret);
  int port = server->port();

  c10::intrusive_ptr<StoreOfSecret> visit(const std::string& with = secret) const {
    return c10::make_intrusive<StoreOfSecret>(StoreOfSecret::Place{"127.0.0.1", port, with}, 3000ms,
                                              nullptr);
  }
};

std::vector<std::uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }

TEST_CASE("a store with a secret does what c10d asks of one", "[exec][job]") {
  const Opened opened;
  const auto one = opened.visit(), other = opened.visit();
  c10d::Store& store = *one;
  store.set("a", "1");
  CHECK(other->get("a") == bytes("1"));
  CHECK(store.compareSet("b", "", "new") == "new");
  CHECK(store.compareSet("b", "old", "newer") == "new");
  CHECK(store.compareSet("b", "new", "newer") == "newer");
  CHECK(store.compareSet("c", "there", "newer") == "there");  // as TCPStore has it
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

TEST_CASE("who comes to the store without its secret is turned away and holds up nobody",
          "[exec][job]") {
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
  // More than may wait at once, of which half say nothing, and half almost all of an answer.
  std::vector<int> strangers;
  for (int stranger = 0; stranger < 200; ++stranger) {
    strangers.push_back(test::connected_to(opened.port));
    REQUIRE(strangers.back() >= 0);
    const std::string most(stranger % 2 == 0 ? 0 : handshake::answer_bytes - 1, 'x');
    ::send(strangers.back(), most.data(), most.size(), MSG_NOSIGNAL);
    CHECK(store->get("a") == bytes("1"));
  }
  CHECK(opened.visit()->get("a") == bytes("1"));
  CHECK(opened.server->turned_away() >= 136 + 1);
  // In the end, all of them.
  for (const int stranger : strangers) {
    timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(stranger, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    std::array<char, 100> said{};
    ssize_t count = 0, all = 0;
    while ((count = ::recv(stranger, said.data(), said.size(), 0)) > 0)
      all += count;
    CHECK(((count == 0) || (count < 0 && errno == ECONNRESET)));
    CHECK(all <= static_cast<ssize_t>(handshake::challenge_bytes));
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
    if (odd && place->argument == "impostor")  // in the mesh alone
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

TEST_CASE("a job with a secret goes on while others knock at all its ports",
          "[exec][job][faults]") {
  test::Ranks ranks(with_secrets("right"));
  const test::Uninvited uninvited([&] { return ranks.ids(); });
  for (int rank = 0; rank < 3; ++rank)
    CHECK(ranks.said(rank) == "right\n");
  CHECK(uninvited.visits() > 20);
}

TEST_CASE("a rank with another secret, or none, does not get into the job", "[exec][job][faults]") {
  test::Ranks wrong(with_secrets("wrong")), none(with_secrets("none"));
  CHECK(wrong.said(2).find("the job's store has another secret (PIPEWRIGHT_JOB_SECRET)") !=
        std::string::npos);
  CHECK(wrong.said(0).starts_with("rank 2 of 3 did not join the job at 127.0.0.1:"));
  CHECK(wrong.said(0).ends_with("within 3 s; without the job's secret 1 have come\n"));
  CHECK(none.said(2).find("rank 2 cannot reach the job's store at") != std::string::npos);
  CHECK(none.said(0).find("without the job's secret") != std::string::npos);
}

TEST_CASE("who stands in for a rank between two others, and does not know the secret, is named",
          "[exec][job][faults]") {
  test::Ranks ranks(with_secrets("impostor"));
  const std::string of_0 = ranks.said(0), of_1 = ranks.said(1);
  const std::string words = "who has connected as rank 2 does not know the job's secret\n";
  CHECK((of_0 + of_1).find(words) != std::string::npos);
  CHECK((of_0 + of_1).find("right") == std::string::npos);
}

}  // namespace job_secret_test
