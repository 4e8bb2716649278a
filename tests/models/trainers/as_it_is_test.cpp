#include "pipewright/models/trainers/as_it_is.hpp"

#include "pipewright/models/measured/megatron_words.hpp"
#include "pipewright/models/megatron/megatron_memory.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace as_it_is_test {

using namespace pipewright::plan;
using namespace pipewright::models;
using pipewright::test::error_of;

MeasuredRun run_of(const std::string& arguments, int gpus) {
  return run_as_it_is(transformer_from_megatron(arguments, "args.sh"), "args.sh", gpus, "H100");
}

const std::string interleaved =
    "--num-layers 12 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 "
    "--max-position-embeddings 1024 --tokenizer-type GPT2BPETokenizer --bf16 "
    "--micro-batch-size 4 --global-batch-size 64 --pipeline-model-parallel-size 2 "
    "--tensor-model-parallel-size 2 --sequence-parallel --num-layers-per-virtual-pipeline-stage 3 "
    "--use-distributed-optimizer --attention-backend unfused --no-gradient-accumulation-fusion ";

TEST_CASE("Arguments and a table's row with the same settings give the same run",
          "[plan][trainers]") {
  const MeasuredRun run = run_of(interleaved, 8);
  const auto table = read_runs(
      "gpus,tp,dp,pp,global_batch,micro_batch,layers,hidden,heads,seq,vocab,vocab_padded,chunks,"
      "zero,sequence_parallel,recompute,precision,bias,norm,attention_dropout,hidden_dropout,"
      "attention_backend,transformer_impl,gpu,family\n"
      "8,2,2,2,64,4,12,512,8,1024,50257,50432,2,1,yes,none,bf16,yes,layernorm,0.1,0.1,unfused,"
      "transformer_engine,H100,gpt\n",
      "runs.csv", RunTimes::Optional);
  REQUIRE(table.runs.size() == 1);
  const MeasuredRun& row = table.runs.front();
  CHECK(run.cut.data == 2);
  CHECK(run.cut == row.cut);
  CHECK(run.training.model.vocabulary == 50432);
  CHECK(run.training.precision == row.training.precision);
  CHECK(run.training.attention == row.training.attention);
  MegatronRun told = megatron_run_of(run), same = megatron_run_of(row);
  for (int rank = 0; rank < 2; ++rank) {
    told.rank = same.rank = rank;
    CHECK(megatron_memory(told).peak == megatron_memory(same).peak);
    CHECK(megatron_memory(told).at_peak.holders() == megatron_memory(same).at_peak.holders());
  }
}

TEST_CASE("Rounds of more or less than one microbatch per rank are accepted", "[plan][trainers]") {
  const MeasuredRun run =
      run_of(interleaved + "--microbatch-group-size-per-virtual-pipeline-stage 3", 8);
  CHECK(run.cut.group == 3);
  CHECK(schedule_name(run.cut) == "megatron-interleaved");
  CHECK(run.microbatches() == 8);
}

TEST_CASE("Sizes that do not fit together are reported by their options", "[plan][trainers]") {
  const auto refusal = [](const std::string& arguments, int gpus) {
    return error_of([&] { run_of(arguments, gpus); });
  };
  CHECK(refusal(interleaved, 6) == "args.sh: --gpus is 6, but tp 2 × dp 1 × pp 2 are 4 devices");
  CHECK(refusal(interleaved + "--num-layers 13 --num-layers-per-virtual-pipeline-stage 13", 8)
            .find("13 layers are not a multiple of 13 on each of 2 ranks") != std::string::npos);
  CHECK(refusal("--num-layers 3 --hidden-size 64 --num-attention-heads 4 --seq-length 128 "
                "--vocab-size 100 --global-batch-size 8 --pipeline-model-parallel-size 2",
                8)
            .find("args.sh: --num-layers 3 does not divide evenly among 2 stages") == 0);
}

}  // namespace as_it_is_test
