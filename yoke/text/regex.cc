#include "yoke/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <optional>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

constexpr std::size_t kPatternMost = 16384;         // the longest known (o200k) has about 300 bytes
constexpr std::uint32_t kMatchLimit = 100'000'000;  // backtracking steps of one match: a few per byte of a long text
constexpr std::uint32_t kHeapLimitKib = 256 * 1024;

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

struct FreeCompileContext {
  void operator()(pcre2_compile_context_8* context) const { pcre2_compile_context_free_8(context); }
};

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
  std::unique_ptr<pcre2_code_8, FreeCode> code;

  // One search over a text: what PCRE2 needs to remember between matches.
  class Search {
   public:
    Search(const Compiled& compiled, std::string_view text)
        : code_(compiled.code.get()),
          text_(text),
          data_(pcre2_match_data_create_8(1, nullptr)),
          context_(pcre2_match_context_create_8(nullptr)) {
      YOKE_CHECK(data_ && context_);
      pcre2_set_match_limit_8(context_.get(), kMatchLimit);
      pcre2_set_heap_limit_8(context_.get(), kHeapLimitKib);
    }

    std::optional<Match> next(std::size_t from, std::uint32_t options) {
      int found = match(from, options);
      // Machine code has a small stack of its own; the interpreter keeps its state on the heap.
      if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(from, options | PCRE2_NO_JIT);
      if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
      if (found < 0) {
        throw Error(ErrorCode::kExhausted, fmt::format("a tokenizer's pattern gave up on a text of {} bytes: {}",
                                                       text_.size(), error_text(found)));
      }
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer_8(data_.get());
      YOKE_CHECK(from <= ends[0] && ends[0] <= ends[1], "a match from {} to {}, looked for from {}", ends[0], ends[1],
                 from);
      return Match{ends[0], ends[1]};
    }

   private:
    // The text was checked once: PCRE2 would check it again for each match, which makes a long text quadratic.
    int match(std::size_t from, std::uint32_t options) {
      return pcre2_match_8(code_, reinterpret_cast<PCRE2_SPTR8>(text_.data()), text_.size(), from,
                           options | PCRE2_NO_UTF_CHECK, data_.get(), context_.get());
    }

    const pcre2_code_8* code_;
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

Pattern Pattern::regex(std::string_view expression, std::string_view source) {
  const std::unique_ptr<pcre2_compile_context_8, FreeCompileContext> context(pcre2_compile_context_create_8(nullptr));
  YOKE_CHECK(context != nullptr);
  pcre2_set_max_pattern_length_8(context.get(), kPatternMost);
  const std::string exact = with_exact_spaces(expression);
  int failure = 0;
  PCRE2_SIZE at = 0;
  auto compiled = std::make_shared<Compiled>();
  compiled->code.reset(pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(exact.data()), exact.size(),
                                       PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &failure, &at, context.get()));
  if (!compiled->code) {
    throw Error(ErrorCode::kUnsupported, fmt::format("{}: the pattern '{}' cannot be used: {}", source,
                                                     printable(expression, 80), error_text(failure)));
  }
  // Without machine code (no executable memory, an odd processor) the interpreter gives the same matches, slower.
  pcre2_jit_compile_8(compiled->code.get(), PCRE2_JIT_COMPLETE);
  Pattern pattern;
  pattern.compiled_ = std::move(compiled);
  return pattern;
}

std::vector<Match> Pattern::find_all_literal(std::string_view text) const {
  std::vector<Match> matches;
  if (literal_.empty()) return matches;
  for (std::size_t at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, at)) {
    matches.push_back({at, at + literal_.size()});
    at += literal_.size();
  }
  return matches;
}

std::vector<Match> Pattern::find_all(std::string_view text) const {
  if (!compiled_) return find_all_literal(text);
  std::vector<Match> matches;
  Compiled::Search search(*compiled_, text);
  std::size_t from = 0;
  std::uint32_t options = 0;
  while (from <= text.size()) {
    const auto match = search.next(from, options);
    if (!match) break;
    if (match->end > match->begin) matches.push_back(*match);
    // After an empty match the next must not be empty at the same place, or it would be found for ever.
    options = match->end > match->begin ? 0 : PCRE2_NOTEMPTY_ATSTART;
    from = match->end;
  }
  return matches;
}

std::string Pattern::replace_all(std::string_view text, std::string_view replacement) const {
  std::string replaced;
  std::size_t kept = 0;
  for (const Match& match : find_all(text)) {
    replaced += text.substr(kept, match.begin - kept);
    replaced += replacement;
    kept = match.end;
  }
  replaced += text.substr(kept);
  return replaced;
}

}  // namespace yoke
