#include "pipewright/profiler/sections/sections.hpp"

#include <map>

namespace pipewright::profiler {

std::vector<Section> sections_of(const std::vector<LayerOutline>& outlines, int copies,
                                 plan::Bytes budget) {
  std::vector<Section> sections;
  plan::Bytes taken;
  const int layers = static_cast<int>(outlines.size()) - 1;
  for (int layer = 0; layer < layers; ++layer) {
    const plan::Bytes own{outlines[static_cast<std::size_t>(layer)].training.value * copies};
    if (sections.empty() || taken + own > budget) {
      sections.push_back({layer, layer});
      taken = {};
    }
    taken += own;
    sections.back().last = layer + 1;
  }
  return sections;
}

std::vector<EquivalentLayers> alike_layers(const std::vector<LayerOutline>& outlines) {
  std::vector<EquivalentLayers> kinds;
  std::map<std::string, std::size_t> known;
  for (std::size_t layer = 0; layer < outlines.size(); ++layer) {
    if (outlines[layer].alike.empty())
      continue;
    const auto [at, is_new] = known.try_emplace(outlines[layer].alike, kinds.size());
    if (is_new)
      kinds.emplace_back();
    kinds[at->second].layers.push_back(static_cast<int>(layer));
  }
  return kinds;
}

std::vector<bool> wanted_places(const std::vector<LayerOutline>& outlines,
                                const std::vector<bool>& known) {
  std::vector<bool> wanted(outlines.size());
  for (std::size_t layer = 0; layer < outlines.size(); ++layer)
    wanted[layer] = outlines[layer].alike.empty();
  for (const EquivalentLayers& kind : alike_layers(outlines))
    for (const std::size_t place : {std::size_t{0}, kind.layers.size() / 2, kind.layers.size() - 1})
      wanted[static_cast<std::size_t>(kind.layers[place])] = true;
  for (std::size_t layer = 0; layer < known.size(); ++layer)
    wanted[layer] = wanted[layer] && !known[layer];
  return wanted;
}

bool is_wanted(const Section& section, const std::vector<bool>& wanted) {
  const int loss = static_cast<int>(wanted.size()) - 1;
  const int end = section.last == loss ? loss + 1 : section.last;
  for (int layer = section.first; layer < end; ++layer)
    if (wanted[static_cast<std::size_t>(layer)])
      return true;
  return false;
}

}  // namespace pipewright::profiler
