// A process that joins its job with one call.

#include "pipewright/engine/member.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "pipewright/engine/engine.hpp"
#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/job/local_job.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace member_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;

const plan::Topology two_by_two({"data", "pipe"}, {2, 2});

/// Returns the losses of two steps on whole batches whose samples do not divide evenly.
std::string losses_of(const Member& member) {
  const auto linear = [] { return torch::nn::Linear(4, 4); };
  const auto masked = [](torch::nn::Linear& module, const at::Tensor& x,
                         const CallContext& context) {
    return module(x) * context.keyword("mask");
  };
  EngineOptions options{
      .train_batch_size = 8, .microbatch_size = 2, .execution = member.execution()};
  options.execution.dynamic_shapes = true;
  PipelineEngine engine(
      {{module_layer("a", linear), keyword_layer(module_layer("b", linear, masked), {"mask"})},
       {.topology = two_by_two,
        .partition = std::string("uniform"),
        .loss = [](const Tensors& outputs,
                   const Tensors& targets) { return at::mse_loss(outputs.at(0), targets.at(0)); }}},
      options);
  const at::Tensor x = at::arange(7 * 4, at::kFloat).view({7, 4}).sin();
  WholeBatch batch{.keywords = {{"mask", at::linspace(0, 1, 7).view({7, 1})}}};
  if (engine.is_first_stage())
    batch.inputs = {x};
  if (engine.is_last_stage())
    batch.targets = {x.cos()};
  std::string losses;
  for (int step = 0; step < 2; ++step) {
    const BatchStep result = engine.step(batch).value();
    for (const double loss : result.step.losses)
      losses += fmt::format("{:a} ", loss);
  }
  const auto outputs =
      engine.evaluate(batch, {.outputs = true, .share_loss = false}).value().outputs;
  return losses + (outputs.empty() ? "" : fmt::format("{}", outputs[0].size(0)));
}

/// The part of one rank of the job.
TEST_CASE("member of a job", "[.member-rank]") {
  const char* const folder = std::getenv("MEMBER_TEST_FOLDER");
  if (folder == nullptr)
    return;
  Member member(two_by_two);
  take_part(member, [&] {
    std::ofstream file(fmt::format("{}/{}", folder, *member.rank()));
    file << losses_of(member) << '\n'
         << fmt::format("{}", fmt::join(member.group_along("data"), " ")) << '\n'
         << fmt::format("{}", fmt::join(member.from_all(fmt::format("r{}", *member.rank())), " "))
         << '\n'
         << member.from_first(fmt::format("of {}", *member.rank())) << '\n';
  });
  SUCCEED("it has written what it knows");
}

TEST_CASE("A process that a launcher has started joins its job with one call", "[job]") {
  const Member alone;
  const std::string expected = losses_of(alone);
  const test::TempFolder folder;
  ::setenv("MEMBER_TEST_FOLDER", folder.path().c_str(), 1);
  const int code = run_local_job({.words = {"tests", "[.member-rank]"}, .ranks = 4});
  ::unsetenv("MEMBER_TEST_FOLDER");
  REQUIRE(code == 0);
  const std::string without_outputs = expected.substr(0, expected.rfind(' ') + 1);
  for (int rank = 0; rank < 4; ++rank) {
    std::ifstream file(folder.path() / std::to_string(rank));
    std::string line;
    std::getline(file, line);
    // Ranks 1 and 3 have the last stages: 4 and 3 of 7 samples.
    CHECK(line == without_outputs + (rank == 1 ? "4" : rank == 3 ? "3" : ""));
    std::getline(file, line);
    CHECK(line == (rank % 2 == 0 ? "0 2" : "1 3"));
    std::getline(file, line);
    CHECK(line == "r0 r1 r2 r3");
    std::getline(file, line);
    CHECK(line == "of 0");
  }
}

TEST_CASE("A member without a job has all ranks as threads", "[exec]") {
  Member alone(two_by_two);
  CHECK_FALSE(alone.in_job());
  CHECK(alone.is_first());
  CHECK(alone.execution().axes == std::vector<std::string>{"data", "pipe"});
  CHECK_FALSE(alone.execution().transport);
  CHECK(alone.from_all("x") == std::vector<std::string>{"x"});
  CHECK(test::error_of([&] { alone.group_along("pipe"); })
            .starts_with(
                "there is no single group along axis \"pipe\", because all ranks are threads"));
}

}  // namespace member_test
