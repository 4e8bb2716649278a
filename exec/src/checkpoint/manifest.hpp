#pragma once

// The contents of manifest.json. Each part of a job leaves a document of the same format, which
// part 0 merges. Both end with a checksum of the text before it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"

namespace pipewright::exec {

struct StoredTensor {
  TensorShape shape;       // of the stored tensor
  std::int64_t begin = 0;  // see NamedTensor
  std::int64_t whole = -1;
  TensorPart part{};
};

enum class Holds { Parameters, Optimizer };

struct StoredFile {
  std::string name;
  Holds holds = Holds::Parameters;
  std::int64_t size = 0;  // bytes
  std::uint32_t checksum = 0;
  std::vector<StoredTensor> tensors;
};

struct StoredLayer {
  int index = 0;
  std::string name;
  std::vector<StoredFile> files;
};

struct Manifest {
  std::string job;
  int part = 0;         // the part that wrote this document; 0 for a merged manifest
  std::string failure;  // why this part could not write its files; empty if it could
  TrainingState training;
  std::vector<StoredLayer> layers;
};

std::string manifest_text(const Manifest& manifest);

/// Parses a text that `manifest_text` has written. Throws InputError that names `file` for any
/// other text.
Manifest parse_manifest(const std::string& text, const std::filesystem::path& file);
Manifest read_manifest(const std::filesystem::path& file);

}  // namespace pipewright::exec
