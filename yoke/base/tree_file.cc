#include "yoke/base/tree_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/text.h"
#include "yoke/base/tree_rules.h"

namespace yoke {
namespace fs = std::filesystem;
namespace {

using namespace tree_rules;

constexpr std::string_view kBlank = " \t";

class Parser {
 public:
  explicit Parser(const ReadInclude& read_include) : read_include_(read_include) {}
  void parse(std::string_view text, const std::string& name, const std::string& folder);
  MemoryTree tree() const;

 private:
  // One file under way. Lines count from 1.
  struct Frame {
    std::string name;
    std::string base;                     // the last absolute folder, "" for the root
    std::string folder;                   // where relative names lie
    std::vector<std::string_view> lines;  // of the text, which lives while its frame does
    std::size_t line = 0;
    std::string_view rest;                        // of the line, after the words taken
    std::map<std::string, std::size_t> set_here;  // path to line
  };
  struct Word {
    std::string text;
    bool quoted;
  };

  Frame& frame() { return frames_.back(); }
  Error fail(std::string_view what, std::string hint = {}) { return fail_at(frame().line, what, std::move(hint)); }
  Error fail_at(std::size_t line, std::string_view what, std::string hint = {}) {
    return Error(ErrorCode::kInvalid, fmt::format("{}:{}: {}", frame().name, line, what), std::move(hint));
  }

  void require_plain(std::string_view text);
  void statement();
  void set(const std::string& first);
  void include(const std::string& file);
  void remove(const std::string& path);
  void move(const std::string& from, const std::string& to);
  void put(const std::string& path, tree_rules::Entry entry);
  std::string take_block();
  Word take_word(std::string_view what);
  std::string take_quoted();
  void require_end();
  std::string whole_path(const std::string& name, const std::string& folder);

