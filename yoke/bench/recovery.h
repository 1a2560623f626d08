// How long a group of ranks stands still when one of them is killed: in each round another rank kills itself between
// two all-reduces, the job starts it again, the group is rebuilt, and the next right result ends the time. The
// survivors measure; the newcomer learns from them where the work stands.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/bench/run_record.h"
#include "yoke/rank/rank_part.h"
#include "yoke/rank/world.h"
#include "yoke/spec/cluster.h"

namespace yoke::bench {

struct RecoveryOptions {
  int rounds = 5;
  Bytes size{64 << 10};  // of each all-reduce
};

struct RecoveryResult {
  std::vector<double> seconds;  // by round: from the last right result to the next one, of the slowest survivor
  std::vector<int> victims;
  std::optional<Bytes> size_max;  // where the ranks have memory for no more, and so nothing was measured
};

// The same call on all ranks, also on those that are started in the place of killed ones. Results that are wrong throw.
// What the ranks have too little memory for they do not begin: none is to fail, as the job would start it again.
RecoveryResult run_recovery(rank::World& world, const RecoveryOptions& options);

// Starts so many ranks on the cluster, or on this machine, and returns what they measured. Throws Error(kExhausted)
// where they lack the memory.
RecoveryResult measure_recovery(const RecoveryOptions& options, int ranks, const std::optional<spec::Cluster>& cluster);
rank::RankKind recovery_rank_kind();  // `yoke rank recovery`

std::string recovery_text(const RecoveryResult& result);
RunRecord recovery_record(const RecoveryOptions& options, int ranks, const RecoveryResult& result);
Document to_json(const RecoveryResult& result);
void from_json(const Document& document, RecoveryResult& result);
Document to_json(const RecoveryOptions& options);
void from_json(const Document& document, RecoveryOptions& options);

}  // namespace yoke::bench
