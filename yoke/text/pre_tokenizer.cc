#include "yoke/text/pre_tokenizer.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/pattern.h"
#include "yoke/text/byte_level.h"
#include "yoke/text/components.h"
#include "yoke/text/normalizer.h"

namespace yoke::text {
namespace {

// What becomes of the matches of a Split: pieces of their own, dropped, or joined to a neighbour.
enum class Behavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };
constexpr auto enum_names(Behavior) {
  return std::to_array<std::pair<std::string_view, Behavior>>({{"Isolated", Behavior::kIsolated},
                                                               {"Removed", Behavior::kRemoved},
                                                               {"MergedWithPrevious", Behavior::kMergedWithPrevious},
                                                               {"MergedWithNext", Behavior::kMergedWithNext},
                                                               {"Contiguous", Behavior::kContiguous}});
}

struct Part {
  Match range;
  bool is_separator;
};

std::vector<Match> join(const std::vector<Part>& parts, Behavior behavior) {
  std::vector<Match> joined;
  bool previous_is_separator = false;
  for (const Part& part : parts) {
    const bool after_separator = !joined.empty() && previous_is_separator;
    const bool after_text = !joined.empty() && !previous_is_separator;
    const bool extends = (behavior == Behavior::kMergedWithPrevious && part.is_separator && after_text) ||
                         (behavior == Behavior::kMergedWithNext && !part.is_separator && after_separator) ||
                         (behavior == Behavior::kContiguous && part.is_separator && after_separator);
    previous_is_separator = part.is_separator;
    if (behavior == Behavior::kRemoved && part.is_separator) continue;
    if (extends) {
      joined.back().end = part.range.end;
    } else {
      joined.push_back(part.range);
    }
  }
  return joined;
}

struct Splitter {
  Pattern pattern;
  Behavior behavior = Behavior::kIsolated;
  bool invert = false;

  // The whole text as separators and what is between them.
  std::vector<Part> separate(std::string_view text, TextBudget& budget) const {
    std::vector<Part> parts;
    std::size_t covered = 0;
    const auto add_gap = [&](std::size_t end) {
      if (end > covered) parts.push_back({{covered, end}, invert});
    };
    for (const Match& match : pattern.find_all(text, budget.cpu())) {
      add_gap(match.begin);
      parts.push_back({match, !invert});
      covered = match.end;
    }
    add_gap(text.size());
    return parts;
  }

  void operator()(TextPiece piece, std::vector<TextPiece>& pieces, TextBudget& budget) const {
    const std::vector<Part> parts = separate(piece.text, budget);
    for (const Match& range : join(parts, behavior)) {
      pieces.push_back(
          {piece.text.substr(range.begin, range.end - range.begin), piece.starts_input && range.begin == 0});
    }
  }
};

}  // namespace

PreTokenizer PreTokenizer::read(const Document& document) {
  PreTokenizer pre_tokenizer;
  if (!is_null(&document)) pre_tokenizer.add(document);
  return pre_tokenizer;
}

void PreTokenizer::add(const Document& document) {
  const std::string type = component_type(document);
  check_steps(steps_.size(), document);
  if (type == "Sequence") {
    for (const Document& part : sequence_items(document, "pretokenizers")) add(part);
  } else if (type == "Split") {
    const auto behavior = from_json<Behavior>(required(document, "behavior"));
    steps_.push_back(
        Splitter{read_pattern(required(document, "pattern")), behavior, flag_setting(document, "invert", false)});
  } else if (type == "Digits") {
    const bool each = flag_setting(document, "individual_digits", false);
    steps_.push_back(Splitter{Pattern::regex("\\p{N}", std::string(document.where)),
                              each ? Behavior::kIsolated : Behavior::kContiguous});
  } else if (type == "Punctuation") {
    const Document* given = document.find("behavior");
    const Behavior behavior = is_null(given) ? Behavior::kIsolated : from_json<Behavior>(*given);
    steps_.push_back(Splitter{Pattern::regex("[\\p{P}!-/:-@\\[-`{-~]", std::string(document.where)), behavior});
  } else if (type == "ByteLevel") {
    add_byte_level(document);
  } else if (type == "Metaspace") {
    add_metaspace(document);
  } else {
    refuse_component(document, "pre-tokenizer");
  }
}

void PreTokenizer::add_byte_level(const Document& document) {
  if (flag_setting(document, "add_prefix_space", true)) {
    steps_.push_back([](TextPiece piece, std::vector<TextPiece>& pieces, TextBudget&) {
      if (!piece.text.starts_with(' ')) piece.text.insert(0, 1, ' ');
      pieces.push_back(std::move(piece));
    });
  }
  if (flag_setting(document, "use_regex", true)) {
    // The split of GPT-2, which a ByteLevel step without a Split of its own means.
    constexpr std::string_view kWords = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    steps_.push_back(Splitter{Pattern::regex(kWords, std::string(document.where))});
  }
  steps_.push_back([](TextPiece piece, std::vector<TextPiece>& pieces, TextBudget&) {
    TextPiece mapped{.starts_input = piece.starts_input};
    append_byte_level(mapped.text, piece.text);
    pieces.push_back(std::move(mapped));
  });
}

void PreTokenizer::add_metaspace(const Document& document) {
  const std::string mark = mark_setting(document, "replacement");
  // Files of before 2024 say add_prefix_space instead of prepend_scheme.
  const bool prefix = flag_setting(document, "add_prefix_space", true);
  const std::string scheme = text_setting(document, "prepend_scheme", prefix ? "always" : "never");
  if (mark.empty() || (scheme != "always" && scheme != "never" && scheme != "first")) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: this Metaspace makes no sense", document.where));
  }
  steps_.push_back([mark, scheme](TextPiece piece, std::vector<TextPiece>& pieces, TextBudget& budget) {
    piece.text = Pattern::literal(" ").replace_all(piece.text, mark, budget.bytes_max(), budget.cpu());
    const bool wanted = scheme == "always" || (scheme == "first" && piece.starts_input);
    if (wanted && !piece.text.starts_with(mark)) piece.text.insert(0, mark);
    pieces.push_back(std::move(piece));
  });
  if (flag_setting(document, "split", true)) {
    steps_.push_back(Splitter{Pattern::literal(mark), Behavior::kMergedWithNext});
  }
}

std::vector<TextPiece> PreTokenizer::apply(TextPiece text, TextBudget& budget) const {
  std::vector<TextPiece> pieces;
  if (!text.text.empty()) pieces.push_back(std::move(text));
  for (const Step& step : steps_) {
    std::vector<TextPiece> next;
    next.reserve(pieces.size());
    std::size_t bytes = 0;
    for (TextPiece& piece : pieces) {
      const std::size_t first = next.size();
      step(std::move(piece), next, budget);
      for (std::size_t i = first; i < next.size(); ++i) bytes += next[i].text.size();
      budget.check_size(bytes);
      budget.cpu().look();
    }
    pieces = std::move(next);
  }
  return pieces;
}

}  // namespace yoke::text
