// Folders of Hugging Face models: which of their files have the weights, and which are rejected.

#include "pipewright/exec/checkpoint/weight_folder.hpp"

#include <ATen/ATen.h>

#include <filesystem>

#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/file_bytes.hpp"
#include "support/temp_folder.hpp"

namespace weight_folder_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::error_of;
using test::TempFolder;
namespace fs = std::filesystem;

/// Returns the bytes of a file of torch.save that has "weight" [2, 3] and "bias" [2].
std::string torch_file() {
  return test::bytes_of_file(fs::path(PIPEWRIGHT_TEST_DATA_DIR) /
                             "torch_files/layers/layer_00-model_00-model_states.pt");
}

std::string safetensors_file(float value) {
  const at::Tensor all = at::full({6}, value);
  return safetensors_header({{"weight", at::kFloat, {2, 3}}}) +
         std::string(static_cast<const char*>(all.const_data_ptr()), all.nbytes());
}

std::string refusal(const TempFolder& folder) {
  std::string error = error_of([&] { WeightFolder::open(folder.path()); });
  if (const auto at = error.find(folder.path().string()); at != std::string::npos)
    error.replace(at, folder.path().string().size(), "DIR");
  return error;
}

TEST_CASE("The weights of pytorch_model.bin and of its index are read", "[exec][checkpoint]") {
  const at::Tensor expected = (100 + at::arange(6)).to(at::kFloat).view({2, 3});
  const TempFolder single;
  single.write("pytorch_model.bin", torch_file());
  const auto weights = WeightFolder::open(single.path()).value();
  CHECK(weights.names() == std::vector<std::string>{"bias", "weight"});
  CHECK(*weights.find("weight") == TensorShape{"weight", at::kFloat, {2, 3}});
  CHECK(at::equal(weights.tensor("weight"), expected));
  CHECK(weights.file_of("bias") == single.path() / "pytorch_model.bin");

  const TempFolder indexed;
  indexed.write("pytorch_model-00001-of-00001.bin", torch_file());
  indexed.write("pytorch_model.bin.index.json",
                R"({"weight_map": {"weight": "pytorch_model-00001-of-00001.bin"}})");
  CHECK(at::equal(WeightFolder::open(indexed.path())->tensor("weight"), expected));
  indexed.write("pytorch_model.bin.index.json",
                R"({"weight_map": {"more": "pytorch_model-00001-of-00001.bin"}})");
  CHECK(refusal(indexed) ==
        "DIR/pytorch_model.bin.index.json: tensor 'more' should be in "
        "pytorch_model-00001-of-00001.bin, which does not have it");
}

TEST_CASE(
    "If a folder has its weights in several formats, they are read from the file that "
    "transformers reads",
    "[exec][checkpoint]") {
  const TempFolder folder;
  folder.write("consolidated.safetensors", "not read");
  folder.write("pytorch_model.bin", torch_file());
  const auto first = [&] {
    return WeightFolder::open(folder.path())->tensor("weight").flatten()[0].item<float>();
  };
  CHECK(first() == 100);
  folder.write("one.safetensors", safetensors_file(1));
  folder.write("model.safetensors.index.json", R"({"weight_map": {"weight": "one.safetensors"}})");
  CHECK(first() == 1);
  folder.write("model.safetensors", safetensors_file(2));
  CHECK(first() == 2);
}

TEST_CASE("Weights in other formats are rejected by name", "[exec][checkpoint]") {
  for (const char* name :
       {"consolidated.safetensors", "consolidated.00.pth", "llama-q4_0.gguf", "tf_model.h5",
        "flax_model.msgpack", "model.fp16.safetensors", "adapter_model.bin", "model.onnx",
        "flax_model.msgpack.index.json", "model-00001-of-00002.safetensors"}) {
    const TempFolder folder;
    folder.write("config.json", "{}");
    folder.write(name, "anything");
    CHECK(refusal(folder) ==
          std::string("DIR: no weights are read from ") + name +
              ". Supported are model.safetensors, model.safetensors.index.json, "
              "pytorch_model.bin, pytorch_model.bin.index.json. Convert the weights, or move other "
              "files away to initialize the weights randomly");
  }
}

TEST_CASE("A folder without weights may have a config, a tokenizer and tokens",
          "[exec][checkpoint]") {
  const TempFolder folder;
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer.model", "tokens.bin",
                           "tokens.idx", "training_args.bin", "README.md"})
    folder.write(name, "anything");
  CHECK_FALSE(WeightFolder::open(folder.path()).has_value());
}

TEST_CASE("Git LFS pointers and links to missing files are rejected", "[exec][checkpoint]") {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  const std::string because =
      ": this is a Git LFS pointer, not the file itself. Run `git lfs pull` in its repository";
  for (const std::string name : {"model.safetensors", "pytorch_model.bin",
                                 "model.safetensors.index.json", "pytorch_model.bin.index.json"}) {
    const TempFolder folder;
    folder.write(name, pointer);
    CHECK(refusal(folder) == "DIR/" + name + because);
  }
  const TempFolder folder;
  fs::create_symlink("../../blobs/missing", folder.path() / "model.safetensors");
  CHECK(refusal(folder) == "DIR/model.safetensors: No such file or directory");
}

TEST_CASE("Files of torch.save before version 1.6 are rejected with a remedy",
          "[exec][checkpoint]") {
  const TempFolder folder;
  folder.write("pytorch_model.bin",
               std::string("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03", 20));
  CHECK(refusal(folder) ==
        "DIR/pytorch_model.bin: it has the format of torch.save before version 1.6. Write it "
        "again: `torch.save(torch.load(path), path)`");
}

}  // namespace weight_folder_test
