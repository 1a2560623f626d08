#include "yoke/base/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <optional>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

// How many places PCRE2 tries as starts of a match before the budget is looked at.
constexpr std::size_t kStartsMax = 1024;

std::string error_text(int code) {
  PCRE2_UCHAR8 text[256] = {};
  pcre2_get_error_message_8(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// Tokenizers are made with Oniguruma, whose \s is the property White_Space. PCRE2's \s differs by U+180E.
std::string with_exact_spaces(std::string_view expression) {
  std::string changed;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const std::string_view two = expression.substr(i, 2);
    if (two == "\\s" || two == "\\S") {
      changed += two == "\\s" ? "\\p{White_Space}" : "\\P{White_Space}";
      ++i;
    } else if (two.size() == 2 && two[0] == '\\') {
      changed += two;
      ++i;
    } else {
      changed += two[0];
    }
  }
  return changed;
}

}  // namespace

struct Pattern::Compiled {
  struct FreeCode {
    void operator()(pcre2_code_8* code) const { pcre2_code_free_8(code); }
  };
  struct FreeMatchData {
    void operator()(pcre2_match_data_8* data) const { pcre2_match_data_free_8(data); }
  };
  struct FreeMatchContext {
    void operator()(pcre2_match_context_8* context) const { pcre2_match_context_free_8(context); }
  };
  std::string source;
  std::string shown;  // the expression in errors
  std::unique_ptr<pcre2_code_8, FreeCode> code;

  Error failed(ErrorCode kind, std::string_view why) const {
    return {kind, fmt::format("{}: the pattern '{}' {}", source, shown, why)};
  }

  // One search over a text: what PCRE2 needs to remember between matches.
  class Search {
   public:
    Search(const Compiled& compiled, std::string_view text)
        : compiled_(compiled),
          text_(text),
          data_(pcre2_match_data_create_8(1, nullptr)),
          context_(pcre2_match_context_create_8(nullptr)) {
      YOKE_CHECK(data_ && context_);
      pcre2_set_match_limit_8(context_.get(), limits::kMatchSteps);
      pcre2_set_depth_limit_8(context_.get(), limits::kMatchDepth);
      pcre2_set_heap_limit_8(context_.get(), limits::kMatchHeapKib);
    }

    // A match that starts from `from` to `start_max`.
    std::optional<Match> next(std::size_t from, std::size_t start_max, std::uint32_t options) {
      pcre2_set_offset_limit_8(context_.get(), start_max);
      int found = match(from, options);
      // Machine code has a small stack of its own; the interpreter keeps its state on the heap.
      if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(from, options | PCRE2_NO_JIT);
      if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
      if (found < 0) {
        throw compiled_.failed(ErrorCode::kExhausted,
                               fmt::format("gave up on a text of {} bytes: {}", text_.size(), error_text(found)));
      }
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer_8(data_.get());
      if (ends[0] < from || ends[1] < ends[0] || ends[1] > text_.size()) {
        throw compiled_.failed(ErrorCode::kInvalid, "gives matches that start before the search or after their end");
      }
      return Match{ends[0], ends[1]};
    }

   private:
    // The text was checked once: PCRE2 would check it again for each match, which makes a long text quadratic.
    int match(std::size_t from, std::uint32_t options) {
      return pcre2_match_8(compiled_.code.get(), reinterpret_cast<PCRE2_SPTR8>(text_.data()), text_.size(), from,
                           options | PCRE2_NO_UTF_CHECK, data_.get(), context_.get());
    }

    const Compiled& compiled_;
    std::string_view text_;
    std::unique_ptr<pcre2_match_data_8, FreeMatchData> data_;
    std::unique_ptr<pcre2_match_context_8, FreeMatchContext> context_;
  };
};

Pattern Pattern::literal(std::string text) {
  Pattern pattern;
  pattern.literal_ = std::move(text);
  return pattern;
}

Pattern Pattern::regex(std::string_view expression, std::string_view source, PatternOptions options) {
  auto compiled = std::make_shared<Compiled>();
  compiled->source = source;
  compiled->shown = printable(expression, 80);
  if (expression.size() > options.bytes_max) {
    throw compiled->failed(ErrorCode::kUnsupported, fmt::format("has {} bytes, more than the {} that yoke reads",
                                                                expression.size(), options.bytes_max));
  }
  const std::string exact = with_exact_spaces(expression);
  int failure = 0;
  PCRE2_SIZE at = 0;
  constexpr std::uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT;
  compiled->code.reset(
      pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(exact.data()), exact.size(), kOptions, &failure, &at, nullptr));
  if (!compiled->code) {
    throw compiled->failed(ErrorCode::kUnsupported, fmt::format("cannot be used: {}", error_text(failure)));
  }
  // Without machine code (no executable memory, an odd processor) the interpreter gives the same matches, slower.
  if (options.speed == PatternSpeed::kCompile) pcre2_jit_compile_8(compiled->code.get(), PCRE2_JIT_COMPLETE);
  Pattern pattern;
  pattern.compiled_ = std::move(compiled);
  return pattern;
}

std::vector<Match> Pattern::find_all_literal(std::string_view text, CpuBudget& budget) const {
  std::vector<Match> matches;
  if (literal_.empty()) return matches;
  for (std::size_t at = find_text(text, literal_); at != std::string_view::npos; at = find_text(text, literal_, at)) {
    matches.push_back({at, at + literal_.size()});
    at += literal_.size();
    budget.look();
  }
  return matches;
}

std::vector<Match> Pattern::find_all(std::string_view text, CpuBudget& budget) const {
  if (!compiled_) return find_all_literal(text, budget);
  std::vector<Match> matches;
  Compiled::Search search(*compiled_, text);
  std::size_t from = 0;
  std::uint32_t options = 0;
  while (from <= text.size()) {
    budget.look();
    const std::size_t start_max = from + kStartsMax;
    const auto match = search.next(from, start_max, options);
    if (match) {
      if (match->end > match->begin) matches.push_back(*match);
      // After an empty match the next must not be empty at the same place, or it would be found for ever.
      options = match->end > match->begin ? 0 : PCRE2_NOTEMPTY_ATSTART;
      from = match->end;
    } else {
      options = 0;
      from = start_max + 1;
      while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0U) == 0x80U) ++from;
    }
  }
  return matches;
}

std::string Pattern::replace_all(std::string_view text, std::string_view replacement, std::size_t bytes_max,
                                 CpuBudget& budget) const {
  std::string replaced;
  std::size_t kept = 0;
  const auto add = [&](std::string_view part) {
    if (replaced.size() + part.size() > bytes_max) {
      throw Error(ErrorCode::kExhausted,
                  fmt::format("a replacement makes more than {} bytes of a text of {}", bytes_max, text.size()));
    }
    replaced += part;
  };
  for (const Match& match : find_all(text, budget)) {
    add(text.substr(kept, match.begin - kept));
    add(replacement);
    kept = match.end;
  }
  add(text.substr(kept));
  return replaced;
}

bool Pattern::begins(std::string_view text) const {
  if (!compiled_) return text.starts_with(literal_);
  return Compiled::Search(*compiled_, text).next(0, 0, PCRE2_ANCHORED).has_value();
}

}  // namespace yoke
