// A folder with a small model of tests/data/hugging_face: its weights, made by the formula of
// tests/hugging_face/hf_figures.py, and the results of Python's transformers.
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/safetensors.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"
#include "support/file_bytes.hpp"
#include "support/temp_folder.hpp"

namespace pipewright::test {

/// Returns numbers in [0, 1) of 24 bits, from FNV-1a of the name and splitmix64 of the index.
inline std::vector<double> formula_numbers(const std::string& name, std::int64_t count) {
  std::uint64_t start = 0xCBF29CE484222325U;
  for (const char letter : name)
    start = (start ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  std::vector<double> numbers;
  for (std::int64_t place = 1; place <= count; ++place) {
    std::uint64_t x = start + static_cast<std::uint64_t>(place) * 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    x ^= x >> 31;
    numbers.push_back(static_cast<double>(x >> 40) / (1 << 24));
  }
  return numbers;
}

/// Returns int64 [rows, columns].
inline at::Tensor formula_tokens(const std::string& name, std::int64_t rows, std::int64_t columns,
                                 int vocabulary) {
  at::Tensor tokens = at::empty({rows * columns}, at::kLong);
  const auto numbers = formula_numbers(name, rows * columns);
  for (std::size_t at = 0; at < numbers.size(); ++at)
    tokens.mutable_data_ptr<std::int64_t>()[at] =
        static_cast<std::int64_t>(std::floor(numbers[at] * vocabulary));
  return tokens.view({rows, columns});
}

using Figures = std::map<std::string, at::Tensor>;

class FiguresFolder {
 public:
  explicit FiguresFolder(const std::string& name)
      : data_(std::filesystem::path(PIPEWRIGHT_TEST_DATA_DIR) / "hugging_face" / name) {
    std::filesystem::copy(data_ / "config.json", folder_.path() / "config.json");
    write_weights();
  }

  const std::filesystem::path& path() const { return folder_.path(); }
  plan::HuggingFaceShape shape(int sequence = 23) const {
    plan::HuggingFaceShape shape{.path = path().string()};
    shape.transformer.sequence = sequence;
    return plan::with_config(std::move(shape));
  }
  Figures figures() const {
    Figures all;
    const auto file = data_ / "figures.safetensors";
    for (auto& [name, value] : exec::parse_safetensors(bytes_of_file(file), file.string()))
      all[name] = value;
    return all;
  }
  /// Returns the weights, by the names in the files.
  const Figures& weights() const { return weights_; }
  /// Writes the file again after a change of `weights`.
  void write(const Figures& weights, const std::string& file = "model.safetensors") const {
    std::vector<exec::TensorShape> shapes;
    std::string numbers;
    for (const auto& [name, value] : weights) {
      shapes.push_back({name, value.scalar_type(), value.sizes().vec()});
      const at::Tensor flat = value.contiguous();
      numbers.append(static_cast<const char*>(flat.const_data_ptr()), flat.nbytes());
    }
    folder_.write(file, exec::safetensors_header(shapes) + numbers);
  }

 private:
  void write_weights() {
    const auto about = nlohmann::json::parse(bytes_of_file(data_ / "weights.json"));
    for (const auto& item : about.items()) {
      const auto sizes = item.value().at("shape").get<std::vector<std::int64_t>>();
      const double middle = item.value().at("middle"), spread = item.value().at("spread");
      at::Tensor value = at::empty(sizes);
      const auto numbers = formula_numbers(item.key(), value.numel());
      for (std::size_t at = 0; at < numbers.size(); ++at)
        value.mutable_data_ptr<float>()[at] =
            static_cast<float>(middle + spread * (2 * numbers[at] - 1));
      weights_[item.key()] = value;
    }
    write(weights_);
  }

  std::filesystem::path data_;
  TempFolder folder_;
  Figures weights_;
};

/// Returns all models of tests/data/hugging_face.
inline std::vector<std::string> figures_folders() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(PIPEWRIGHT_TEST_DATA_DIR) / "hugging_face"))
    if (entry.is_directory())
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace pipewright::test
