#include "yoke/text/tool_call_scanner.h"

#include <utility>

#include "yoke/base/json.h"
#include "yoke/base/result.h"

namespace yoke::text {
namespace {

bool is_json_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_arguments_key(std::string_view key) { return key == "arguments" || key == "parameters"; }

}  // namespace

std::size_t ToolCallScanner::add(std::string_view text, std::vector<ToolCallPiece>& out) {
  std::size_t taken = 0;
  const bool had_name = has_name_;
  while (taken < text.size() && !is_done() && !is_broken() && has_name_ == had_name) take(text[taken++], out);
  give_known(out);
  return taken;
}

void ToolCallScanner::take(char c, std::vector<ToolCallPiece>& out) {
  if (state_ == State::kInValue) return take_in_value(c, out);
  if (state_ == State::kKey) {
    if (!is_escaped_ && c == '"') {
      state_ = State::kColon;
      return;
    }
    is_escaped_ = !is_escaped_ && c == '\\';
    key_ += c;
    return;
  }
  if (is_json_blank(c)) return;
  switch (state_) {
    case State::kBegin:
      state_ = c == '{' ? State::kKeyOrEnd : State::kBroken;
      return;
    case State::kKeyOrEnd:
      if (c == ',') return;
      if (c == '"') {
        key_.clear();
        state_ = State::kKey;
      } else if (c == '}') {
        state_ = has_name_ ? State::kDone : State::kBroken;
        if (has_name_ && !has_arguments_) give_arguments("{}", out);
      } else {
        state_ = State::kBroken;
      }
      return;
    case State::kColon:
      state_ = c == ':' ? State::kValue : State::kBroken;
      return;
    default:
      return begin_value(c);
  }
}

void ToolCallScanner::begin_value(char c) {
  state_ = State::kInValue;
  value_.assign(1, c);
  given_ = 0;
  depth_ = c == '{' || c == '[' ? 1 : 0;
  in_string_ = c == '"';
  is_scalar_ = depth_ == 0 && !in_string_;
  is_escaped_ = false;
}

void ToolCallScanner::take_in_value(char c, std::vector<ToolCallPiece>& out) {
  if (is_scalar_ && (c == ',' || c == '}')) {
    end_value(out);
    return take(c, out);
  }
  value_ += c;
  if (in_string_) {
    if (!is_escaped_ && c == '"') in_string_ = false;
    is_escaped_ = !is_escaped_ && c == '\\';
  } else if (c == '"') {
    in_string_ = true;
    is_escaped_ = false;
  } else if (c == '{' || c == '[') {
    ++depth_;
  } else if (c == '}' || c == ']') {
    --depth_;
  }
  if (!is_scalar_ && depth_ == 0 && !in_string_) end_value(out);
}

// Of an object, as it comes.
void ToolCallScanner::give_known(std::vector<ToolCallPiece>& out) {
  const bool streams = state_ == State::kInValue && has_name_ && !has_arguments_ && is_arguments_key(key_);
  if (!streams || value_.front() != '{' || given_ == value_.size()) return;
  out.push_back({ToolCallPiece::Kind::kArguments, value_.substr(given_)});
  given_ = value_.size();
}

void ToolCallScanner::end_value(std::vector<ToolCallPiece>& out) {
  state_ = State::kKeyOrEnd;
  if (key_ == "name" && !has_name_) {
    const auto name = try_to([&] { return parse_json(value_, "call"); });
    if (!name || name->kind != Document::Kind::kText) {
      state_ = State::kBroken;
      return;
    }
    has_name_ = true;
    out.push_back({ToolCallPiece::Kind::kName, name->text});
    if (!early_.empty()) give_arguments(std::exchange(early_, {}), out);
  } else if (is_arguments_key(key_) && !has_arguments_) {
    // Some models write the arguments as a text that holds JSON.
    std::string arguments = value_;
    if (value_.front() == '"') {
      if (const auto read = try_to([&] { return parse_json(value_, "call"); })) arguments = read->text;
    }
    if (has_name_) {
      give_arguments(arguments.substr(given_), out);
    } else {
      early_ = std::move(arguments);
    }
  }
}

void ToolCallScanner::give_arguments(std::string text, std::vector<ToolCallPiece>& out) {
  has_arguments_ = true;
  if (!text.empty()) out.push_back({ToolCallPiece::Kind::kArguments, std::move(text)});
}

}  // namespace yoke::text
