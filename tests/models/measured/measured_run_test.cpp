#include "pipewright/models/measured/measured_run.hpp"

#include "pipewright/models/transformer/transformer_counts.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reference.hpp"

namespace measured_run_test {

using namespace pipewright::plan;
using namespace pipewright::models;
using pipewright::test::error_of;

const std::string header =
    "id,gpus,tp,dp,pp,global_batch,micro_batch,layers,hidden,heads,seq,iter_ms\n";

RunTable read(const std::string& text, RunTimes times = RunTimes::Needed) {
  return read_runs(std::string_view(text), "runs.csv", times);
}
std::string refusal(const std::string& text) {
  return error_of([&] { read(text); });
}

TEST_CASE("A table of runs is read with the defaults of a GPT", "[plan][measured]") {
  const RunTable table = read(header + "a,8,4,1,2,8,2,20,2048,16,1024,160.6\n");
  REQUIRE(table.runs.size() == 1);
  const MeasuredRun& run = table.runs.front();
  CHECK(run.id == "a");
  CHECK(run.line == 2);
  CHECK(run.microbatches() == 4);
  CHECK(run.training.model.kv_heads == 16);
  CHECK(run.training.model.head_channels == 128);
  CHECK(run.training.model.feed_forward == 8192);
  CHECK(run.training.model.vocabulary == 50257);
  CHECK_FALSE(run.tells_recompute);
  CHECK(run.iteration->value == Approx(0.1606));
  CHECK(table.ignored.empty());
}

TEST_CASE("Optional columns, alternative names and seconds are understood", "[plan][measured]") {
  const RunTable table = read(
      "gpus,tensor,data,pipeline,global_batch,mbs,layers,hidden,heads,sequence,iter_s,vp,recompute,"
      "zero,sp,cp,kv_heads,ffn,gated,vocab,precision,attention,memory_gb,color\r\n"
      "\"64\",8,1,8, 64 "
      ",1,96,12288,96,2048,13.75,3,selective,1,yes,1,8,28672,true,51200,bf16,fused,"
      "71.5,\"red, or so\"\r\n");
  const MeasuredRun& run = table.runs.front();
  CHECK(run.id == "line 2");
  CHECK(run.cut.chunks == 3);
  CHECK(run.tells_recompute);
  CHECK(run.cut.recompute == RecomputeMode::Selective);
  CHECK(run.cut.zero == 1);
  CHECK(run.cut.sequence_parallel);
  CHECK(run.training.model.kv_heads == 8);
  CHECK(run.training.model.feed_forward == 28672);
  CHECK(run.training.model.gated);
  CHECK(run.training.attention == AttentionKind::Fused);
  CHECK(run.peak_memory->value == 71'500'000'000);
  CHECK(run.iteration->value == 13.75);
  CHECK(table.ignored == std::vector<std::string>{"color"});
}

TEST_CASE("If layers do not divide, the embedding and the head may count as one each",
          "[plan][measured]") {
  const MeasuredRun run = read(header + "a,16,1,1,16,16,1,126,2048,16,1024,160.6\n").runs.front();
  std::vector<int> layers(16, 8);
  layers.front() = layers.back() = 7;
  CHECK(run.cut.stage_layers == layers);
  CHECK(read(header + "a,4,1,1,4,16,1,24,2048,16,1024,160.6\n")
            .runs.front()
            .cut.stage_layers.empty());
  // A stage with only the embedding would have no layer.
  CHECK(refusal(header + "a,4,1,1,4,16,1,2,2048,16,1024,160.6\n").find("pp is 4") !=
        std::string::npos);
}

TEST_CASE("A layer of a GPT has 12 h² + 13 h parameters", "[plan][measured]") {
  const MeasuredRun run = read(header + "a,1,1,1,1,8,2,20,2048,16,1024,1\n").runs.front();
  CHECK(layer_parameters(run.training.model) == 12.0 * 2048 * 2048 + 13.0 * 2048);
  CHECK(embedding_parameters(run.training) == (50257.0 + 1024) * 2048);
}

TEST_CASE("A run's own recomputation overrides the assumed one", "[plan][measured]") {
  MeasuredRun run;
  CHECK(run.cut_if(RecomputeMode::Full).recompute == RecomputeMode::Full);
  run.tells_recompute = true;
  CHECK(run.cut_if(RecomputeMode::Full).recompute == RecomputeMode::None);
}

TEST_CASE("Experts of a table form a mixture after its dense layers", "[plan][measured]") {
  const std::string columns =
      "gpus,tp,dp,pp,global_batch,micro_batch,layers,hidden,heads,seq,iter_ms,experts,top_k,"
      "expert_ffn,shared_experts,dense_layers\n";
  const TransformerConfig model =
      read(columns + "1,1,1,1,8,2,20,2048,16,1024,1,64,4,512,2,3\n").runs.front().training.model;
  CHECK(model.has_mixture());
  CHECK(model.leading_dense_layers() == 3);
  CHECK(model.shared_feed_forward == 2 * 512);
  CHECK(refusal(columns + "1,1,1,1,8,2,20,2048,16,1024,1,64,4,9999999,200,3\n") ==
        "runs.csv:2:44: shared_experts is 200, of 9999999 channels each: at most 1000000000 "
        "channels in total are possible");
}

TEST_CASE("A run without a time can be predicted, but not used for calibration",
          "[plan][measured]") {
  const std::string text = header + "a,8,4,1,2,8,2,20,2048,16,1024,\n";
  CHECK_FALSE(read(text, RunTimes::Optional).runs.front().iteration);
  CHECK(refusal(text) ==
        "runs.csv:2:31: iter_ms is empty: a run to calibrate from needs the time of an iteration");
}

TEST_CASE("Impossible runs are rejected, all of a file at once, with valid values",
          "[plan][measured]") {
  CHECK(refusal(header + "a,8,4,2,2,8,2,20,2048,16,1024,1\n"
                         "b,6,1,1,6,8,2,20,2048,16,1024,1\n"
                         "c,4,4,1,1,8,3,20,2048,16,1024,1\n"
                         "d,4,4,1,1,8,2,20,2048,18,1024,1\n"
                         "e,3,1,3,1,8,2,20,2048,16,1024,1\n") ==
        "runs.csv:2:3: gpus is 8, but tp 4 × dp 2 × pp 2 are 16 devices\n"
        "runs.csv:3:9: pp is 6, which does not divide layers 20: 5 or 10 would\n"
        "runs.csv:4:13: micro_batch is 3, which does not divide samples of a pipeline 8: 2 or 4 "
        "would\n"
        "runs.csv:5:5: tp is 4, which does not divide heads 18: 3 or 6 would\n"
        "runs.csv:5:23: heads is 18, which does not divide hidden 2048: 16 or 32 would\n"
        "runs.csv:6:7: dp is 3, which does not divide global_batch 8: 2 or 4 would");
}

TEST_CASE("Cells that are not numbers are rejected with their value", "[plan][measured]") {
  CHECK(
      refusal(header + "a,8,four,1,2,8,2,20,2048,16,1024,1\n"
                       "b,8,4,1,2.5,8,2,20,2048,16,1024,-3\n"
                       "c,8,4,1,2,8,2,20,2048,16,1e999,nan\n") ==
      "runs.csv:2:5: tp is \"four\", a whole number from 1 to 10000000 is needed here\n"
      "runs.csv:3:9: pp is \"2.5\", a whole number from 1 to 10000000 is needed here\n"
      "runs.csv:3:33: iter_ms is \"-3\", the time of an iteration is needed here, more than 0 and "
      "less than a million seconds\n"
      "runs.csv:4:26: seq is \"1e999\", a whole number from 1 to 10000000 is needed here\n"
      "runs.csv:4:32: iter_ms is \"nan\", the time of an iteration is needed here, more than 0 "
      "and less than a million seconds");
}

TEST_CASE("Headers and lines that do not match are rejected", "[plan][measured]") {
  CHECK(refusal("") == "runs.csv: is empty: a header and a line for each run are needed");
  CHECK(refusal(header) == "runs.csv: has a header and no runs");
  CHECK(refusal("gpus,tp,dp,pp,global_batch,microbach,layers,hidden,heads,seq\n1\n") ==
        "runs.csv:1:1: no column \"micro_batch\", did you mean \"microbach\"?\n"
        "runs.csv:1:1: no column \"iter_ms\" or \"iter_s\": the time of each run is needed");
  CHECK(refusal(header + "a,8,4\n") == "runs.csv:2:1: 3 cells, but the header has 12");
  CHECK(refusal("gpus,gpus\n").find("runs.csv:1:6: \"gpus\" appears twice") == 0);
  CHECK(refusal(header + "\"a,8,4,1,2,8,2,20,2048,16,1024,1\n")
            .find("runs.csv:2:1: a quote is opened and never closed") == 0);
}

TEST_CASE("Interleaved stages need pipelines, and layers for each", "[plan][measured]") {
  const std::string chunked =
      "gpus,tp,dp,pp,chunks,global_batch,micro_batch,layers,hidden,heads,seq,iter_ms\n";
  CHECK(refusal(chunked + "1,1,1,1,2,8,1,20,2048,16,1024,1\n"
                          "4,1,1,4,4,8,1,24,2048,16,1024,1\n") ==
        "runs.csv:2:9: chunks is 2, but one stage alone has no chunks\n"
        "runs.csv:3:9: chunks is 4, which does not divide layers of a rank 6: 3 or 6 would");
}

TEST_CASE("In Megatron-LM, the last round may be incomplete", "[plan][measured]") {
  const std::string chunked =
      "gpus,tp,dp,pp,chunks,global_batch,micro_batch,layers,hidden,heads,seq,iter_ms,other_args\n";
  const auto cut = [&](const std::string& batch, const std::string& arguments) {
    return read(chunked + "4,1,1,4,2," + batch + ",1,24,2048,16,1024,1," + arguments + "\n")
        .runs.front()
        .cut;
  };
  CHECK(schedule_name(cut("8", "")) == "interleaved-1f1b");
  CHECK(schedule_name(cut("6", "")) == "megatron-interleaved");
  CHECK(cut("6", "").group == 4);
  CHECK(cut("10", "a=1; microbatch-group-size-per-virtual-pipeline-stage=5").group == 5);
}

const std::string staged =
    "gpus,tp,dp,pp,global_batch,micro_batch,layers,hidden,heads,seq,iter_ms,pipeline_layout,"
    "first_stage_layers,last_stage_layers,embedding_counts_as_layer,loss_counts_as_layer,"
    "layers_per_virtual_stage\n";

TEST_CASE("Stages of unequal layers can be given in each of Megatron-LM's ways",
          "[plan][measured]") {
  const auto cut = [](const std::string& layers, const std::string& words) {
    return read(staged + "4,1,1,4,8,1," + layers + ",2048,16,1024,1," + words + "\n")
        .runs.front()
        .cut;
  };
  using Layers = std::vector<int>;
  CHECK(cut("12", "Et|(tt|)*5t|L,,,,,").stage_layers == Layers{1, 2, 2, 2, 2, 2, 1, 0});
  CHECK(cut("12", "Et|(tt|)*5t|L,,,,,").chunks == 2);
  CHECK(cut("12", ",2,2,,,").stage_layers == Layers{2, 4, 4, 2});
  CHECK(cut("14", ",,2,,,").stage_layers == Layers{4, 4, 4, 2});
  CHECK(cut("6", ",,,yes,yes,").stage_layers == Layers{1, 2, 2, 1});
  CHECK(cut("7", ",,,no,yes,").stage_layers == Layers{2, 2, 2, 1});
  CHECK(cut("14", ",,,yes,yes,1").stage_layers ==
        Layers{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0});
  CHECK(cut("12", ",,,,,1").chunks == 3);
  CHECK(cut("12", ",,,,,").stage_layers.empty());
}

TEST_CASE("Impossible stages are rejected in the column that gives them", "[plan][measured]") {
  const auto refused = [](const std::string& words) {
    return refusal(staged + "4,1,1,4,8,1,12,2048,16,1024,1," + words + "\n");
  };
  CHECK(refused("Et|tt|L,,,,,") ==
        "runs.csv:2:31: pipeline_layout has 3 stages, which do not divide among 4 ranks");
  CHECK(refused("Et|tt|t|L,,,,,") ==
        "runs.csv:2:31: pipeline_layout has 4 layers, but layers is 12");
  CHECK(refused("Ex,,,,,").find("pipeline_layout is not a valid layout: layout \"Ex\", column 2") !=
        std::string::npos);
  CHECK(refused(",1,2,,,") == "runs.csv:2:32: first_stage_layers leaves 9 layers of 12 to 2 ranks");
  CHECK(refused(",,,yes,yes,") ==
        "runs.csv:2:34: embedding_counts_as_layer makes 14 layers, which do not divide among 4 "
        "stages");
  CHECK(refused(",,,,,5") ==
        "runs.csv:2:36: layers_per_virtual_stage is 5, but 12 layers are not a multiple of that on "
        "each of 4 ranks");
}

TEST_CASE("An invalid row of runs to predict is rejected alone", "[plan][measured]") {
  const RunTable table = read(header +
                                  "a,8,4,1,2,8,2,20,2048,16,1024,1\n"
                                  "b,,4,1,2,8,2,20,2048,16,1024,1\n"
                                  "c,8,4,1,2,8,3,20,2048,16,1024,1\n",
                              RunTimes::Optional);
  REQUIRE(table.runs.size() == 1);
  REQUIRE(table.refused.size() == 2);
  CHECK(table.refused[0].id == "b");
  CHECK(table.refused[0].reasons ==
        std::vector<std::string>{
            "runs.csv:3:3: gpus is \"\", a whole number from 1 to 10000000 is needed here"});
  CHECK(table.refused[1].line == 4);
}

TEST_CASE("Experts partitioned differently from the rest are shared by all devices of a stage",
          "[plan][measured]") {
  const std::string columns =
      "gpus,tp,dp,pp,ep,etp,global_batch,micro_batch,layers,hidden,heads,seq,iter_ms,experts\n";
  const Cut cut = read(columns + "4,2,2,1,4,1,8,2,20,2048,16,1024,1,8\n").runs.front().cut;
  CHECK(cut.expert_cut() == 1);
  CHECK(cut.expert_copies() == 1);
  CHECK(refusal(columns + "4,2,2,1,4,2,8,2,20,2048,16,1024,1,8\n") ==
        "runs.csv:2:9: ep is 4, which does not divide devices of dp and cp 2: 2 would");
}

TEST_CASE("vTrain's tables are read completely", "[plan][measured][reference]") {
  for (const auto& [name, count] : {std::pair{"single", 707U}, std::pair{"multi", 54U}})
    CHECK(read_runs(
              pipewright::test::reference_file(std::string("papers/vtrain_") + name + "_node.csv"),
              RunTimes::Needed)
              .runs.size() == count);
}

TEST_CASE("Heads that do not divide the width need their channels in the same row",
          "[plan][measured]") {
  const std::string table =
      "gpus,tp,dp,pp,global_batch,micro_batch,layers,hidden,heads,head_channels,seq,iter_ms\n";
  CHECK(read(table + "8,1,8,1,32,1,4,2048,48,128,1024,5\n").runs.size() == 1);
  CHECK(refusal(table + "8,1,8,1,32,1,4,2048,48,,1024,5\n").find("heads") != std::string::npos);
}

}  // namespace measured_run_test
