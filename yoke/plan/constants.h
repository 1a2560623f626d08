// The efficiencies that stand between a data sheet and a measurement. Each belongs to a class of hardware, engine and
// operation, never to a model or a row, and says on how many published measurements it rests (docs/planning.md lists
// them; `yoke plan validate` recounts them). A plan takes them as data, so that they can be fitted and replaced by what
// this machine measures.
//
//   Constants constants = shipped_constants();
//   constants.set(Constant::kEtaLlamaCpp, 0.79);
#pragma once
#include <array>
#include <bitset>
#include <cstddef>
#include <span>
#include <string_view>

namespace yoke::plan {

enum class Constant {
  // Decoding on a GB10: fractions of memory bandwidth, and fixed times.
  kEtaLlamaCpp,
  kEtaVllmFourBit,
  kEtaVllmInt4Dense,
  kEtaVllmWide,
  kEtaVllmWideMixture,
  kEtaTensorRtGb10,
  kEtaCacheGb10,
  kLayerGb10,
  kLayerWithoutGraphs,
  kLlamaCppMixtureBatch,
  kDecodeRateGb10,
  kReplicaBalance,
  kRoutingSkew,
  kAcceptance,
  // Decoding on servers.
  kEtaHopper,
  kEtaHopperFp4,
  kEtaBlackwell,
  kEtaBlackwellFp4,
  kLayerServer,
  kLayerTensorRt,
  kLayerHopperMixture,
  kLayerBlackwellMixture,
  kStreamServer,
  kStreamTensorRt,
  kNvlinkStart,
  kNvlinkStartPerDoubling,
  kNvlinkUse,
  // As many requests as fit.
  kFullEta,
  kFullMfuFp8,
  kFullMfuFp4,
  kFullMfuMixture,
  kFullMfuMixtureFp4,
  // Prefill.
  kPrefillQ8,
  kPrefillQ4,
  kPrefillMxfp4,
  kPrefillAttention,
  kPrefillNvfp4Dense,
  kPrefillNvfp4Mixture,
  kPrefillBf16Gb10,
  kPrefillOverFabric,
  kPrefillMfuServer,
  kPrefillMfuServerFp4,
  // Collectives between GB10 units: start and rate.
  kNcclStart2,
  kNcclStart4,
  kNcclRate2,
  kNcclRate4,
  kOneShotStart2,
  kOneShotStart4,
  kOneShotRate2,
  kOneShotRate4,
  kNcclTestsStart,
  kNcclTestsStartPerNode,
  kNcclTestsRate,
  kBusRate,
  kBusRateSmallMtu,
  kBusRateDegraded,
  kBondedStart,
  // Training.
  kTrainFp8Hopper,
  kTrainFp8Blackwell,
  kTrainFp8BlackwellUltra,
  kTrainFp4,
  kTrainBf16,
  kTrainAttention,
  kTrainTitan,
  kTrainTitanPipeline,
  kTrainLoraGb10,
  kTrainGb10,
  kTrainMixtureHopper,
  kTrainMixtureBlackwell,
  // Images.
  kImageEager,
  kImageCompiled,
  kImageEagerBlock,
  kImageBf16Gb10,
  kImageFp4Gb10,
  kImageSplit,
  kImageRing,
  // Plain processors, by yoke's own engine: 'yoke bench calibrate' measures all of them.
  kEtaCpu32,
  kEtaCpu16,
  kEtaCpu8,
  kEtaCpu4,
  kEtaCpu4Group32,
  kEtaCpuFp4,
  kEtaCpuCache,
  kLayerCpu,
  kStepCpu,
  kStepCpuRanks,
  kPrefillCpu32,
  kPrefillCpu16,
  kPrefillCpu8,
  kPrefillCpu4,
  kPrefillCpuFp4,
  kCount,
};
inline constexpr std::size_t kConstantCount = static_cast<std::size_t>(Constant::kCount);

struct ConstantRow {
  Constant id;
  std::string_view name;
  double value;            // shipped
  double prior;            // what one would take without any row of measured.csv
  std::string_view unit;   // "" for a fraction
  int rows;                // measurements of confidence A and B that it enters
  int models;              // different models among them
  std::string_view rests;  // where the value comes from, where rows are fewer than three
};
std::span<const ConstantRow> constant_table();
const ConstantRow& row_of(Constant id);

using ConstantSet = std::bitset<kConstantCount>;

// Values, and which of them were read: the second is how rows behind a constant are counted.
class Constants {
 public:
  double operator[](Constant id) const {
    used_.set(static_cast<std::size_t>(id));
    return values_[static_cast<std::size_t>(id)];
  }
  double peek(Constant id) const { return values_[static_cast<std::size_t>(id)]; }
  void set(Constant id, double value) { values_[static_cast<std::size_t>(id)] = value; }
  // Measured on the machines that are planned for: it rests on them, not on published rows.
  void set_measured(Constant id, double value) {
    set(id, value);
    measured_.set(static_cast<std::size_t>(id));
  }
  const ConstantSet& measured() const { return measured_; }
  const ConstantSet& used() const { return used_; }
  void forget_used() const { used_.reset(); }

 private:
  std::array<double, kConstantCount> values_{};
  ConstantSet measured_;
  mutable ConstantSet used_;
};

Constants shipped_constants();
Constants prior_constants();

}  // namespace yoke::plan
