#include "yoke/text/tokenizer_file.h"

#include <fmt/format.h>

#include <memory>

#include "yoke/base/error.h"
#include "yoke/base/json_walk.h"
#include "yoke/base/key_set.h"
#include "yoke/base/limits.h"
#include "yoke/base/text.h"

namespace yoke::text {
namespace {

using EventKind = JsonEvent::Kind;

[[noreturn]] void refuse(const JsonEvent& event, std::string_view why) {
  throw Error(ErrorCode::kInvalid, fmt::format("{}: {}", event.place(), why));
}

class FileReader : public JsonHandler {
 public:
  explicit FileReader(const std::string& source) : source_(source) {
    file.parts.where = source;
    file.model.where = source + ": model";
  }

  void on(JsonEvent& event) override {
    switch (inside_) {
      case Inside::kNothing:
        if (event.kind != EventKind::kBeginMap) refuse(event, "this must be a map of keys");
        inside_ = Inside::kFile;
        return;
      case Inside::kFile:
        return on_file(event);
      case Inside::kModel:
        return on_model(event);
      case Inside::kVocabulary:
        return on_vocabulary(event);
      case Inside::kMerges:
        return on_merges(event);
      case Inside::kMerge:
        return on_merge(event);
      case Inside::kPart:
        return on_part(event);
    }
  }

  TokenizerFile file;
  bool has_model = false;

 private:
  enum class Inside { kNothing, kFile, kModel, kVocabulary, kMerges, kMerge, kPart };

  void on_file(JsonEvent& event) {
    if (event.kind == EventKind::kEndMap) {
      inside_ = Inside::kNothing;
    } else if (event.kind == EventKind::kKey) {
      take_key(event, file.parts, file_keys_, has_model && *event.text == "model");
    } else if (key_ == "model") {
      if (event.kind != EventKind::kBeginMap) refuse(event, "this must be a map of keys");
      has_model = true;
      inside_ = Inside::kModel;
    } else {
      begin_part(event, Inside::kFile);
    }
  }

  void on_model(JsonEvent& event) {
    if (event.kind == EventKind::kEndMap) {
      inside_ = Inside::kFile;
    } else if (event.kind == EventKind::kKey) {
      const bool again =
          (file.has_vocabulary && *event.text == "vocab") || (file.has_merges && *event.text == "merges");
      take_key(event, file.model, model_keys_, again);
    } else if (key_ == "vocab") {
      // Other kinds of model hold a list here; what they are is told when the model's type is read.
      if (event.kind != EventKind::kBeginMap) return begin_part(event, Inside::kModel);
      file.has_vocabulary = true;
      inside_ = Inside::kVocabulary;
    } else if (key_ == "merges") {
      if (event.kind != EventKind::kBeginList) refuse(event, "this must be a list");
      file.has_merges = true;
      inside_ = Inside::kMerges;
    } else {
      begin_part(event, Inside::kModel);
    }
  }

  void on_vocabulary(JsonEvent& event) {
    if (event.kind == EventKind::kEndMap) {
      inside_ = Inside::kModel;
    } else if (event.kind == EventKind::kKey) {
      token_ = std::move(*event.text);
    } else if (event.kind != EventKind::kWhole) {
      refuse(event, "a token's id must be a whole number");
    } else if (event.whole < 0 || event.whole > Vocabulary::kMaxId) {
      refuse(event, fmt::format("a token's id must be from 0 to {}", Vocabulary::kMaxId));
    } else if (!file.vocabulary.add(token_, static_cast<TokenId>(event.whole))) {
      refuse(event, fmt::format("the token '{}' or its id {} stands twice", printable(token_, 60), event.whole));
    }
  }

  // ["a", "b"], or in older files "a b".
  void on_merges(JsonEvent& event) {
    if (event.kind == EventKind::kEndList) {
      inside_ = Inside::kModel;
    } else if (event.kind == EventKind::kBeginList) {
      pair_.clear();
      inside_ = Inside::kMerge;
    } else if (event.kind == EventKind::kText) {
      pair_ = split(*event.text, ' ');
      end_merge(event);
    } else {
      refuse(event, "a merge must be of two tokens");
    }
  }

  void on_merge(JsonEvent& event) {
    if (event.kind == EventKind::kText && pair_.size() < 2) {
      pair_.push_back(std::move(*event.text));
    } else if (event.kind == EventKind::kEndList) {
      inside_ = Inside::kMerges;
      end_merge(event);
    } else {
      refuse(event, "a merge must be of two tokens");
    }
  }

  void end_merge(const JsonEvent& event) {
    if (pair_.size() != 2) refuse(event, "a merge must be of two tokens");
    if (file.merges.size() >= limits::kMerges) refuse(event, fmt::format("more than {} merges", limits::kMerges));
    file.merges.add(pair_[0], pair_[1]);
  }

  void take_key(JsonEvent& event, const Document& map, KeySet& keys, bool again) {
    if (again || !keys.add(map, *event.text)) {
      refuse(event, fmt::format("the key '{}' stands twice", printable(*event.text, 60)));
    }
    key_ = std::move(*event.text);
  }

  void begin_part(JsonEvent& event, Inside around) {
    around_ = around;
    inside_ = Inside::kPart;
    on_part(event);
  }

  void on_part(JsonEvent& event) {
    builder_.on(event);
    if (!builder_.is_complete()) return;
    (around_ == Inside::kModel ? file.model : file.parts).add(std::move(key_), builder_.take());
    inside_ = around_;
  }

  std::string source_;
  Inside inside_ = Inside::kNothing;
  Inside around_ = Inside::kFile;  // where a part lies
  std::string key_;
  std::string token_;
  std::vector<std::string> pair_;
  KeySet file_keys_, model_keys_;
  DocumentBuilder builder_;
};

}  // namespace

void MergeTexts::add(std::string_view left, std::string_view right) {
  texts_ += left;
  ends_.push_back(static_cast<std::uint32_t>(texts_.size()));
  texts_ += right;
  ends_.push_back(static_cast<std::uint32_t>(texts_.size()));
}

std::string_view MergeTexts::part(std::size_t index) const {
  const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(texts_).substr(begin, ends_[index] - begin);
}

std::string_view MergeTexts::both(std::size_t merge) const {
  const std::size_t begin = merge == 0 ? 0 : ends_[2 * merge - 1];
  return std::string_view(texts_).substr(begin, ends_[2 * merge + 1] - begin);
}

TokenizerFile read_tokenizer_file(std::string json, const std::string& source) {
  FileReader reader(source);
  walk_json(std::make_shared<const std::string>(std::move(json)), source, {.values_max = limits::kTokenizerValues},
            reader);
  if (!reader.has_model) throw Error(ErrorCode::kInvalid, fmt::format("{}: the key 'model' is missing", source));
  return std::move(reader.file);
}

}  // namespace yoke::text
