// How NCCL joins the ranks: the order of each ring, and each rank's place in the trees.
#include <algorithm>
#include <charconv>

#include "yoke/base/text.h"
#include "yoke/check/nccl_log_read.h"

namespace yoke::check {
namespace {

constexpr int kMaxChannels = 64;  // NCCL's own limit
constexpr std::size_t kMaxRingRanks = 16'384;
constexpr std::size_t kMaxTreePlaces = 64 * 1024;
constexpr std::size_t kMaxTreeLines = 1'024;

// Takes a number off the front.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

std::optional<int> take_channel(std::string_view& text) {
  const auto channel = take_number(text);
  return channel && *channel >= 0 && *channel < kMaxChannels ? channel : std::nullopt;
}

// "Channel 02/04 :    0   1   3   2": the third of four rings. Releases before 2.5 print no "/04".
void read_ring(std::string_view line, spec::NcclHost& host, spec::NcclLog& log) {
  auto text = between(line, "Channel ", "\n");
  if (!text) return;
  const auto channel = take_channel(*text);
  const auto count = take(*text, "/") ? take_number(*text) : std::nullopt;
  *text = trim(*text);
  if (!channel || !take(*text, ":")) return;
  std::vector<int> ranks;
  for (*text = trim(*text); !text->empty() && ranks.size() < kMaxRingRanks; *text = trim(*text)) {
    const auto rank = take_number(*text);
    // "Channel 00/0 : 0[0] -> 1[1]" is a connection.
    if (!rank || *rank < 0 || (!text->empty() && text->front() != ' ')) return;
    ranks.push_back(*rank);
  }
  if (ranks.empty()) return;
  if (count && *count > *channel && *count <= kMaxChannels) host.ring_counts.insert(*count);
  if (!log.rings.empty() && ranks.size() > log.rings.begin()->second.ranks.size()) log.rings.clear();
  if (!log.rings.empty() && ranks.size() < log.rings.begin()->second.ranks.size()) return;
  if (host.lines["rings"].empty()) host.lines["rings"] = printable(trim(line), 200);
  log.rings.try_emplace(*channel, spec::NcclRing{std::move(ranks), printable(trim(line), 200)});
}

// "Trees [0] 1/8/-1->0->-1 [1] 1/-1/-1->0->8": of each channel the children, the rank itself, and the parent.
void read_trees(std::string_view line, spec::NcclHost& host, spec::NcclLog& log) {
  auto text = between(line, "Trees ", "\n");
  if (!text) return;
  int count = 0;
  std::optional<int> speaker;
  while (take(*text, "[") && count < kMaxChannels) {
    const auto channel = take_channel(*text);
    const std::size_t arrow = text->find("->");
    if (!channel || arrow == std::string_view::npos) return;
    text->remove_prefix(arrow + 2);
    const auto rank = take_number(*text);
    if (!rank || *rank < 0 || !take(*text, "->")) return;
    const auto parent = take_number(*text);
    if (!parent) return;
    ++count;
    speaker = rank;
    if (log.tree_parents.size() < kMaxTreePlaces) log.tree_parents[{*channel, *rank}].insert(*parent);
    // Releases before 2.8 print two trees of a channel, "…->0->-1|-1->0->1/-1/-1".
    const std::size_t next = text->find('[');
    text->remove_prefix(std::min(next, text->size()));
  }
  if (count == 0) return;
  host.ranks.insert(*speaker);
  host.tree_counts.insert(count);
  ++host.tree_lines;
  if (host.lines["trees"].empty()) host.lines["trees"] = printable(trim(line), 200);
  if (log.tree_lines.size() < kMaxTreeLines) log.tree_lines.try_emplace(*speaker, printable(trim(line), 200));
}

}  // namespace

void read_graph(std::string_view line, LogWords words, spec::NcclHost& host, spec::NcclLog& log) {
  using enum LogWord;
  if (words.has(kChannel) && !words.has(kVia)) read_ring(line, host, log);
  if (words.has(kTrees)) read_trees(line, host, log);
}

}  // namespace yoke::check
