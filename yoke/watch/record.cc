#include "yoke/watch/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"

namespace yoke::watch {

template <class Visitor>
void visit_fields(Visitor& visit, NodeProblem& problem) {
  visit.required("message", problem.message);
  visit.optional("hint", problem.hint);
  visit.optional("needs_login", problem.needs_login);
}

namespace {

constexpr int kFormat = 1;
constexpr int kWholeEvery = 30;
constexpr std::size_t kMaxNodes = 4096;

// CRC-32 of IEEE 802.3.
constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1U) != 0 ? 0xEDB88320U ^ (value >> 1U) : value >> 1U;
    table[i] = value;
  }
  return table;
}
constexpr auto kCrcTable = make_crc_table();

std::uint32_t crc32(std::string_view text) {
  std::uint32_t value = ~0U;
  for (const char c : text) value = kCrcTable[(value ^ static_cast<unsigned char>(c)) & 0xFFU] ^ (value >> 8U);
  return ~value;
}

[[noreturn]] void refuse_difference() {
  throw Error(ErrorCode::kInvalid, "a sample of the record does not follow from the one before");
}

std::size_t node_of(const Document& content) {
  const Document* const node = content.find("n");
  const auto place = node ? from_json<std::int64_t>(*node) : 0;
  if (place < 0 || place >= static_cast<std::int64_t>(kMaxNodes)) {
    throw Error(ErrorCode::kInvalid, "the record names a node that cannot be");
  }
  return static_cast<std::size_t>(place);
}

}  // namespace

Document difference(const Document& before, const Document& after) {
  Document changes = Document::map();
  if (before.kind == Document::Kind::kList && after.kind == Document::Kind::kList) {
    for (std::size_t i = 0; i < after.items.size(); ++i) {
      const Document& was = before.items[i];
      const Document& now = after.items[i];
      if (was == now) continue;
      const bool inner = was.kind == Document::Kind::kMap && now.kind == Document::Kind::kMap;
      changes.add(std::to_string(i), inner ? difference(was, now) : now);
    }
    return changes;
  }
  for (const auto& [key, value] : before.fields) {
    if (!after.find(key)) changes.add(key, Document::null());
  }
  for (const auto& [key, now] : after.fields) {
    const Document* const was = before.find(key);
    if (was && *was == now) continue;
    const bool maps = was && was->kind == Document::Kind::kMap && now.kind == Document::Kind::kMap;
    const bool lists = was && was->kind == Document::Kind::kList && now.kind == Document::Kind::kList &&
                       was->items.size() == now.items.size();
    changes.add(key, maps || lists ? difference(*was, now) : now);
  }
  return changes;
}

void apply_difference(Document& document, const Document& changes) {
  if (changes.kind != Document::Kind::kMap) refuse_difference();
  if (document.kind == Document::Kind::kList) {
    for (const auto& [key, value] : changes.fields) {
      std::size_t place = 0;
      const auto [rest, failure] = std::from_chars(key.data(), key.data() + key.size(), place);
      if (failure != std::errc{} || rest != key.data() + key.size() || place >= document.items.size()) {
        refuse_difference();
      }
      Document& item = document.items[place];
      if (item.kind == Document::Kind::kMap && value.kind == Document::Kind::kMap) {
        apply_difference(item, value);
      } else {
        item = value;
      }
    }
    return;
  }
  if (document.kind != Document::Kind::kMap) refuse_difference();
  for (const auto& [key, value] : changes.fields) {
    const auto field = std::find_if(document.fields.begin(), document.fields.end(),
                                    [&key = key](const Document::Field& f) { return f.first == key; });
    if (value.kind == Document::Kind::kNull) {
      if (field != document.fields.end()) document.fields.erase(field);
    } else if (field == document.fields.end()) {
      document.add(key, value);
    } else if (value.kind == Document::Kind::kMap &&
               (field->second.kind == Document::Kind::kMap || field->second.kind == Document::Kind::kList)) {
      apply_difference(field->second, value);
    } else {
      field->second = value;
    }
  }
}

std::string record_line(std::uint64_t number, const Document& content) {
  const std::string text = fmt::format("{} {}", number, print_json(content, JsonLayout::kOneLine));
  return fmt::format("{:08x} {}\n", crc32(text), text);
}

namespace {

// The text behind the checksum, where that is right: a number, a blank, the content.
std::optional<std::string_view> checked_text(std::string_view line) {
  if (line.size() < 12 || line.size() > kMaxRecordLine || line[8] != ' ') return std::nullopt;
  std::uint32_t sum = 0;
  const auto [end, failure] = std::from_chars(line.data(), line.data() + 8, sum, 16);
  const std::string_view text = line.substr(9);
  if (failure != std::errc{} || end != line.data() + 8 || crc32(text) != sum) return std::nullopt;
  return text;
}

// Takes the number and the blank off the text.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || rest == text.data() + text.size() || *rest != ' ') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()) + 1);
  return number;
}

}  // namespace

std::optional<std::uint64_t> record_line_number(std::string_view line) {
  auto text = checked_text(line);
  return text ? take_number(*text) : std::nullopt;
}

