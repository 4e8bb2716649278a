#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/models/transformer/transformer_counts.hpp"
#include "pipewright/models/transformer/transformer_memory.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"
#include "support/catch.hpp"

namespace described_transformer_test {

using namespace pipewright::plan;
using namespace pipewright::models;

DescribedTransformer shipped(const std::string& name) {
  return read_transformer(PIPEWRIGHT_TEST_DATA_DIR "/models/" + name + ".json");
}

struct Named {
  const char* file;
  const char* known;  // as tables of runs name it
};
constexpr Named named[] = {{"llama-2-7b", "llama2-7b"},       {"llama-2-13b", "llama2-13b"},
                           {"llama-2-70b", "llama2-70b"},     {"llama-3-8b", "llama3-8b"},
                           {"llama-3.1-70b", "llama3-70b"},   {"llama-3.1-405b", "llama3-405b"},
                           {"mistral-7b-v0.1", "mistral-7b"}, {"mixtral-8x7b", "mixtral-8x7b"},
                           {"deepseek-v2", "deepseekv2"},     {"deepseek-v3", "deepseekv3"}};

/// Clears the widths of layer kinds that the model does not have.
void forget_absent_layers(TransformerConfig& model) {
  if (!model.has_mixture())
    model.expert_feed_forward = 0;
  else if (model.leading_dense_layers() == 0)
    model.feed_forward = 0;
}

TEST_CASE("Models named by tables of runs have the sizes of their config.json",
          "[plan][measured]") {
  using Config = TransformerConfig;
  for (const Named& named_model : named) {
    CAPTURE(named_model.file);
    const std::string row = std::string(named_model.known) + ",1,1,1,1,1,1,4096,\n";
    const MeasuredRun run =
        read_runs("model,gpus,tp,dp,pp,global_batch,micro_batch,seq,iter_ms\n" + row, "runs.csv",
                  RunTimes::Optional)
            .runs.front();
    CHECK(run.training.attention == AttentionKind::Fused);
    CHECK(run.training.sequence == 4096);
    TransformerConfig known = run.training.model, own = shipped(named_model.file).training.model;
    forget_absent_layers(known), forget_absent_layers(own);
    for (int Config::*const size :
         {&Config::layers, &Config::hidden, &Config::heads, &Config::kv_heads,
          &Config::head_channels, &Config::value_channels, &Config::feed_forward,
          &Config::vocabulary, &Config::experts, &Config::experts_per_token,
          &Config::expert_feed_forward, &Config::shared_feed_forward, &Config::q_rank,
          &Config::kv_rank, &Config::rope_channels})
      CHECK(own.*size == known.*size);
    CHECK(own.gated == known.gated);
    CHECK(own.sparse == known.sparse);
  }
}

TEST_CASE("Mean parameters and saved bytes over layers equal those of the single layers",
          "[plan][transformer]") {
  for (const char* name :
       {"llama-3-8b", "mixtral-8x7b", "gpt2-xl", "deepseek-v3", "deepseek-v2-lite"}) {
    CAPTURE(name);
    const auto transformer = shipped(name);
    const auto layers = layers_of(transformer.training, transformer.cut);
    double parameters = 0, kept = 0;
    for (int layer = 0; layer < transformer.training.model.layers; ++layer) {
      parameters += static_cast<double>(layers[static_cast<std::size_t>(layer) + 1].parameters);
      kept += static_cast<double>(layers[static_cast<std::size_t>(layer) + 1].kept.value);
    }
    const TransformerConfig& model = transformer.training.model;
    CHECK(model.layers * layer_parameters(model) == Approx(parameters).epsilon(1e-4));
    CHECK(transformer_memory(transformer.training, transformer.cut).front().kept ==
          Approx(kept).epsilon(1e-4));
  }
}

}  // namespace described_transformer_test
