// What launchers, terminals and containers put around a line of NCCL, and pieces of the line itself.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/check/nccl_log_read.h"
#include "yoke/check/word_scan.h"

namespace yoke::check {
namespace {

// {"log":"spark-a:10:10 [0] NCCL INFO …\n","stream":"stderr"}: the names of Docker, of collectors of logs and of the
// journal.
std::optional<std::string> text_in_json(std::string_view line) {
  constexpr std::array<std::string_view, 4> kNames = {"\"log\"", "\"message\"", "\"msg\"", "\"MESSAGE\""};
  const auto holds = [&](std::string_view name) { return line.find(name) != std::string_view::npos; };
  if (!line.starts_with("{\"") || std::none_of(kNames.begin(), kNames.end(), holds)) return std::nullopt;
  if (!is_json(line)) return std::nullopt;  // a line of the job's own
  try {
    const Document document = parse_json(line, "log");
    for (const std::string_view name : kNames) {
      const Document* const text = document.find(name.substr(1, name.size() - 2));
      if (text != nullptr && text->kind == Document::Kind::kText) return text->text;
    }
  } catch (const Error&) {
    // More than parse_json takes: a key twice, or too deep.
  }
  return std::nullopt;
}

// "\x1b[36m": ESC, a bracket, numbers, and a letter that says what they do.
std::string without_colours(std::string_view text) {
  std::string plain;
  while (true) {
    const std::size_t escape = text.find("\x1b[");
    plain += text.substr(0, escape);
    if (escape == std::string_view::npos) return plain;
    const std::size_t letter = text.find_first_not_of("0123456789;:?", escape + 2);
    if (letter == std::string_view::npos) return plain;
    text.remove_prefix(letter + 1);
  }
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-'; }

// The end of the text that is made of such characters, which is taken off it.
template <typename Is>
std::string_view take_back(std::string_view& text, Is is) {
  const auto start = std::find_if_not(text.rbegin(), text.rend(), is).base();
  const std::string_view taken = text.substr(static_cast<std::size_t>(start - text.begin()));
  text.remove_suffix(taken.size());
  return taken;
}

// "…spark-a:10:10": the name, where the text ends so.
std::string_view name_at_end(std::string_view text) {
  for (int number = 0; number < 2; ++number) {  // of the process and of the thread
    if (take_back(text, is_digit).empty() || !text.ends_with(':')) return {};
    text.remove_suffix(1);
  }
  return take_back(text, is_of_name);
}

std::vector<ScanWord> scan_words() {
  using enum LogWord;
  constexpr std::array<std::pair<LogWord, std::string_view>, 36> kWords = {{
      {kVersion, "NCCL version "},
      {kRanks, " nranks "},
      {kNodes, " nNodes "},
      {kInitStart, "Init START"},
      {kInitComplete, "Init COMPLETE"},
      {kPluginPath, "Plugin Path : "},
      {kOverriding, "Subnet-aware routing: overriding dev"},
      {kListener, "ListenerRouting"},
      {kTreeConnect, "ncclTransportTreeConnect"},
      {kNet, "NET/"},
      {kNetIb, "NET/IB"},
      {kUsingList, " : Using ["},
      {kBootstrap, "Bootstrap"},
      {kRank, " rank "},
      {kNoDevice, "NET/IB : No device found"},
      {kSockets, "NET/Socket : Using ["},
      {kNetwork, "Using network "},
      {kProvider, "NET/OFI Selected "},
      {kVirtualDevice, "Made virtual device"},
      {kPciPath, "pciPath="},
      {kDirectOn, "GPU Direct RDMA Enabled"},
      {kDirectOff, "GPU Direct RDMA Disabled"},
      {kNvls, "NVLS multicast support is "},
      {kCollChannels, " coll channels"},
      {kTrees, "Trees ["},
      {kSetting, " set by environment to "},
      {kPluginFailed, "cannot open shared object file"},
      {kPluginFailed, "NET/Plugin: Could not find"},
      {kPluginFailed, "NET/Plugin : Could not find"},
      {kPluginFailed, "Failed to initialize NET plugin"},
      {kPluginFailed, "Failed to find ncclNetPlugin"},
      {kChannel, "Channel "},
      {kRing, "Ring "},
      {kVia, " via "},
      {kQueueNumber, " qpn "},
      {kGid, " GID "},
  }};
  std::vector<ScanWord> words;
  for (const auto& [word, text] : kWords) words.push_back({text, static_cast<int>(word)});
  for (const std::string_view text : failure_words()) words.push_back({text, static_cast<int>(kJobFailed)});
  return words;
}

}  // namespace

LogWords words_in(std::string_view line) {
  static const WordScan scan(scan_words());
  return {scan.in(line)};
}

std::string_view plain_line(std::string_view line, std::string& made) {
  if (auto inner = text_in_json(line)) {
    made = std::move(*inner);
    line = made;
  }
  if (line.find('\x1b') != std::string_view::npos) {
    made = without_colours(line);
    line = made;
  }
  return trim(line);
}

std::string_view host_before(std::string_view before) {
  // From the end, where NCCL's own words are: launchers write brackets too.
  for (std::size_t bracket = before.rfind(" ["); bracket != std::string_view::npos; bracket = before.rfind(" [")) {
    before = before.substr(0, bracket);
    if (const std::string_view name = name_at_end(before); !name.empty()) return name;
  }
  return "an unnamed host";
}

std::optional<std::string_view> between(std::string_view line, std::string_view before, std::string_view after) {
  // Not find(): for a word that begins with a blank it stops at every blank of the line.
  const void* const start = memmem(line.data(), line.size(), before.data(), before.size());
  if (start == nullptr) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(static_cast<const char*>(start) - line.data()) + before.size());
  return line.substr(0, line.find(after));
}

std::optional<int> number_behind(std::string_view line, std::string_view before) {
  const auto text = between(line, before, "\n");
  if (!text) return std::nullopt;
  int number = 0;
  const auto [rest, failure] = std::from_chars(text->data(), text->data() + text->size(), number);
  return failure == std::errc{} && number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace yoke::check
