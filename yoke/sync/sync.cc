#include "yoke/sync/sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <map>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/progress.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/fleet/answers.h"
#include "yoke/sync/messages.h"

namespace yoke::sync {
namespace {

using namespace literals;

constexpr int kStreamsPerRail = 4;  // one thread hashes at about 1 GB/s, a rail carries 12
constexpr Seconds kShortLimit{60};

// Beyond any disk or network that is still alive: a transfer that stands still ends by its own limits.
Seconds limit_for(std::uint64_t bytes) { return kShortLimit + Seconds{static_cast<double>(bytes) / 5e6}; }

std::uint64_t total_size(const std::vector<FileSize>& files) {
  std::uint64_t size = 0;
  for (const FileSize& file : files) size += file.size;
  return size;
}

std::vector<PieceRange> different_pieces(const std::vector<std::string>& ours, const std::vector<std::string>& theirs) {
  std::vector<PieceRange> ranges;
  for (std::uint64_t i = 0; i < ours.size(); ++i) {
    if (i < theirs.size() && theirs[i] == ours[i]) continue;
    if (!ranges.empty() && ranges.back().first + ranges.back().count == i) {
      ++ranges.back().count;
    } else {
      ranges.push_back({i, 1});
    }
  }
  return ranges;
}

// What one node must get.
struct Need {
  std::vector<ExpectedFile> expected;
  std::vector<FileToSend> to_send;  // the same files in the same order
  std::uint64_t bytes = 0;

  void add(const FileSize& file, Present present, std::vector<PieceRange> pieces) {
    std::uint64_t coming = 0;
    for (const PieceRange& range : pieces) {
      for (std::uint64_t i = 0; i < range.count; ++i) coming += piece_length(file.size, range.first + i);
    }
    expected.push_back({file, present, coming});
    to_send.push_back({file, std::move(pieces)});
    bytes += coming;
  }
};

class Synchronization {
 public:
  Synchronization(const spec::Cluster& cluster, fleet::Fleet& fleet, const SyncOptions& options)
      : cluster_(cluster), fleet_(fleet), options_(options) {}

  SyncReport run() {
    const auto rounds = plan_rounds(cluster_, options_.source, options_.rail);
    fleet_.reach_all();
    fleet::Node& source = fleet_.at_place(options_.source);
    files_ = from_json<std::vector<FileSize>>(source.ask("sync-list", to_document(options_.folder), kShortLimit));
    if (files_.empty()) {
      throw Error(ErrorCode::kNotFound, fmt::format("'{}' holds no file on {}", options_.folder, source.name()),
                  "name the folder of a model");
    }
    check_listed(files_, source.name());
    compare();
    SyncReport report{.files = files_.size(), .bytes = total_size(files_), .nodes = {}};
    for (const std::vector<Transfer>& round : rounds) {
      for (SyncedNode& node : run_round(round)) report.nodes.push_back(std::move(node));
    }
    return report;
  }

 private:
  std::vector<int> targets() const {
    std::vector<int> places;
    for (int i = 0; i < static_cast<int>(cluster_.nodes.size()); ++i) {
      if (i != options_.source) places.push_back(i);
    }
    return places;
  }

  // Which pieces every target lacks. Only files that some target has are read at the source.
  void compare() {
    const std::vector<int> places = targets();
    const auto found = fleet::all_or_throw(fleet::at_once(places.size(), {}, [&](std::size_t i) {
      fleet::Node& node = fleet_.at_place(places[i]);
      return fleet::list_of<Present>(node.ask("sync-find", to_document(FolderFiles{options_.to, files_}), kShortLimit),
                                     files_.size(), "files", node);
    }));
    FolderFiles ours{options_.folder, {}};
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const bool somewhere =
          std::any_of(found.begin(), found.end(), [&](const auto& one) { return one.at(i) != Present::kNowhere; });
      if (somewhere) ours.files.push_back(files_[i]);
    }
    const auto hashes = hash_everywhere(ours, places, found);
    for (std::size_t i = 0; i < places.size(); ++i)
      needs_[places[i]] = need_of(found[i], hashes.front(), hashes[i + 1]);
  }

  using Hashes = std::map<std::string, std::vector<std::string>>;

  Hashes ask_hashes(int place, const FolderFiles& question, Progress* progress) {
    fleet::Node& node = fleet_.at_place(place);
    const Document given =
        node.ask("sync-hash", to_document(question), limit_for(total_size(question.files)), [&](std::string_view text) {
          if (progress) progress->update(number(text));
        });
    const auto answer = fleet::list_of<std::vector<std::string>>(given, question.files.size(), "files", node);
    Hashes hashes;
    for (std::size_t i = 0; i < question.files.size(); ++i) {
      const FileSize& file = question.files[i];
      // Without all its hashes a file at the source would count as equal.
      if (place == options_.source && answer[i].size() != piece_count(file.size)) {
        throw Error(ErrorCode::kInvalid,
                    fmt::format("'{}' changed on {} while it was compared", printable(file.path, 80), node.name()),
                    "start again when nothing writes to the folder");
      }
      hashes[file.path] = answer[i];
    }
    return hashes;
  }

