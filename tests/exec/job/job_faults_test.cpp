#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "exec/support/processes.hpp"
#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/transport/gloo_transport.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

namespace job_faults_test {

// Ranks that really die, stop or lose their connection. In each test rank 2 of three executes 2B3,
// rank 1 waits for its gradient and rank 0 for that of rank 1.

using namespace pipewright;
using namespace pipewright::exec;
using test::Ranks;
using test::say;

constexpr std::chrono::milliseconds timeout{1600};
/// Time in which a rank sends a heartbeat and the others read it.
constexpr std::chrono::milliseconds two_beats{400};
constexpr std::chrono::milliseconds stall{2500};
constexpr int exit_code_of_stuck = 3;

Transfer transfer(const char* text, int from, int to) {
  return {plan::parse_instruction(text).value(), from, to};
}

/// Returns once all ranks have published their instructions.
void be_at(Job& job, const char* instruction) {
  job.doing(plan::parse_instruction(instruction).value());
  std::this_thread::sleep_for(two_beats);
  say("ready");
}

/// Takes longer than the stall time in total.
void do_many_actions(Job& job) {
  for (int microbatch = 0; microbatch < 8; ++microbatch) {
    job.doing(plan::Instruction{plan::InstructionKind::Backward, 2, microbatch});
    std::this_thread::sleep_for(stall / 6);
  }
}

void do_a_long_phase(Job& job) {
  job.doing("a long phase");
  std::this_thread::sleep_for(stall * 3 / 2);
}

void hang_if(bool hangs) {
  while (hangs)
    ::pause();
}

void wait_for_each_other(Job& job, Transport& transport, const std::string& argument) {
  if (job.rank() == 0) {
    be_at(job, "0F5");
    hang_if(argument == "stall:all");
    transport.receive(transfer("0RECV_B3", 1, 0));
  } else if (job.rank() == 1) {
    be_at(job, "1F4");
    hang_if(argument == "stall:all");
    transport.receive(transfer("1RECV_B3", 2, 1));
    transport.send(transfer("1SEND_B3", 1, 0), {at::ones({1})});
  } else {
    be_at(job, "2B3");
    if (argument == "throw")
      throw std::runtime_error("out of memory");
    if (argument == "abort")
      return transport.abort("rank 2, action 2B3: out of memory");
    if (argument == "stall:circle")
      transport.receive(transfer("2RECV_F3", 1, 2));
    if (argument == "stall:slow")
      do_many_actions(job);
    if (argument == "stall:phase")
      do_a_long_phase(job);
    hang_if(argument == "wait" || argument == "stall:hang" || argument == "stall:all");
    if (argument != "leave")
      transport.send(transfer("2SEND_B3", 2, 1), {at::ones({1})});
  }
}

TEST_CASE("rank of a fault test", "[.]") {
  const auto place = test::rank_place();
  if (!place)
    test::skip("a test starts it");
  try {
    Job job(place->environment,
            {.join_timeout = std::chrono::seconds(20),
             .timeout = timeout,
             .stall = place->argument.starts_with("stall:") ? stall : JobOptions().stall,
             .when_stuck = [](const std::string& why) {
               say("stuck: " + why);
               std::_Exit(exit_code_of_stuck);
             }});
    try {
      if (place->argument == "leave-at-once" && job.rank() == 0)
        return say("end");
      const auto transport = make_gloo_transport(job);
      wait_for_each_other(job, *transport, place->argument);
      say("end");
    } catch (const Aborted& aborted) {
      say(std::string(aborted.what()) + (job.reports_failure() ? " (mine)" : ""));
    }
  } catch (const std::exception& error) {
    say(error.what());
  }
}

Ranks ranks_in(const std::string& role) {
  return Ranks({.size = 3, .test_case = "rank of a fault test", .argument = role});
}

/// Returns once all ranks are where they wait, and the others know it.
void await_all(Ranks& ranks) {
  for (int rank = 0; rank < 3; ++rank)
    REQUIRE(ranks.await_line(rank, "ready"));
  std::this_thread::sleep_for(two_beats);
}

/// Returns the beginning of a text, as long as the text that is expected.
std::string begin_of(const std::string& text, const std::string& expected) {
  return text.substr(0, expected.size());
}

TEST_CASE("Faults: a rank that ends, with a message, an exception or early, ends the others",
          "[exec][faults]") {
  Ranks aborting = ranks_in("abort");
  Ranks throwing = ranks_in("throw");
  Ranks leaving = ranks_in("leave");
  CHECK(aborting.said(2) == "ready\nend\n");
  CHECK(throwing.said(2) == "ready\nout of memory\n");
  CHECK(leaving.said(2) == "ready\nend\n");
  const std::string left =
      "rank 2 has left the job; it was at 2B3; rank 1 waits in 1RECV_B3 for it";
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(aborting.said(rank) == "ready\nrank 2, action 2B3: out of memory\n");
    CHECK(throwing.said(rank) == "ready\nrank 2 has ended early\n");
    CHECK(begin_of(leaving.said(rank), "ready\n" + left) == "ready\n" + left);
  }
  CHECK(leaving.said(1).ends_with(" (mine)\n"));  // only the rank that waited prints the report
  CHECK_FALSE(leaving.said(0).ends_with(" (mine)\n"));
}

