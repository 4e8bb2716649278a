#include "pipewright/plan/runs/run_of_transformer.hpp"

#include "pipewright/plan/runs/transformer_memory.hpp"
#include "support/catch.hpp"

namespace run_of_transformer_test {

using namespace pipewright::plan;

DescribedTransformer shipped(const std::string& name) {
  return read_transformer(PIPEWRIGHT_TEST_DATA_DIR "/models/" + name + ".json");
}

struct Named {
  const char* file;
  const char* known;  // as tables of runs call it
};
constexpr Named named[] = {{"llama-2-7b", "llama2-7b"},       {"llama-2-13b", "llama2-13b"},
                           {"llama-2-70b", "llama2-70b"},     {"llama-3-8b", "llama3-8b"},
                           {"llama-3.1-70b", "llama3-70b"},   {"llama-3.1-405b", "llama3-405b"},
                           {"mistral-7b-v0.1", "mistral-7b"}, {"mixtral-8x7b", "mixtral-8x7b"},
                           {"deepseek-v2", "deepseekv2"},     {"deepseek-v3", "deepseekv3"}};

TEST_CASE("Models that tables of runs name have the sizes of their config.json", "[plan][runs]") {
  for (const Named& model : named) {
    CAPTURE(model.file);
    const std::string row = std::string(model.known) + ",1,1,1,1,1,1,4096,\n";
    const TrainingRun known =
        read_runs("model,gpus,tp,dp,pp,global_batch,micro_batch,seq,iter_ms\n" + row, "runs.csv",
                  RunTimes::Optional)
            .runs.front();
    auto transformer = shipped(model.file);
    transformer.sharding.sequence = 4096;
    TrainingRun own = run_of(transformer);
    own.id = known.id, own.model = known.model, own.line = known.line;
    own.recompute = known.recompute;
    if (own.feed_forward == 0)  // nobody asks for widths of layers that there are none of
      own.feed_forward = known.feed_forward;
    if (own.experts == 0)
      own.expert_feed_forward = known.expert_feed_forward;
    CHECK(own == known);
  }
}

TEST_CASE("Parameters and kept bytes of a run are those of its transformer's layers",
          "[plan][runs]") {
  for (const char* name : {"llama-3-8b", "mixtral-8x7b", "gpt2-xl", "deepseek-v3"}) {
    CAPTURE(name);
    const auto transformer = shipped(name);
    const auto layers = layers_of(transformer.config, transformer.sharding);
    double parameters = 0, kept = 0;
    for (int layer = 0; layer < transformer.config.layers; ++layer) {
      parameters += static_cast<double>(layers[static_cast<std::size_t>(layer) + 1].parameters);
      kept += static_cast<double>(layers[static_cast<std::size_t>(layer) + 1].kept.value);
    }
    const TrainingRun run = run_of(transformer);
    CHECK(run.layers * run.layer_parameters() == Approx(parameters).epsilon(1e-4));
    CHECK(transformer_memory(run, RunRecompute::None).front().kept == Approx(kept).epsilon(1e-4));
  }
}

}  // namespace run_of_transformer_test