  // Of the source first, then of each target.
  std::vector<Hashes> hash_everywhere(const FolderFiles& ours, const std::vector<int>& places,
                                      const std::vector<std::vector<Present>>& found) {
    Progress progress("comparing", static_cast<std::int64_t>(total_size(ours.files)));
    return fleet::all_or_throw(fleet::at_once(places.size() + 1, {}, [&](std::size_t i) {
      if (i == 0) return ask_hashes(options_.source, ours, &progress);
      Hashes hashes;
      for (const Present kind : {Present::kPartial, Present::kComplete}) {
        FolderFiles theirs{kind == Present::kPartial ? partial_of(options_.to).native() : options_.to, {}};
        for (std::size_t k = 0; k < files_.size(); ++k) {
          if (found[i - 1][k] == kind) theirs.files.push_back(files_[k]);
        }
        hashes.merge(ask_hashes(places[i - 1], theirs, nullptr));
      }
      return hashes;
    }));
  }

  Need need_of(const std::vector<Present>& found, const Hashes& ours, const Hashes& theirs) const {
    Need need;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const FileSize& file = files_[i];
      if (found[i] == Present::kNowhere) {
        const std::uint64_t count = piece_count(file.size);
        need.add(file, found[i], count > 0 ? std::vector{PieceRange{0, count}} : std::vector<PieceRange>{});
        continue;
      }
      std::vector<PieceRange> pieces = different_pieces(ours.at(file.path), theirs.at(file.path));
      if (found[i] == Present::kComplete && pieces.empty()) continue;
      need.add(file, found[i], std::move(pieces));
    }
    return need;
  }

  std::vector<SyncedNode> run_round(const std::vector<Transfer>& round) {
    std::uint64_t bytes = 0;
    for (const Transfer& transfer : round) bytes += needs_[transfer.to].bytes;
    Progress progress("copying", static_cast<std::int64_t>(bytes));
    std::vector<std::atomic<std::int64_t>> done(round.size());
    const auto waiting = [&](std::size_t) {
      std::int64_t sum = 0;
      for (const auto& one : done) sum += one;
      progress.update(sum);
    };
    return fleet::all_or_throw(
        fleet::at_once(round.size(), waiting, [&](std::size_t i) { return transfer(round[i], done[i]); }));
  }

  SyncedNode transfer(const Transfer& transfer, std::atomic<std::int64_t>& done) {
    const Need& need = needs_[transfer.to];
    SyncedNode result{.name = fleet_.at_place(transfer.to).name(),
                      .from = fleet_.at_place(transfer.from).name(),
                      .bytes = need.bytes,
                      .files = need.expected.size(),
                      .rails = {}};
    if (options_.dry_run || need.expected.empty()) return result;
    fleet::Node& target = fleet_.at_place(transfer.to);
    const Sent sent = move(transfer, need, done);
    target.ask("sync-finish", Document::null(), limit_for(total_size(files_)));
    result.time = sent.time;
    result.damaged = sent.damaged;
    for (std::size_t i = 0; i < sent.rails.size(); ++i) {
      result.rails.push_back({transfer.rails[i].name, sent.rails[i].bytes, sent.rails[i].problem});
    }
    return result;
  }

  Sent move(const Transfer& transfer, const Need& need, std::atomic<std::int64_t>& done) {
    fleet::Node& source = fleet_.at_place(transfer.from);
    fleet::Node& target = fleet_.at_place(transfer.to);
    ReceiverPlan receiver{.folder = options_.to,
                          .token = random_token_hex(16),
                          .rails = {},
                          .streams = kStreamsPerRail,
                          .files = need.expected};
    for (const link::PairRail& rail : transfer.rails) receiver.rails.push_back(rail.b);
    const Deadline deadline = Deadline::after(limit_for(total_size(files_)));
    const auto ports = fleet::list_of<int>(target.answer(target.begin("sync-prepare", to_document(receiver)), deadline),
                                           transfer.rails.size(), "ports", target);
    SenderPlan sender{.folder = transfer.from == options_.source ? options_.folder : options_.to,
                      .token = receiver.token,
                      .streams = kStreamsPerRail,
                      .rails = {},
                      .files = need.to_send};
    for (std::size_t i = 0; i < transfer.rails.size(); ++i) {
      sender.rails.push_back({transfer.rails[i].a, {transfer.rails[i].b.address, ports[i]}});
    }
    const std::uint32_t receiving = target.begin("sync-receive", Document::null());
    const std::uint32_t sending = source.begin("sync-send", to_document(sender));
    const auto sent = try_to([&] {
      return from_json<Sent>(source.answer(sending, deadline, [&](std::string_view text) { done = number(text); }));
    });
    const auto received = try_to([&] { return target.answer(receiving, Deadline::after(kShortLimit + 60_s)); });
    if (!received) throw Error(received.error());  // it knows of a full disk, the sender only of lost connections
    if (!sent) throw Error(sent.error());
    fleet::require_count(sent->rails.size(), transfer.rails.size(), "rails", source);
    return *sent;
  }

  static std::int64_t number(std::string_view text) {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }

  const spec::Cluster& cluster_;
  fleet::Fleet& fleet_;
  const SyncOptions& options_;
  std::vector<FileSize> files_;
  std::map<int, Need> needs_;
};

}  // namespace

SyncReport sync_folder(const spec::Cluster& cluster, fleet::Fleet& fleet, const SyncOptions& options) {
  return Synchronization(cluster, fleet, options).run();
}

}  // namespace yoke::sync