  const ReadInclude& read_include_;
  std::vector<Frame> frames_;
  tree_rules::Entries entries_;
  std::size_t text_size_ = 0;
  std::size_t moved_ = 0;
  std::size_t includes_ = 0;
};

void Parser::parse(std::string_view text, const std::string& name, const std::string& folder) {
  frames_.push_back(
      {.name = name, .base = folder, .folder = folder, .lines = {}, .line = 1, .rest = {}, .set_here = {}});
  text_size_ += text.size();
  if (text_size_ > TreeFileLimits::kMaxText) throw fail("the text is too long, with what it includes");
  require_plain(text);
  for (std::string_view rest = text;; rest.remove_prefix(rest.find('\n') + 1)) {
    frame().lines.push_back(rest.substr(0, rest.find('\n')));
    if (rest.find('\n') == std::string_view::npos) break;
  }
  // A frame's address changes when an include pushes another, so frame() is called each time.
  for (frame().line = 1; frame().line <= frame().lines.size(); ++frame().line) {
    frame().rest = frame().lines[frame().line - 1];
    if (frame().rest.starts_with('#') || frame().rest.find_first_not_of(kBlank) == std::string_view::npos) continue;
    statement();
  }
  frames_.pop_back();
}

MemoryTree Parser::tree() const {
  MemoryTree tree;
  for (const auto& [path, entry] : entries_) {
    if (entry.kind == tree_rules::Entry::Kind::kFile) {
      tree.add_file(path, entry.content);
    } else {
      tree.add_link(path, entry.content);
    }
  }
  return tree;
}

void Parser::require_plain(std::string_view text) {
  const auto line_of = [&](std::size_t at) {
    return static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) + 1;
  };
  if (const auto at = find_invalid_utf8(text)) {
    throw fail_at(line_of(*at), "this is not UTF-8", R"(write the bytes as \xHH: NAME : "...")");
  }
  const auto control = std::find_if(text.begin(), text.end(),
                                    [](char c) { return tree_rules::is_control(c) && c != '\n' && c != '\t'; });
  if (control != text.end()) {
    throw fail_at(line_of(static_cast<std::size_t>(control - text.begin())),
                  fmt::format("there is a control character (0x{:02x})", static_cast<unsigned char>(*control)),
                  R"(write it as \xHH: NAME : "..."; lines end with a newline only)");
  }
}

void Parser::statement() {
  if (kBlank.find(frame().rest.front()) != std::string_view::npos) {
    throw fail("this indented line belongs to no '<<'", "lines of a file stand right below its 'NAME <<'");
  }
  const Word first = take_word("a name");
  if (first.quoted) return set(first.text);
  if (first.text == "in") {
    const std::string folder = take_word("a folder").text;
    require_end();
    const std::string whole = folder == "/" ? "" : whole_path(folder, frame().base);
    if (folder.starts_with('/')) frame().base = whole;
    frame().folder = whole;
  } else if (first.text == "include") {
    const std::string file = take_word("a file").text;
    require_end();
    include(file);
  } else if (first.text == "-") {
    const std::string path = take_word("a path").text;
    require_end();
    remove(whole_path(path, frame().folder));
  } else if (first.text == "move") {
    const std::string from = take_word("a path").text;
    const Word to = take_word("'to'");
    if (to.quoted || to.text != "to") throw fail("there must be 'to' after the first path", "write: move NAME to NAME");
    const std::string target = take_word("a path").text;
    require_end();
    move(whole_path(from, frame().folder), whole_path(target, frame().folder));
  } else {
    set(first.text);
  }
}

// NAME = TEXT, NAME <<, NAME : "TEXT" or NAME -> TARGET.
void Parser::set(const std::string& first) {
  const std::string path = whole_path(first, frame().folder);
  const std::string_view after = trim(frame().rest);
  const Word sign = take_word("'=', '<<', ':' or '->'");
  if (sign.quoted || (sign.text != "=" && sign.text != "<<" && sign.text != ":" && sign.text != "->")) {
    throw fail(fmt::format("there is '{}' after the name, not '=', '<<', ':' or '->'", printable(after, 40)),
               "a name with white space in it stands in quotes");
  }
  if (sign.text == "=") return put(path, {tree_rules::Entry::Kind::kFile, std::string(trim(frame().rest)) + "\n"});
  if (sign.text == "<<") {
    require_end();
    const std::size_t start = frame().line;
    std::string content = take_block();
    const std::size_t end = std::exchange(frame().line, start);  // errors name the line with the name
    if (content.empty()) throw fail("no indented line follows", R"(an empty file is written: NAME : "")");
    put(path, {tree_rules::Entry::Kind::kFile, std::move(content)});
    frame().line = end;
    return;
  }
  const Word content = take_word(sign.text == ":" ? "quoted text" : "a target");
  require_end();
  if (sign.text == ":") {
    if (!content.quoted) throw fail("the content after ':' stands in quotes", "or write: NAME = TEXT");
    return put(path, {tree_rules::Entry::Kind::kFile, content.text});
  }
  if (const auto complaint = tree_rules::complaint_about_target(content.text)) throw fail(*complaint);
  put(path, {tree_rules::Entry::Kind::kLink, content.text});
}

// The indented lines after the current one, and the empty lines between them. Leaves the last of them as the current.
std::string Parser::take_block() {
  std::string content;
  const std::vector<std::string_view>& lines = frame().lines;
  std::size_t empty = 0;
  for (std::size_t next = frame().line; next < lines.size(); ++next) {
    const std::string_view line = lines[next];
    if (line.empty()) {
      ++empty;
    } else if (line.starts_with("  ")) {
      content.append(std::exchange(empty, 0), '\n').append(line.substr(2)) += '\n';
      frame().line = next + 1;
    } else {
      break;
    }
  }
  return content;
}

void Parser::include(const std::string& file) {
  if (file.empty() || file.starts_with('/') || file.find('\0') != std::string::npos) {
    throw fail("a file is included by its path relative to this one");
  }
  const std::string whole = (fs::path(frame().name).parent_path() / file).lexically_normal().generic_string();
  for (const Frame& open : frames_) {
    if (fs::path(open.name).lexically_normal() == whole) {
      throw fail(fmt::format("'{}' includes itself", printable(whole)));
    }
  }
  if (!read_include_) throw fail("nothing can be included here");
  if (frames_.size() >= TreeFileLimits::kIncludesDeep) throw fail("includes are nested too deep");
  if (++includes_ > TreeFileLimits::kMaxIncludes) {
    throw fail(fmt::format("more than {} files are included", TreeFileLimits::kMaxIncludes));
  }
  throw_if_interrupted();
  std::string text;
  try {
    text = read_include_(whole);
  } catch (const Error& error) {
    throw fail(fmt::format("cannot include '{}': {}", printable(file), error.message()), error.hint());
  }
  parse(text, whole, std::string(frame().folder));
}

void Parser::remove(const std::string& path) {
  const auto [first, last] = tree_rules::below(entries_, path);
  const bool folder = first != last;
  entries_.erase(first, last);
  if (entries_.erase(path) == 0 && !folder) {
    throw fail(fmt::format("there is no '{}' to remove", printable(path)));
  }
  // What this file said of it is gone, and may be said again.
  const auto [here, here_end] = tree_rules::below(frame().set_here, path);
  frame().set_here.erase(here, here_end);
  frame().set_here.erase(path);
}

void Parser::move(const std::string& from, const std::string& to) {
  if (to == from || to.starts_with(from + "/")) throw fail("a folder cannot be moved into itself");
  std::vector<std::pair<std::string, tree_rules::Entry>> taken;
  const auto [first, last] = tree_rules::below(entries_, from);
  for (auto entry = first; entry != last; ++entry) {
    taken.emplace_back(to + entry->first.substr(from.size()), entry->second);
  }
  if (const auto entry = entries_.find(from); entry != entries_.end()) taken.emplace_back(to, entry->second);
  moved_ += taken.size();
  if (moved_ > TreeFileLimits::kMaxEntries) throw fail("too much is moved");
  if (taken.empty()) throw fail(fmt::format("there is no '{}' to move", printable(from)));
  remove(from);
  if (const auto [there, there_end] = tree_rules::below(entries_, to); there != there_end || entries_.contains(to)) {
    throw fail(fmt::format("there is a '{}' already", printable(to)), "remove it first");
  }
  for (auto& [path, entry] : taken) {
    if (const auto complaint = tree_rules::complaint_about(path)) throw fail(*complaint);
    put(path, std::move(entry));
  }
}

void Parser::put(const std::string& path, tree_rules::Entry entry) {
  if (const auto* by = tree_rules::blocker_of(entries_, path)) {
    throw fail(tree_rules::blocked(*by),
               by->second.kind == tree_rules::Entry::Kind::kLink ? "write it where the link leads" : "");
  }
  if (const auto [first, last] = tree_rules::below(entries_, path); first != last) {
    throw fail(fmt::format("'{}' is a folder already", printable(path)), "remove it first");
  }
  if (const auto [here, fresh] = frame().set_here.emplace(path, frame().line); !fresh) {
    throw fail(fmt::format("'{}' is set twice, first in line {}", printable(path), here->second));
  }
  entries_.insert_or_assign(path, std::move(entry));
  if (entries_.size() > TreeFileLimits::kMaxEntries) throw fail("there are too many files");
}

Parser::Word Parser::take_word(std::string_view what) {
  std::string_view& rest = frame().rest;
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlank), rest.size()));
  if (rest.empty()) throw fail(fmt::format("{} is missing at the end of the line", what));
  if (rest.front() == '"') return {take_quoted(), true};
  const std::string word(rest.substr(0, rest.find_first_of(kBlank)));
  rest.remove_prefix(word.size());
  return {word, false};
}

