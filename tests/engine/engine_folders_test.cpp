// Loading Hugging Face folders into an engine and saving them, with threads and over Gloo.

#include "pipewright/engine/engine_folders.hpp"

#include "exec/support/figures_folder.hpp"
#include "exec/support/processes.hpp"
#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/engine/models/transformer.hpp"
#include "pipewright/exec/checkpoint/weight_folder.hpp"
#include "pipewright/exec/transport/gloo_transport.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace engine_folders_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::error_of;
using test::FiguresFolder;

/// A module with initial weights other than the folder's.
PipelineModule other_weights(const plan::HuggingFaceShape& shape, const plan::Topology& topology) {
  return {transformer_layers(shape.transformer),
          {.topology = topology,
           .partition = std::string("uniform"),
           .loss = cross_entropy,
           .base_seed = 7}};
}

void check_same(const std::filesystem::path& written, const test::Figures& weights) {
  const auto folder = WeightFolder::open(written).value();
  CHECK(folder.names().size() == weights.size());
  for (const auto& [name, value] : weights) {
    INFO(name);
    REQUIRE(folder.find(name) != nullptr);
    CHECK(at::equal(folder.tensor(name), value));
  }
}

TEST_CASE("An engine loads the weights of a folder, and writes them back unchanged",
          "[exec][models]") {
  for (const std::string name : {"llama2", "gpt2", "phi3", "mixtral", "qwen2"}) {
    INFO(name);
    const FiguresFolder folder(name);
    const test::TempFolder out;
    const EngineOptions options{.train_batch_size = 2, .microbatch_size = 1, .zero = 1};
    PipelineEngine engine(other_weights(folder.shape(), plan::pipe_data_topology(2, 2)), options);
    load_hugging_face(engine, folder.path());
    const PipelineEngine built(
        {builder_of(plan::ModelShape(folder.shape())).layers(folder.shape(), {}),
         {.loss = cross_entropy}},
        {.train_batch_size = 2, .microbatch_size = 1});
    const StateDict expected = built.module_state_dict(), found = engine.module_state_dict();
    CHECK(found.size() == expected.size());
    for (const auto& [tensor, value] : expected)
      CHECK(at::equal(found.at(tensor), value));
    save_hugging_face(engine, folder.path(), out.path() / "new");
    check_same(out.path() / "new", folder.weights());
    CHECK(std::filesystem::exists(out.path() / "new" / "config.json"));
    CHECK_FALSE(std::filesystem::exists(out.path() / "new" / "parts.tmp"));
  }
}

TEST_CASE("A folder of another model is rejected", "[exec][models]") {
  const FiguresFolder llama("llama2"), gpt("gpt2");
  PipelineEngine engine(other_weights(llama.shape(), plan::pipe_data_topology(1, 1)), {});
  CHECK(error_of([&] { load_hugging_face(engine, gpt.path()); }) ==
        gpt.path().string() +
            ": layer 0 of the engine differs from the folder's model; build the layers with "
            "builder_of");
  std::filesystem::remove(llama.path() / "model.safetensors");
  CHECK(
      error_of([&] { load_hugging_face(engine, llama.path()); }) ==
      llama.path().string() +
          ": it has neither model.safetensors nor pytorch_model.bin, nor an index of several such "
          "files");
}

TEST_CASE("rank of an engine of a folder over Gloo", "[.]") {
  const auto place = test::rank_place();
  if (!place)
    return;
  try {
    Job job(place->environment, {.join_timeout = std::chrono::seconds(20)});
    const std::filesystem::path model = place->argument;
    plan::HuggingFaceShape shape{.path = model.string()};
    shape.transformer.sequence = 23;
    shape = plan::with_config(shape);
    EngineOptions options{.train_batch_size = 1, .microbatch_size = 1};
    options.execution.transport = make_gloo_transport(job);
    options.execution.only_rank = job.rank();
    PipelineEngine engine(other_weights(shape, plan::Topology({"pipe", "tensor"}, {2, 2})),
                          options);
    load_hugging_face(engine, model);
    save_hugging_face(engine, model, model / "written");
    test::say("done");
  } catch (const std::exception& error) {
    test::say(error.what());
  }
}

TEST_CASE("Processes with parts of a folder's model write the whole model", "[exec][models]") {
  const FiguresFolder folder("llama2");
  test::Ranks ranks({.size = 4,
                     .test_case = "rank of an engine of a folder over Gloo",
                     .argument = folder.path().string()});
  for (int rank = 0; rank < 4; ++rank)
    CHECK(ranks.said(rank) == "done\n");
  check_same(folder.path() / "written", folder.weights());
}

}  // namespace engine_folders_test
