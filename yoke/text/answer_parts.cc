#include "yoke/text/answer_parts.h"

#include <algorithm>
#include <utility>

namespace yoke::text {
namespace {

using PartKind = AnswerPart::Kind;

constexpr std::string_view kThink = "<think>", kThinkEnd = "</think>";
constexpr std::string_view kCallBegin = "<tool_call>", kCallEnd = "</tool_call>";
constexpr std::string_view kChannel = "<|channel|>", kMessage = "<|message|>", kTo = "to=functions.";
constexpr std::string_view kBodyEnds[] = {"<|end|>", "<|call|>", "<|return|>", "<|start|>"};
constexpr std::string_view kBlanks = " \t\r\n";

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// How many bytes at the end may be the beginning of a mark.
std::size_t held_for(std::string_view text, std::string_view mark) {
  for (std::size_t size = std::min(text.size(), mark.size() - 1); size > 0; --size) {
    if (mark.starts_with(text.substr(text.size() - size))) return size;
  }
  return 0;
}

std::string_view word_after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + mark.size());
  return text.substr(0, text.find_first_of(" <\t\n"));
}

}  // namespace

AnswerStyle answer_style(std::string_view source) {
  if (contains(source, kChannel) && contains(source, kMessage)) return {.tools = ToolStyle::kHarmony};
  AnswerStyle style{.thinks = contains(source, kThinkEnd)};
  if (contains(source, kCallBegin)) {
    style.tools = ToolStyle::kHermes;
  } else if (contains(source, "<|python_tag|>") || (contains(source, "ipython") && contains(source, "parameters"))) {
    style.tools = ToolStyle::kBareJson;
  }
  return style;
}

AnswerParser::AnswerParser(AnswerStyle style, AnswerParserOptions options)
    : style_(style), options_(std::move(options)), mode_(Mode::kStart) {
  if (style_.tools == ToolStyle::kHarmony) mode_ = Mode::kHeader;
  if (style_.thinks && options_.begins_in_thought) mode_ = Mode::kThought;
}

std::vector<AnswerPart> AnswerParser::add(std::string_view text) {
  held_ += text;
  while (!held_.empty() && step()) {
  }
  return std::exchange(out_, {});
}

std::vector<AnswerPart> AnswerParser::finish() {
  if (mode_ == Mode::kCall) {
    if (!is_certain_) {
      give_up_call();
      give(PartKind::kText, std::exchange(held_, {}));
    }
  } else if (mode_ == Mode::kHeader) {
    if (!has_text_ && !has_calls_) give(PartKind::kText, std::exchange(held_, {}));  // no marks at all
  } else if (mode_ == Mode::kAfterCall && has_calls_ && kCallEnd.starts_with(held_)) {
    held_.clear();  // the mark of a call's end, cut off by the limit of tokens
  } else if (mode_ == Mode::kThought) {
    give(PartKind::kThought, std::exchange(held_, {}));
  } else if (mode_ == Mode::kBody) {
    give(body_, std::exchange(held_, {}));
  } else {
    give(PartKind::kText, std::exchange(held_, {}));
  }
  if (!has_calls_ && !blanks_.empty() && has_text_) out_.push_back({PartKind::kText, std::exchange(blanks_, {})});
  return std::exchange(out_, {});
}

bool AnswerParser::step() {
  switch (mode_) {
    case Mode::kStart:
      return step_start();
    case Mode::kThought:
      return step_thought();
    case Mode::kText:
      return step_text();
    case Mode::kCall:
      return step_call();
    case Mode::kAfterCall:
      return step_after_call();
    case Mode::kHeader:
      return step_header();
    default:
      return step_body();
  }
}

// Blanks at the end of what is said wait: before a call they are no part of it.
void AnswerParser::give(PartKind kind, std::string text) {
  if (text.empty()) return;
  if (kind == PartKind::kText && !options_.tools.empty()) {
    text.insert(0, std::exchange(blanks_, {}));
    const std::size_t end = text.find_last_not_of(kBlanks);
    const std::size_t kept = end == std::string::npos ? 0 : end + 1;
    blanks_ = text.substr(kept);
    text.resize(kept);
    if (text.empty()) return;
  }
  if (kind == PartKind::kText) has_text_ = true;
  if (!out_.empty() && out_.back().kind == kind && (kind == PartKind::kText || kind == PartKind::kThought)) {
    out_.back().text += text;
  } else {
    out_.push_back({kind, std::move(text)});
  }
}

void AnswerParser::give_certain(PartKind kind, std::initializer_list<std::string_view> marks) {
  std::size_t held = 0;
  for (const std::string_view mark : marks) held = std::max(held, held_for(held_, mark));
  give(kind, held_.substr(0, held_.size() - held));
  held_.erase(0, held_.size() - held);
}

bool AnswerParser::is_tool(std::string_view name) const {
  return std::find(options_.tools.begin(), options_.tools.end(), name) != options_.tools.end();
}