std::string Parser::take_quoted() {
  std::string_view& rest = frame().rest;
  std::string text;
  for (std::size_t at = 1; at < rest.size(); ++at) {
    if (rest[at] == '"') {
      rest.remove_prefix(at + 1);
      if (!rest.empty() && kBlank.find(rest.front()) == std::string_view::npos) break;
      return text;
    }
    if (rest[at] != '\\') {
      text += rest[at];
      continue;
    }
    const char kind = ++at < rest.size() ? rest[at] : '\0';
    const auto digit = [&](std::size_t i) {
      const std::string_view digits = "0123456789abcdef";
      return i < rest.size() ? digits.find(rest[i]) : std::string_view::npos;
    };
    if (kind == '"' || kind == '\\') {
      text += kind;
    } else if (kind == 'n' || kind == 't') {
      text += kind == 'n' ? '\n' : '\t';
    } else if (kind == 'x' && digit(at + 1) != std::string_view::npos && digit(at + 2) != std::string_view::npos) {
      text += static_cast<char>(digit(at + 1) * 16 + digit(at + 2));
      at += 2;
    } else {
      throw fail("there is a '\\' that means nothing", R"(\" \\ \n \t and \xHH with small letters are known)");
    }
  }
  throw fail("a quoted text does not end", R"(a " inside is written \")");
}

void Parser::require_end() {
  if (const std::string_view more = trim(frame().rest); !more.empty()) {
    throw fail(fmt::format("there is more than was expected: '{}'", printable(more, 40)),
               "a name with white space in it stands in quotes; a comment has a line of its own");
  }
}

std::string Parser::whole_path(const std::string& name, const std::string& folder) {
  std::vector<std::string> parts;
  for (std::string& part : split(name.starts_with('/') ? name : folder + "/" + name, '/')) {
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
  }
  std::string path = tree_rules::join(parts);
  if (const auto complaint = tree_rules::complaint_about(path))
    throw fail(fmt::format("'{}': {}", printable(name), *complaint));
  return path;
}

}  // namespace

MemoryTree parse_tree(std::string_view text, std::string_view name, const ReadInclude& read_include) {
  Parser parser(read_include);
  parser.parse(text, std::string(name), "");
  return parser.tree();
}

namespace {

// Whether a file, with links followed, lies in a folder or below.
bool lies_in(const fs::path& file, const fs::path& folder) {
  std::error_code failure;
  const fs::path real = fs::weakly_canonical(file, failure);
  const fs::path home = fs::weakly_canonical(folder, failure);
  if (failure) return false;
  const auto [left, rest] = std::mismatch(home.begin(), home.end(), real.begin(), real.end());
  return left == home.end();
}

}  // namespace

MemoryTree load_tree(const fs::path& file) {
  constexpr Bytes kMax{static_cast<std::int64_t>(TreeFileLimits::kMaxText)};
  const fs::path folder = fs::absolute(file).parent_path();
  const char* const parts = std::getenv("YOKE_CAPTURE_PARTS");
  const auto include = [&](std::string_view path) {
    const bool is_part = parts && *parts == '/' && lies_in(path, parts);
    if (!is_part && !lies_in(path, folder)) {
      throw Error(ErrorCode::kInvalid, "it lies outside of the capture's folder");
    }
    return read_file(path, kMax);
  };
  return parse_tree(read_file(file, kMax), file.native(), include);
}

}  // namespace yoke