std::optional<RecordLine> read_record_line(std::string_view line) {
  auto text = checked_text(line);
  const auto number = text ? take_number(*text) : std::nullopt;
  if (!number) return std::nullopt;
  auto content = try_to([&] { return parse_json(*text, "a record"); });
  if (!content) return std::nullopt;
  return RecordLine{.number = *number, .content = *std::move(content)};
}

RecordEncoder::RecordEncoder(const WatchPlan& plan) : nodes_(plan.cluster.nodes.size()) {
  header_ = record_line(0, Document::map({{"yoke_watch", Document::number(std::int64_t{kFormat})},
                                          {"interval", Document::number(plan.interval.value)},
                                          {"cluster", spec::to_json(plan.cluster)}}));
}

void RecordEncoder::begin_again() {
  for (LastSample& node : nodes_) node.is_known = false;
}

std::vector<Observation> RecordEncoder::known_machines() const {
  std::vector<Observation> known;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].machine) known.push_back({.node = i, .machine = nodes_[i].machine});
  }
  return known;
}

std::string RecordEncoder::encode(const Observation& observation) {
  Document content = Document::map({{"n", Document::number(static_cast<std::int64_t>(observation.node))},
                                    {"t", Document::number(observation.time)}});
  if (observation.node >= nodes_.size()) nodes_.resize(observation.node + 1);
  LastSample& kept = nodes_[observation.node];
  if (observation.machine) {
    kept.machine = observation.machine;
    content.add("machine", spec::to_json(*observation.machine));
  }
  if (observation.problem) content.add("problem", to_document(*observation.problem));
  if (observation.sample) {
    Document sample = to_json(*observation.sample);
    const bool whole = !kept.is_known || ++kept.since_whole >= kWholeEvery;
    if (whole) {
      kept.since_whole = 0;
      content.add("whole", sample);
    } else {
      content.add("change", difference(kept.sample, sample));
    }
    kept.sample = std::move(sample);
    kept.is_known = true;
  }
  return record_line(++number_, content);
}

std::optional<Observation> RecordDecoder::take(std::string_view line) {
  const auto read = read_record_line(line);
  if (!read) {
    ++damaged_;
    return std::nullopt;
  }
  return take(*read);
}

std::optional<Observation> RecordDecoder::take(const RecordLine& line) {
  // A line that is missing may have been of any node: what follows from it is not known until the next whole sample.
  if (line.number > last_number_ + 1) {
    for (LastSample& kept : nodes_) kept.is_known = false;
  }
  last_number_ = std::max(last_number_, line.number);
  auto taken = try_to([&]() -> std::optional<Observation> {
    if (const Document* const format = line.content.find("yoke_watch")) {
      if (from_json<int>(*format) != kFormat) {
        throw Error(ErrorCode::kUnsupported, "the record is of another version of yoke");
      }
      WatchPlan plan;
      if (const Document* const cluster = line.content.find("cluster")) from_json(*cluster, plan.cluster);
      if (const Document* const interval = line.content.find("interval")) from_json(*interval, plan.interval.value);
      plan_ = std::move(plan);
      return std::nullopt;
    }
    Observation found{.node = node_of(line.content)};
    if (const Document* const time = line.content.find("t")) from_json(*time, found.time);
    if (const Document* const machine = line.content.find("machine"))
      found.machine = from_json<spec::Machine>(*machine);
    if (const Document* const problem = line.content.find("problem")) found.problem = from_json<NodeProblem>(*problem);
    if (found.node >= nodes_.size()) nodes_.resize(found.node + 1);
    LastSample& kept = nodes_[found.node];
    if (const Document* const whole = line.content.find("whole")) {
      kept.sample = *whole;
      kept.is_known = true;
    } else if (const Document* const change = line.content.find("change")) {
      if (!kept.is_known) return std::nullopt;  // what it follows from is lost
      apply_difference(kept.sample, *change);
    } else {
      return found;
    }
    found.sample = from_json<Sample>(kept.sample);
    return found;
  });
  if (taken) return *std::move(taken);
  if (taken.error().code() == ErrorCode::kUnsupported) throw Error(taken.error());
  ++damaged_;
  if (const auto node = try_to([&] { return node_of(line.content); }); node && *node < nodes_.size()) {
    nodes_[*node].is_known = false;
  }
  return std::nullopt;
}

RecordWriter::RecordWriter(const std::filesystem::path& file, const WatchPlan& plan, Bytes limit)
    : name_(file),
      file_(open_file(file, O_WRONLY | O_CREAT | O_TRUNC)),
      encoder_(plan),
      limit_(std::max(limit.value, kMinRecordBytes)) {
  write(encoder_.header());
  begin_ = at_;
}

void RecordWriter::write(const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t count = pwrite(file_.get(), rest.data(), rest.size(), at_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(errno, fmt::format("cannot write the record {}", name_.native()));
    at_ += count;
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  largest_ = std::max(largest_, at_);
}

void RecordWriter::add(const Observation& observation) {
  const std::string line = encoder_.encode(observation);
  if (at_ + static_cast<std::int64_t>(line.size()) <= limit_) return write(line);
  // Over the oldest lines. What is left of the one that is cut in two has a wrong checksum.
  at_ = begin_;
  encoder_.begin_again();
  for (Observation& machine : encoder_.known_machines()) {
    machine.time = observation.time;
    write(encoder_.encode(machine));
  }
  write(encoder_.encode(observation));
}

}  // namespace yoke::watch