// Before anything was said: a thought or, of Llama's style, a call may begin.
bool AnswerParser::step_start() {
  const std::size_t begin = held_.find_first_not_of(kBlanks);
  const std::string_view text = std::string_view(held_).substr(std::min(begin, held_.size()));
  if (style_.thinks) {
    if (text.starts_with(kThink)) {
      held_.erase(0, begin + kThink.size());
      mode_ = Mode::kThought;
      return true;
    }
    if (kThink.starts_with(text)) return false;
  }
  if (style_.tools == ToolStyle::kBareJson && !options_.tools.empty()) {
    if (text.empty()) return false;
    if (text.front() == '{') {
      scanner_.emplace();
      call_text_.clear();
      is_certain_ = false;
      mode_ = Mode::kCall;
      return true;
    }
  }
  mode_ = Mode::kText;
  return true;
}

bool AnswerParser::step_thought() {
  const std::size_t end = held_.find(kThinkEnd);
  if (end == std::string::npos) {
    give_certain(PartKind::kThought, {kThinkEnd});
    return false;
  }
  give(PartKind::kThought, held_.substr(0, end));
  held_.erase(0, end + kThinkEnd.size());
  mode_ = Mode::kAfterCall;  // blanks after a thought are no part of the answer
  return true;
}

bool AnswerParser::step_text() {
  const bool has_marks = style_.tools == ToolStyle::kHermes && !options_.tools.empty();
  const std::size_t call = has_marks ? held_.find(kCallBegin) : std::string::npos;
  if (call != std::string::npos) {
    give(PartKind::kText, held_.substr(0, call));
    held_.erase(0, call + kCallBegin.size());
    scanner_.emplace();
    call_text_ = kCallBegin;
    is_certain_ = false;
    mode_ = Mode::kCall;
    return true;
  }
  if (has_marks) {
    give_certain(PartKind::kText, {kCallBegin});
  } else {
    give(PartKind::kText, std::exchange(held_, {}));
  }
  return false;
}

// ---- calls

void AnswerParser::take_call(const std::vector<ToolCallPiece>& pieces) {
  for (const ToolCallPiece& piece : pieces) {
    if (piece.kind == ToolCallPiece::Kind::kArguments) {
      if (is_certain_) give(PartKind::kArguments, piece.text);
      continue;
    }
    is_certain_ = is_tool(piece.text);
    if (!is_certain_) return;
    blanks_.clear();
    has_calls_ = true;
    give(PartKind::kCall, piece.text);
  }
}

// It is no call after all, but text that looks like one.
void AnswerParser::give_up_call() {
  if (scanner_->is_broken()) {  // by its last byte, with which something else may begin
    held_.insert(0, 1, call_text_.back());
    call_text_.pop_back();
  }
  scanner_.reset();
  give(PartKind::kText, std::exchange(call_text_, {}));
  mode_ = Mode::kText;
}

bool AnswerParser::step_call() {
  std::vector<ToolCallPiece> pieces;
  const std::size_t taken = scanner_->add(held_, pieces);
  if (!is_certain_) call_text_ += held_.substr(0, taken);
  held_.erase(0, taken);
  take_call(pieces);
  const bool is_other = scanner_->has_name() && !is_certain_;
  if (is_other || (scanner_->is_broken() && !is_certain_)) {
    give_up_call();
    return true;
  }
  if (!scanner_->is_done() && !scanner_->is_broken()) return taken > 0;
  mode_ = Mode::kAfterCall;
  return true;
}

// Blanks, the end of a call's marks, and what separates calls.
bool AnswerParser::step_after_call() {
  const std::size_t begin = held_.find_first_not_of(style_.tools == ToolStyle::kBareJson ? " \t\r\n;" : kBlanks);
  if (begin == std::string::npos) {
    held_.clear();
    return false;
  }
  held_.erase(0, begin);
  if (style_.tools == ToolStyle::kHermes && has_calls_) {
    if (held_.starts_with(kCallEnd)) {
      held_.erase(0, kCallEnd.size());
      return !held_.empty();
    }
    if (kCallEnd.starts_with(held_)) return false;
  }
  mode_ = style_.tools == ToolStyle::kBareJson ? Mode::kStart : Mode::kText;
  return true;
}

// ---- gpt-oss

bool AnswerParser::step_header() {
  const std::size_t end = held_.find(kMessage);
  if (end == std::string::npos) return false;
  const std::string header = held_.substr(0, end);
  held_.erase(0, end + kMessage.size());
  const std::string_view channel = word_after(header, kChannel);
  const std::string_view function = word_after(header, kTo);
  if (!function.empty() && is_tool(function)) {
    blanks_.clear();
    has_calls_ = true;
    give(PartKind::kCall, std::string(function));
    body_ = PartKind::kArguments;
  } else {
    body_ = channel == "analysis" ? PartKind::kThought : PartKind::kText;
  }
  mode_ = Mode::kBody;
  return true;
}

bool AnswerParser::step_body() {
  std::size_t end = std::string::npos, size = 0;
  for (const std::string_view mark : kBodyEnds) {
    const std::size_t at = held_.find(mark);
    if (at < end) end = at, size = mark.size();
  }
  if (end == std::string::npos) {
    give_certain(body_, {kBodyEnds[0], kBodyEnds[1], kBodyEnds[2], kBodyEnds[3]});
    return false;
  }
  give(body_, held_.substr(0, end));
  held_.erase(0, end + size);
  mode_ = Mode::kHeader;
  return true;
}

}  // namespace yoke::text
