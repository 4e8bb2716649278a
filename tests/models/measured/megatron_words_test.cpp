#include "pipewright/models/measured/megatron_words.hpp"

#include <algorithm>
#include <cmath>

#include "pipewright/models/megatron/megatron_memory.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reference.hpp"

namespace megatron_words_test {

using namespace pipewright::plan;
using namespace pipewright::test;
using namespace pipewright::models;
using Catch::Matchers::Contains;

const std::string header =
    "id,family,platform,golden_date,gpu,gpus,tp,dp,pp,global_batch,micro_batch,layers,hidden,heads,"
    "seq,vocab_padded,zero,precision,attention_backend,transformer_impl,optimizer,mem_rank,"
    "cuda_graph,other_args,env\n";
const std::string start = "a,gpt,dgx_h100,2025-08-17,H100-80GB,8,1,2,4,32,4,12,512,8,1024,50304,0,";

MegatronRun run_of(const std::string& end) {
  const RunTable table = read_runs(header + start + end + "\n", "t.csv", RunTimes::Optional);
  REQUIRE(table.runs.size() == 1);
  CHECK(tells_megatron(table.runs.front()));
  return megatron_run_of(table.runs.front());
}

TEST_CASE("A row with Megatron's options is a run of the last rank", "[plan][measured]") {
  const MegatronRun run = run_of(
      "bf16,auto,transformer_engine,adam,last,no,wgrad-deferral-limit=2; qk-layernorm,"
      "CUBLAS_WORKSPACE_CONFIG=:4096:2:16:8 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  CHECK(run.rank == 3);
  CHECK(run.gpu == GpuKind::Hopper);
  CHECK(run.date == 20250817);
  CHECK(run.training.model.vocabulary == 50304);
  CHECK(run.training.model.head_norms);
  CHECK(run.deferred_head_gradients == 2);
  CHECK(run.cublas_workspace == (2 * 4096 + 8 * 16) * 1024);
  CHECK(run.expandable_segments);
  CHECK(run.gradient_bytes == 4);
}

TEST_CASE("Unsupported settings of a row are rejected with their column", "[plan][measured]") {
  CHECK_THAT(error_of([&] { run_of("bf16,auto,transformer_engine,muon,last,no,,"); }),
             Contains("optimizer is \"muon\""));
  CHECK_THAT(error_of([&] { run_of("bf16,auto,transformer_engine,adam,last,local,,"); }),
             Contains("cuda_graph is \"local\""));
  CHECK_THAT(
      error_of([&] { run_of("bf16,auto,transformer_engine,adam,last,no,use-megatron-fsdp,"); }),
      Contains("use-megatron-fsdp"));
  CHECK_THAT(error_of([&] { run_of("bf16,magic,transformer_engine,adam,last,no,,"); }),
             Contains("attention_backend is \"magic\": auto, flash"));
}

TEST_CASE("Ratios of layer kinds place a hybrid's layers as Megatron does", "[plan][measured]") {
  CHECK(hybrid_pattern("hybrid-layer-pattern=M-|M*; squared-relu", 4) == "M-|M*");
  CHECK(hybrid_pattern("hybrid-attention-ratio=0.3; hybrid-mlp-ratio=0.2", 10) == "MM*M-*M*M-");
  CHECK(hybrid_pattern("squared-relu", 4).empty());
}

/// The values of |predicted / measured - 1| of runs.
struct Errors {
  std::vector<double> peak, allocated;
  void add(const MeasuredRun& run, const MegatronMemory& memory) {
    const auto off = [](Bytes predicted, Bytes measured) {
      return std::abs(static_cast<double>(predicted.value) / static_cast<double>(measured.value) -
                      1);
    };
    peak.push_back(off(memory.peak, run.peak_memory.value()));
    allocated.push_back(off(memory.allocated, run.allocated_memory.value()));
  }
};

double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values.at(static_cast<std::size_t>(part * static_cast<double>(values.size() - 1)));
}

TEST_CASE(
    "The memory of Megatron-LM's own tests is predicted: peaks within 1 % in the median, 4 % at "
    "the 90th percentile",
    "[plan][measured][reference]") {
  const RunTable table =
      read_runs(reference_file("papers/megatron_golden_visible.csv"), RunTimes::Optional);
  Errors all, recent;
  for (const MeasuredRun& run : table.runs) {
    const MegatronMemory memory = megatron_memory(megatron_run_of(run));
    all.add(run, memory);
    if (run.options.platform.starts_with("dgx_") && run.options.repeat == 1 &&
        run.options.date >= "2025-06-01")
      recent.add(run, memory);
  }
  CHECK(table.refused.size() == 11);  // their number of GPUs is not public
  REQUIRE(recent.peak.size() == 88);
  REQUIRE(all.peak.size() == 191);
  CHECK(quantile(recent.peak, 0.5) < 0.002);
  CHECK(quantile(recent.peak, 0.9) < 0.01);
  CHECK(quantile(recent.allocated, 0.5) < 0.004);
  CHECK(quantile(recent.allocated, 0.9) < 0.015);
  CHECK(quantile(all.peak, 0.5) < 0.002);
  CHECK(quantile(all.peak, 0.9) < 0.01);
  CHECK(quantile(all.allocated, 0.5) < 0.004);
  CHECK(quantile(all.allocated, 1) < 0.04);
  CHECK(quantile(all.peak, 1) < 0.04);
}

}  // namespace megatron_words_test