TEST_CASE("Faults: a rank that leaves before all are connected does not leave the others waiting",
          "[exec][faults]") {
  Ranks ranks = ranks_in("leave-at-once");
  const std::string report = "rank 0 has left the job; it was at its start";
  CHECK(ranks.said(0) == "end\n");
  CHECK(begin_of(ranks.said(1), report) == report);
  CHECK(begin_of(ranks.said(2), report) == report);
  CHECK(ranks.said(1).find("; rank 1 waits in the setup of connections for it") !=
        std::string::npos);
}

TEST_CASE("Faults: a killed rank is named, with its action and the ranks that wait for it",
          "[exec][faults]") {
  Ranks ranks = ranks_in("wait");
  await_all(ranks);
  ranks.signal(2, SIGKILL);
  const std::string begin = "ready\nrank 2 cannot be reached any more (";  // then Gloo's text
  const std::string rest = "; it was at 2B3; rank 1 waits in 1RECV_B3 for it";
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(begin_of(ranks.said(rank), begin) == begin);
    CHECK(ranks.said(rank).find(rest) != std::string::npos);
    CHECK(ranks.status(rank) == 0);  // it neither hangs nor dies
  }
}

TEST_CASE("Faults: a stopped rank is named once it has sent no heartbeat for the timeout",
          "[exec][faults]") {
  Ranks last = ranks_in("wait");
  Ranks host = ranks_in("wait");  // the host of the store
  await_all(last);
  await_all(host);
  last.signal(2, SIGSTOP);
  host.signal(0, SIGSTOP);
  const std::string of_last =
      "ready\nrank 2 has not been heard of for 1.6 s; it was at 2B3; rank 1 waits in 1RECV_B3 for "
      "it";
  const std::string of_host =
      "ready\nrank 0 has not been heard of for 1.6 s (it hosts the job's store";
  CHECK(begin_of(last.said(0), of_last) == of_last);
  CHECK(begin_of(last.said(1), of_last) == of_last);
  CHECK(begin_of(host.said(1), of_host) == of_host);
}

TEST_CASE("Faults: an action that never ends is named, ends the others, and its process exits",
          "[exec][faults]") {
  Ranks ranks = ranks_in("stall:hang");
  Ranks all = ranks_in("stall:all");
  const std::string report =
      "rank 2 has been at 2B3 for 2.5 s and does not end; rank 1 waits in 1RECV_B3 for it";
  CHECK(begin_of(ranks.said(0), "ready\n" + report) == "ready\n" + report);
  CHECK(begin_of(ranks.said(1), "ready\n" + report) == "ready\n" + report);
  CHECK((ranks.said(0) + ranks.said(1)).find(" (mine)\n") != std::string::npos);
  CHECK(ranks.said(2) == "ready\nstuck: " + report + "\n");
  CHECK(ranks.status(2) == exit_code_of_stuck);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(all.said(rank) ==
          "ready\nstuck: rank 0 has been at 0F5 for 2.5 s and does not end; rank 1 has been at 1F4 "
          "for 2.5 s and does not end; rank 2 has been at 2B3 for 2.5 s and does not end\n");
    CHECK(all.status(rank) == exit_code_of_stuck);
  }
}

