// Checks that what is measured is what is trained: the profiler's layers run the same operators
// (kernels on a GPU) as the executor's stage.

#include <ATen/record_function.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "exec/support/small_gpt.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/profiler/activity/work_log.hpp"
#include "pipewright/profiler/profile/inspection.hpp"
#include "pipewright/profiler/sections/rehearsal.hpp"
#include "support/catch.hpp"
#include "support/make_schedule.hpp"
#include "support/skip.hpp"

namespace profiled_kernels_test {

using namespace pipewright;
using namespace pipewright::profiler;
using Kind = plan::InstructionKind;

/// Number of runs by name, in all instructions of one kind in a step.
using Names = std::map<std::string, double>;
using NamesOfKind = std::map<Kind, Names>;

/// Returns false for memory operators and work between layers: training reads the loss and makes
/// its gradient, and observed layers have separate graphs.
bool is_of_layers(const std::string& name) {
  static const std::set<std::string> others{"aten::detach",
                                            "detach",
                                            "aten::empty",
                                            "aten::empty_like",
                                            "aten::empty_strided",
                                            "aten::item",
                                            "aten::_local_scalar_dense",
                                            "aten::full_like",
                                            "aten::fill_"};
  return !others.contains(name) && !name.starts_with("autograd::engine::");
}

NamesOfKind names_in(const WorkReport& report) {
  NamesOfKind names;
  for (const WorkPart& part : report.parts)
    for (const KernelSum& kernel : part.kernels) {
      // If several gradients meet, autograd adds in place unless the first gradient has other
      // references.
      const std::string name = kernel.name == "aten::add_" ? "aten::add" : kernel.name;
      // An observed optimizer steps layer by layer, otherwise all layers of a stage at once.
      if (is_of_layers(name) && part.kind != Kind::OptimizerStep)
        names[part.kind][name] += std::round(kernel.count * part.times);
    }
  return names;
}

plan::Program two_microbatches(const char* schedule) {
  return plan::lower(test::make(schedule, 1, 2));
}

NamesOfKind trained(const exec::TrainingSetup& setup, const char* schedule, ActivitySource& source,
                    const std::vector<exec::RankDevice>& devices) {
  WorkLog log(source);
  exec::Executor executor(
      two_microbatches(schedule), test::small_partition(1), setup,
      {.starting = [&](const plan::Instruction& i) { log.begin(0, i); }, .devices = devices});
  executor.step(0);
  log.start();
  executor.step(0);
  log.stop();
  auto ranges = log.take();
  return names_in(work_report({{source.collect(), std::move(ranges)}}));
}

NamesOfKind rehearsed(const exec::TrainingSetup& setup, const char* schedule,
                      ActivitySource& source, const exec::RankDevice& where) {
  const LayerBench bench(setup, where);
  const plan::Program program = two_microbatches(schedule);
  const plan::Partition partition = test::small_partition(1);
  Rehearsal rehearsal(bench, {program, partition, exec::gradient_groups(program, setup, 1)},
                      borders_of(bench, partition));
  WorkLog log(source);
  rehearsal.play_through(nullptr);
  log.start();
  rehearsal.play_through(&log);
  log.stop();
  auto ranges = log.take();
  return names_in(work_report({{source.collect(), std::move(ranges)}}));
}

/// Scales the inspection's counts, which are of two forwards and one backward of each kind.
NamesOfKind inspected(const exec::TrainingSetup& setup, ActivitySource& source,
                      const exec::RankDevice& where) {
  NamesOfKind names = names_in(inspect(LayerBench(setup, where), source, 1).report);
  for (auto& [kind, own] : names)
    for (auto& [name, count] : own)
      count *= kind == Kind::Forward ? 1 : 2;
  return names;
}

/// Checks in exact mode and without.
void check_measured_as_trained(ActivitySource& source,
                               const std::vector<exec::RankDevice>& devices) {
  const exec::RankDevice where = devices.empty() ? exec::RankDevice{} : devices.front();
  for (const bool exact : {true, false})
    for (const char* schedule : {"1f1b", "zb-h1"}) {
      auto setup = test::small_setup();
      setup.exact = exact;
      const auto wanted = trained(setup, schedule, source, devices);
      const auto found = rehearsed(setup, schedule, source, where);
      const auto on_bench = inspected(setup, source, where);
      CHECK(wanted.contains(Kind::Forward));
      for (const auto& [kind, names] : wanted) {
        CAPTURE(exact, schedule, plan::traits_of(kind).word);
        REQUIRE(found.contains(kind));
        CHECK(found.at(kind) == names);
        if (kind != Kind::Load)
          CHECK(on_bench.at(kind) == names);
      }
    }
}

TEST_CASE("The operators of a layer, inspected and rehearsed, are those of training",
          "[profiler]") {
  check_measured_as_trained(*operator_source(), {});
}

TEST_CASE("On a GPU the kernels of a layer, inspected and rehearsed, are those of training",
          "[cuda]") {
  if (exec::gpus().names.empty())
    test::skip(exec::gpus().why_none);
  check_measured_as_trained(*cupti_source(), exec::on_gpus(1));
}

/// Records copies from the host to a GPU while it lives, on any thread.
class Copies {
 public:
  Copies() : callback_(at::addGlobalCallback(watching())) {}
  ~Copies() { at::removeCallback(callback_); }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  struct Copy {
    at::Tensor from;
    bool non_blocking = false;
  };
  static std::vector<Copy>& seen() {
    static std::vector<Copy> copies;
    return copies;
  }

 private:
  static at::RecordFunctionCallback watching() {
    return at::RecordFunctionCallback([](const at::RecordFunction& call) {
             note(call);
             return std::unique_ptr<at::ObserverContext>();
           })
        .needsInputs(true)
        .scopes({at::RecordScope::FUNCTION});
  }
  static void note(const at::RecordFunction& call) {
    const auto inputs = call.inputs();
    if (std::string(call.name()) == "aten::copy_" && inputs.size() == 3 &&
        inputs[0].toTensor().is_cuda() && inputs[1].toTensor().is_cpu())
      seen().push_back({inputs[1].toTensor(), inputs[2].toBool()});
  }

  at::CallbackHandle callback_;
};

TEST_CASE("On a GPU the layer bench loads from pinned memory without waiting for copies",
          "[cuda]") {
  if (exec::gpus().names.empty())
    test::skip(exec::gpus().why_none);
  const auto setup = test::small_setup();
  const LayerBench bench(setup, exec::on_gpus(1).front());
  const plan::Program program = two_microbatches("1f1b");
  Rehearsal rehearsal(
      bench, {program, test::small_partition(1), exec::gradient_groups(program, setup, 1)}, {{}});
  Copies::seen().clear();
  {
    const Copies watching;
    rehearsal.play_through(nullptr);
  }
  const auto copies = std::exchange(Copies::seen(), {});
  CHECK(copies.size() == 4);  // inputs and targets of two microbatches
  for (const auto& [from, non_blocking] : copies) {
    CHECK(from.is_pinned());
    CHECK(non_blocking);
  }
}

}  // namespace profiled_kernels_test
