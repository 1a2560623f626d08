// Reads {"name": "f", "arguments": {…}} as it comes, and gives the arguments on piece by piece as they stand.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace yoke::text {

struct ToolCallPiece {
  enum class Kind { kName, kArguments };
  Kind kind = Kind::kName;
  std::string text;
};

class ToolCallScanner {
 public:
  // Takes bytes up to the end of the object, and says how many it took. After the name it takes a break: it may be one
  // that nobody knows.
  std::size_t add(std::string_view text, std::vector<ToolCallPiece>& out);
  bool is_done() const { return state_ == State::kDone; }
  bool is_broken() const { return state_ == State::kBroken; }  // no such object
  bool has_name() const { return has_name_; }

 private:
  enum class State { kBegin, kKeyOrEnd, kKey, kColon, kValue, kInValue, kDone, kBroken };
  void take(char c, std::vector<ToolCallPiece>& out);
  void begin_value(char c);
  void take_in_value(char c, std::vector<ToolCallPiece>& out);
  void end_value(std::vector<ToolCallPiece>& out);
  void give_known(std::vector<ToolCallPiece>& out);
  void give_arguments(std::string text, std::vector<ToolCallPiece>& out);

  State state_ = State::kBegin;
  std::string key_, value_;
  int depth_ = 0;
  bool in_string_ = false, is_escaped_ = false;
  bool is_scalar_ = false;
  bool has_name_ = false, has_arguments_ = false;
  std::size_t given_ = 0;  // bytes of the value
  std::string early_;      // arguments that came before the name
};

}  // namespace yoke::text