TEST_CASE("Faults: a circle of ranks that wait for each other is reported", "[exec][faults]") {
  Ranks ranks = ranks_in("stall:circle");
  const std::string report =
      "ready\nno rank has made progress for 2.5 s: rank 1 (at 1F4) waits in 1RECV_B3 for rank 2; "
      "rank 2 (at 2B3) waits in 2RECV_F3 for rank 1";
  for (int rank = 0; rank < 3; ++rank)
    CHECK(begin_of(ranks.said(rank), report) == report);
}

TEST_CASE("Faults: many actions and a phase of any length are not a stall", "[exec][faults]") {
  Ranks actions = ranks_in("stall:slow");
  Ranks phase = ranks_in("stall:phase");
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(actions.said(rank) == "ready\nend\n");
    CHECK(phase.said(rank) == "ready\nend\n");
  }
}

TEST_CASE("Faults: the other ranks report that the host of the store was killed",
          "[exec][faults]") {
  Ranks ranks = ranks_in("wait");
  await_all(ranks);
  ranks.signal(0, SIGKILL);
  const std::string begin = "ready\nrank 0 is gone (it hosts the job's store at 127.0.0.1:";
  CHECK(begin_of(ranks.said(1), begin) == begin);
  CHECK(ranks.said(1).find("; it was at 0F5") != std::string::npos);
}

TEST_CASE("Faults: a job does not begin before all ranks have joined, and names the missing ones",
          "[exec][faults]") {
  JobEnvironment environment;
  environment.size = 3;
  environment.address = "127.0.0.1";
  environment.port = test::free_port();
  std::string error;
  try {
    const Job job(environment, {.join_timeout = std::chrono::milliseconds(300)});
  } catch (const JobFailure& failure) {
    error = failure.what();
  }
  CHECK(error == fmt::format("ranks 1, 2 of 3 did not join the job at 127.0.0.1:{} within 0.3 s",
                             environment.port));
}

/// Two network namespaces connected by a cable; removed at the end.
class Cable {
 public:
  Cable() {
    works_ = ::geteuid() == 0 && run("ip netns add {0}a && ip netns add {0}b") &&
             run("ip link add {0}x netns {0}a type veth peer name {0}y netns {0}b") &&
             run("ip -n {0}a addr add 10.94.0.1/24 dev {0}x && ip -n {0}a link set {0}x up") &&
             run("ip -n {0}b addr add 10.94.0.2/24 dev {0}y && ip -n {0}b link set {0}y up") &&
             run("ip -n {0}a link set lo up && ip -n {0}b link set lo up");
  }
  ~Cable() { run("ip netns del {0}a; ip netns del {0}b"); }
  Cable(const Cable&) = delete;
  Cable& operator=(const Cable&) = delete;

  bool works() const { return works_; }
  bool cut() const { return run("ip -n {0}a link set {0}x down"); }
  std::vector<std::string> inside(const char* end) const {
    return {"ip", "netns", "exec", name_ + end};
  }

 private:
  bool run(const char* command) const {
    const std::string text = fmt::format(fmt::runtime(command), name_);
    return std::system(("{ " + text + "; } >/dev/null 2>&1").c_str()) == 0;
  }

  std::string name_ = fmt::format("pw{}", ::getpid());
  bool works_ = false;
};

TEST_CASE("Faults: a cut link ends the ranks on both sides, which name one of the other side",
          "[exec][faults]") {
  const Cable cable;
  if (!cable.works())
    test::skip("no network namespaces for this user");
  Ranks ranks(
      {.size = 3,
       .test_case = "rank of a fault test",
       .argument = "wait",
       .address = "10.94.0.1",
       .commands = {{0, cable.inside("a")}, {1, cable.inside("b")}, {2, cable.inside("b")}}});
  await_all(ranks);
  REQUIRE(cable.cut());
  const std::string silent = " has not been heard of for 1.6 s";
  CHECK(ranks.said(0).find(silent) != std::string::npos);  // rank 1 or 2: the older heartbeat
  CHECK(begin_of(ranks.said(1), "ready\nrank 0" + silent) == "ready\nrank 0" + silent);
}

}  // namespace job_faults_test
