// Layers written as a Hugging Face folder: the tensors equal those that were read.

#include <ATen/ATen.h>

#include <map>

#include "exec/support/figures_folder.hpp"
#include "exec/support/run_layers.hpp"
#include "pipewright/engine/models/hugging_face.hpp"
#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/exec/checkpoint/weight_folder.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace folder_writer_test {

using namespace pipewright;
using namespace pipewright::exec;
using namespace pipewright::engine;
using test::FiguresFolder;

ReadLayer read_from(const std::vector<std::shared_ptr<Layer>>& layers) {
  return [layers](int index) {
    std::map<std::string, at::Tensor> all;
    for (const auto& named : layers.at(static_cast<std::size_t>(index))->named_parameters())
      all[named.key()] = named.value().detach();
    return all;
  };
}

ReadLayer layers_read_from(const plan::HuggingFaceShape& shape) {
  return read_from(test::build_all(builder_of(plan::ModelShape(shape)).layers(shape, {})));
}

void check_same(const WeightFolder& written, const test::Figures& weights) {
  CHECK(written.names().size() == weights.size());
  for (const auto& [name, value] : weights) {
    INFO(name);
    REQUIRE(written.find(name) != nullptr);
    CHECK(at::equal(written.tensor(name), value));
  }
}

TEST_CASE("Layers of a folder are written as the same folder", "[exec][models]") {
  for (const std::string& name : test::figures_folders()) {
    INFO(name);
    const FiguresFolder folder(name);
    const test::TempFolder out;
    for (const char* file : {"tokenizer.json", "notes.json"})
      std::ofstream(folder.path() / file) << "{}";
    write_folder(folder.shape(), layers_read_from(folder.shape()), out.path() / "new");
    CHECK(std::filesystem::exists(out.path() / "new" / "tokenizer.json"));
    CHECK_FALSE(std::filesystem::exists(out.path() / "new" / "notes.json"));
    check_same(WeightFolder::open(out.path() / "new").value(), folder.weights());
    plan::HuggingFaceShape again{.path = (out.path() / "new").string()};
    again.transformer.sequence = 23;
    CHECK(plan::with_config(again).transformer == folder.shape().transformer);
  }
}

TEST_CASE("Large models are written as several files and their index", "[exec][models]") {
  const FiguresFolder folder("mixtral");
  const test::TempFolder out;
  write_folder(folder.shape(), layers_read_from(folder.shape()), out.path(), /*most_bytes=*/20'000);
  CHECK(std::filesystem::exists(out.path() / "model.safetensors.index.json"));
  CHECK_FALSE(std::filesystem::exists(out.path() / "model.safetensors"));
  const auto written = WeightFolder::open(out.path()).value();
  CHECK(written.file_of("lm_head.weight") != written.file_of("model.embed_tokens.weight"));
  check_same(written, folder.weights());
}

TEST_CASE("16-bit weights are written as such, and config.json has their type", "[exec][models]") {
  const FiguresFolder folder("llama2");
  const test::TempFolder out;
  const ReadLayer single = layers_read_from(folder.shape());
  const auto half = [&](int index) {
    auto all = single(index);
    for (auto& [name, value] : all)
      value = value.to(at::kBFloat16);
    return all;
  };
  write_folder(folder.shape(), half, out.path());
  CHECK(WeightFolder::open(out.path())->find("lm_head.weight")->dtype == at::kBFloat16);
  CHECK(plan::JsonDocument::read(out.path() / "config.json").root().at("dtype") == "bfloat16");
}

TEST_CASE("A model's own folder is not overwritten, and missing parameters are rejected",
          "[exec][models]") {
  const FiguresFolder folder("llama2");
  const ReadLayer layers = layers_read_from(folder.shape());
  CHECK(test::error_of([&] { write_folder(folder.shape(), layers, folder.path()); }) ==
        folder.path().string() + ": this is the model's own folder; choose another output folder");
  const test::TempFolder out;
  const auto fewer = [&](int index) {
    auto all = layers(index);
    all.erase("attention.key.weight");
    return all;
  };
  CHECK(test::error_of([&] { write_folder(folder.shape(), fewer, out.path()); }) ==
        "layer 1: parameter 'attention.key.weight' is missing");
}

TEST_CASE("Damaged folders are rejected with the name of the file", "[exec][checkpoint]") {
  const auto refusal = [](const FiguresFolder& folder) {
    return test::error_of([&] { WeightFolder::open(folder.path()); });
  };
  const FiguresFolder cut("llama2");
  const auto file = cut.path() / "model.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  CHECK(refusal(cut).starts_with(file.string() + ": tensor '"));
  std::filesystem::resize_file(file, 0);
  CHECK(refusal(cut) == file.string() + ": it is empty");

  const FiguresFolder indexed("llama2");
  std::filesystem::rename(indexed.path() / "model.safetensors", indexed.path() / "one.safetensors");
  const auto index = indexed.path() / "model.safetensors.index.json";
  const auto write_index = [&](const std::string& text) { std::ofstream(index) << text; };
  write_index(R"({"weight_map": {"lm_head.weight": "model-00001-of-00001.safetensors"}})");
  CHECK(refusal(indexed) == (indexed.path() / "model-00001-of-00001.safetensors").string() +
                                ": No such file or directory");
  write_index(R"({"weight_map": {"lm_heads.weight": "one.safetensors"}})");
  CHECK(refusal(indexed) ==
        index.string() +
            ": tensor 'lm_heads.weight' should be in one.safetensors, which does not have it");
  write_index(R"({"weight_map": {"lm_head.weight": "../one.safetensors"}})");
  CHECK(refusal(indexed) == index.string() +
                                ": tensor 'lm_head.weight' has the file \"../one.safetensors\", "
                                "which is not a file name in this folder");
  write_index("{}");
  CHECK(refusal(indexed) ==
        index.string() +
            ": \"weight_map\" is missing. It must be an object with the file of each tensor");
}

}  // namespace folder_writer_test
