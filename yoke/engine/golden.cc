#include "yoke/engine/golden.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/weights/safetensors_file.h"

namespace yoke::engine {
namespace fs = std::filesystem;
namespace {

const Document& list_of(const Document& map, std::string_view key, const Document& otherwise) {
  const Document* found = map.find(key);
  if (found && found->kind != Document::Kind::kList) refuse_field(*found, "a list");
  return found ? *found : otherwise;
}

GoldenCase read_case(const Document& document, std::string name) {
  if (document.kind != Document::Kind::kMap) refuse_field(document, "a map of keys");
  const Document* ids = document.find("ids");
  if (!ids) throw Error(ErrorCode::kInvalid, fmt::format("{}: the key 'ids' is missing", document.where));
  GoldenCase one{.name = std::move(name), .prompt = {}, .messages = {}, .ids = {}, .greedy = {}, .logits = {}};
  from_json(*ids, one.ids);
  if (one.ids.empty()) refuse_field(*ids, "a list of at least one token");
  if (const Document* prompt = document.find("prompt")) from_json(*prompt, one.prompt);
  if (const Document* greedy = document.find("greedy")) from_json(*greedy, one.greedy);
  if (const Document* messages = document.find("messages")) one.messages = *messages;
  return one;
}

tensor::Tensor read_logits(const weights::SafetensorsFile& file, const weights::TensorEntry& entry,
                           const GoldenCase& one) {
  const tensor::Tensor view = file.view(entry);
  const bool fits = view.type() == tensor::DType::kF32 && view.shape().rank() == 2 && view.extent(0) >= 1 &&
                    view.extent(0) <= std::ssize(one.ids);
  if (!fits) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}: '{}' must be f32 [tokens, vocabulary] of at most the {} tokens of {}",
                            file.path().native(), entry.name, one.ids.size(), one.name));
  }
  return view.copied();
}

// "logits.long_last" is of the last case that has nothing else to compare with.
void give_long_logits(const weights::SafetensorsFile& file, std::vector<GoldenCase>& cases) {
  const weights::TensorEntry* entry = file.find("logits.long_last");
  if (!entry) return;
  const auto bare = std::find_if(cases.rbegin(), cases.rend(),
                                 [](const GoldenCase& one) { return one.greedy.empty() && !one.logits; });
  if (bare != cases.rend()) bare->logits = read_logits(file, *entry, *bare);
}

// A verdict about the engine needs something that the engine computes.
void check_comparable(const fs::path& file, const std::vector<GoldenCase>& cases) {
  if (cases.empty()) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} has no cases", file.native()),
                "docs/running.md describes the form");
  }
  const bool comparable =
      std::any_of(cases.begin(), cases.end(), [](const GoldenCase& one) { return one.logits || !one.greedy.empty(); });
  if (!comparable) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("there is nothing to compare with: no case of {} has 'greedy' tokens, and none has logits "
                            "in golden.safetensors beside it",
                            file.native()),
                "docs/running.md describes the form");
  }
}

}  // namespace

std::vector<GoldenCase> load_golden(const fs::path& model) {
  const fs::path file = model / "golden.json";
  if (!fs::exists(file)) {
    throw Error(ErrorCode::kNotFound, fmt::format("there is no golden.json in '{}'", model.native()),
                "verify compares with what another implementation computed: docs/running.md describes the form");
  }
  const Document golden = parse_json(read_file(file), file.native());
  if (golden.kind != Document::Kind::kMap) refuse_field(golden, "a map of keys");
  const Document none = Document::list();
  std::optional<weights::SafetensorsFile> tensors;
  if (fs::exists(model / "golden.safetensors")) tensors.emplace(model / "golden.safetensors");
  std::vector<GoldenCase> cases;
  for (const Document& document : list_of(golden, "cases", none).items) {
    GoldenCase one = read_case(document, fmt::format("case {}", cases.size()));
    const weights::TensorEntry* entry = tensors ? tensors->find(fmt::format("logits.{}", cases.size())) : nullptr;
    if (entry) one.logits = read_logits(*tensors, *entry, one);
    cases.push_back(std::move(one));
  }
  if (tensors) give_long_logits(*tensors, cases);
  std::size_t chats = 0;
  for (const Document& document : list_of(golden, "chat", none).items) {
    cases.push_back(read_case(document, fmt::format("chat {}", chats++)));
  }
  check_comparable(file, cases);
  return cases;
}

}  // namespace yoke::engine
