#include "yoke/plan/constants.h"

#include "yoke/base/check.h"

namespace yoke::plan {
namespace {

using C = Constant;

constexpr std::string_view kCalibrated = "assumed; 'yoke bench calibrate' measures it";

// Values are rounded: a fit to the last digit of few rows would prove nothing. `prior` is what one would take without
// any row, from data sheets, other tools and reports outside measured.csv; held-out models are predicted from a fit
// that starts there. `rows` and `models` are recounted by a test. What rests on fewer than three rows says on what
// else.
constexpr std::array kTable = {
    ConstantRow{C::kEtaLlamaCpp, "decode.llama.cpp.gb10.bandwidth", 0.82, 0.7, "", 30, 4, ""},
    ConstantRow{C::kEtaVllmFourBit, "decode.vllm.4bit.gb10.bandwidth", 0.62, 0.7, "", 36, 7, ""},
    ConstantRow{C::kEtaVllmInt4Dense, "decode.vllm.int4-dense.gb10.bandwidth", 0.75, 0.75, "", 0, 0,
                "prior: no row. The mean of what is measured beside it on a GB10: llama.cpp 0.82, vLLM with wide "
                "weights 0.82, vLLM with other 4-bit weights 0.62"},
    ConstantRow{C::kEtaVllmWide, "decode.vllm.wide.gb10.bandwidth", 0.82, 0.7, "", 8, 5, ""},
    ConstantRow{C::kEtaVllmWideMixture, "decode.vllm.wide-mixture.gb10.bandwidth", 0.67, 0.7, "", 0, 0,
                "prior: Qwen3.6-35B-A3B reported at 67% in BF16 and 66% in FP8, one sequence in vLLM"},
    ConstantRow{C::kEtaTensorRtGb10, "decode.trtllm.gb10.bandwidth", 0.78, 0.7, "", 0, 0,
                "prior: 71% end to end reported for Llama 3.1 8B NVFP4"},
    ConstantRow{C::kEtaCacheGb10, "decode.cache.gb10.bandwidth", 0.65, 0.7, "", 61, 14, ""},
    ConstantRow{C::kLayerGb10, "decode.layer.gb10", 30, 20, "us", 61, 14, ""},
    ConstantRow{C::kLayerWithoutGraphs, "decode.layer.without-graphs", 250, 100, "us", 1, 1,
                "one row; prior: five launches of 40 us"},
    ConstantRow{C::kLlamaCppMixtureBatch, "decode.llama.cpp.mixture-batch.layer", 150, 50, "us", 5, 1, ""},
    ConstantRow{C::kDecodeRateGb10, "decode.arithmetic.gb10", 70, 50, "TFLOP/s", 33, 6, ""},
    ConstantRow{C::kReplicaBalance, "replicas.balance", 0.87, 0.9, "", 6, 1, ""},
    ConstantRow{C::kRoutingSkew, "mixture.routing-skew", 0.85, 0.85, "", 60, 7,
                "not fitted: shown rows fit 0.70, unrelated chats 0.9 to 1; both ends are in the interval"},
    ConstantRow{C::kAcceptance, "speculative.acceptance", 0.5, 0.5, "", 5, 2,
                "not fitted: a property of the text; rows imply 0.33 and 0.62"},
    ConstantRow{C::kEtaHopper, "decode.hopper.bandwidth", 0.82, 0.7, "", 7, 2, ""},
    ConstantRow{C::kEtaHopperFp4, "decode.hopper.fp4.bandwidth", 0.58, 0.6, "", 2, 1,
                "two rows; 97 more of gpt-oss-120b on H100 and H200 (InferenceMAX, 2026-04) fit 0.59"},
    ConstantRow{C::kEtaBlackwell, "decode.blackwell.bandwidth", 0.78, 0.7, "", 6, 2, ""},
    ConstantRow{C::kEtaBlackwellFp4, "decode.blackwell.fp4.bandwidth", 0.56, 0.6, "", 2, 1,
                "two rows; 189 more of four models on B200 and B300 (InferenceMAX, 2026-04) fit 0.59"},
    ConstantRow{C::kLayerServer, "decode.layer.server", 24, 20, "us", 8, 3, ""},
    ConstantRow{C::kLayerTensorRt, "decode.layer.trtllm.server", 11, 15, "us", 5, 1, ""},
    ConstantRow{C::kLayerHopperMixture, "decode.layer.hopper.mixture", 48, 20, "us", 2, 1,
                "two rows; gpt-oss-120b and DeepSeek R1 on H100 and H200 (InferenceMAX, 2026-04)"},
    ConstantRow{C::kLayerBlackwellMixture, "decode.layer.blackwell.mixture", 26, 20, "us", 1, 1,
                "one row; three mixtures on B200 and B300 (InferenceMAX, 2026-04) fit 18 to 35"},
    ConstantRow{C::kStreamServer, "decode.stream.server", 18, 10, "us", 8, 3, ""},
    ConstantRow{C::kStreamTensorRt, "decode.stream.trtllm.server", 5, 10, "us", 5, 1, ""},
    ConstantRow{C::kNvlinkStart, "all-reduce.nvlink.start", 6, 10, "us", 33, 6, ""},
    ConstantRow{C::kNvlinkStartPerDoubling, "all-reduce.nvlink.start-per-doubling", 6, 3, "us", 33, 6, ""},
    ConstantRow{C::kNvlinkUse, "all-reduce.nvlink.use", 0.6, 0.7, "", 38, 9, ""},
    ConstantRow{C::kFullEta, "full-load.bandwidth", 0.84, 0.8, "", 19, 4, ""},
    ConstantRow{C::kFullMfuFp8, "full-load.fp8.mfu", 0.53, 0.4, "", 11, 2, ""},
    ConstantRow{C::kFullMfuFp4, "full-load.fp4.mfu", 0.34, 0.4, "", 5, 2, ""},
    ConstantRow{C::kFullMfuMixture, "full-load.mixture.mfu", 0.18, 0.25, "", 2, 2,
                "two rows; TensorRT-LLM tables of Qwen3-235B and gpt-oss on H100 and H200 fit 0.18"},
    ConstantRow{C::kFullMfuMixtureFp4, "full-load.mixture.fp4.mfu", 0.10, 0.15, "", 1, 1,
                "one row; TensorRT-LLM tables of Qwen3-30B, Qwen3-235B and gpt-oss on B200 fit 0.10"},
    ConstantRow{C::kPrefillQ8, "prefill.llama.cpp.q8.gb10", 31, 40, "TFLOP/s", 3, 1, ""},
    ConstantRow{C::kPrefillQ4, "prefill.llama.cpp.q4.gb10", 45, 40, "TFLOP/s", 1, 1,
                "one row of a newer build; llama.cpp reports 17 to 48"},
    ConstantRow{C::kPrefillMxfp4, "prefill.llama.cpp.mxfp4.gb10", 25, 40, "TFLOP/s", 7, 2, ""},
    ConstantRow{C::kPrefillAttention, "prefill.attention.gb10", 38, 40, "TFLOP/s", 13, 6, ""},
    ConstantRow{C::kPrefillNvfp4Dense, "prefill.nvfp4.dense.gb10", 170, 100, "TFLOP/s", 0, 0,
                "prior: TensorRT-LLM reports 143 to 157 with attention counted as matrices; 170 to 195 without"},
    ConstantRow{C::kPrefillNvfp4Mixture, "prefill.nvfp4.mixture.gb10", 50, 100, "TFLOP/s", 2, 2, "two rows"},
    ConstantRow{C::kPrefillBf16Gb10, "prefill.bf16.gb10", 54, 50, "TFLOP/s", 0, 0,
                "prior: 52 to 56 reported for dense BF16 in vLLM, FP8 31"},
    ConstantRow{C::kPrefillOverFabric, "prefill.over-fabric", 0.7, 0.8, "", 1, 1, "one row"},
    ConstantRow{C::kPrefillMfuServer, "prefill.server.mfu", 0.5, 0.4, "", 13, 3, ""},
    ConstantRow{C::kPrefillMfuServerFp4, "prefill.server.fp4.mfu", 0.28, 0.25, "", 2, 1,
                "two rows; TensorRT-LLM reads four prompts of 1024 tokens of 70B at 20% of a B200's peak"},
    ConstantRow{C::kNcclStart2, "all-reduce.nccl.2.start", 75, 50, "us", 10, 3, ""},
    ConstantRow{C::kNcclStart4, "all-reduce.nccl.4.start", 95, 70, "us", 9, 4, ""},
    ConstantRow{C::kNcclRate2, "all-reduce.nccl.2.rate", 17.3, 20, "GB/s", 10, 3, ""},
    ConstantRow{C::kNcclRate4, "all-reduce.nccl.4.rate", 8.0, 10, "GB/s", 9, 4, ""},
    ConstantRow{C::kOneShotStart2, "all-reduce.one-shot.2.start", 12, 15, "us", 4, 1, ""},
    ConstantRow{C::kOneShotStart4, "all-reduce.one-shot.4.start", 18, 25, "us", 4, 2, ""},
    ConstantRow{C::kOneShotRate2, "all-reduce.one-shot.2.rate", 16.8, 20, "GB/s", 4, 1, ""},
    ConstantRow{C::kOneShotRate4, "all-reduce.one-shot.4.rate", 7.3, 10, "GB/s", 4, 2, ""},
    ConstantRow{C::kNcclTestsStart, "all-reduce.nccl-tests.start", 25, 30, "us", 5, 2, ""},
    ConstantRow{C::kNcclTestsStartPerNode, "all-reduce.nccl-tests.start-per-node", 5, 10, "us", 1, 1, "one row"},
    ConstantRow{C::kNcclTestsRate, "all-reduce.nccl-tests.rate", 2.0, 5, "GB/s", 5, 2, ""},
    ConstantRow{C::kBusRate, "bus.gb10", 24, 22, "GB/s", 2, 2, "one row; NVIDIA's script wants 21.9 or more"},
    ConstantRow{C::kBusRateSmallMtu, "bus.gb10.mtu-1500", 21, 20, "GB/s", 1, 1, "one row: a fault, not a class"},
    ConstantRow{C::kBusRateDegraded, "bus.gb10.degraded", 3, 3, "GB/s", 2, 2,
                "one row: a fault; 2.8 to 3.2 reported for the 13 Gb/s state"},
    ConstantRow{C::kBondedStart, "all-reduce.bonded.start", 500, 200, "us", 1, 1, "one row: a fault, not a class"},
    ConstantRow{C::kTrainFp8Hopper, "train.fp8.hopper.mfu", 0.40, 0.4, "", 12, 6, ""},
    ConstantRow{C::kTrainFp8Blackwell, "train.fp8.blackwell.mfu", 0.40, 0.4, "", 1, 1,
                "one row; Llama 3 8B on 8x B200: 35%, 70B on 64x GB200: 39 to 43%"},
    ConstantRow{C::kTrainFp8BlackwellUltra, "train.fp8.blackwell-ultra.mfu", 0.48, 0.4, "", 1, 1,
                "one row (0.50 at 405B); Llama 3 8B on 8x GB300: 39%, 70B on 64x: 41 to 47%"},
    ConstantRow{C::kTrainFp4, "train.fp4.mfu", 0.27, 0.25, "", 1, 1,
                "one row; 70B on 64 GB300: 22%, 405B on 256 GB200: 33% of 9 PFLOP/s"},
    ConstantRow{C::kTrainBf16, "train.bf16.mfu", 0.42, 0.4, "", 0, 0,
                "prior: Megatron-LM reports 41 to 48%, torchtitan 33 to 39% on H100"},
    ConstantRow{C::kTrainAttention, "train.attention.mfu", 0.40, 0.4, "", 18, 6, ""},
    ConstantRow{C::kTrainTitan, "train.torchtitan.fp8.mfu", 0.25, 0.3, "", 3, 2, ""},
    ConstantRow{C::kTrainTitanPipeline, "train.torchtitan.pipeline", 0.85, 0.9, "", 2, 1, "two rows, one model"},
    ConstantRow{C::kTrainLoraGb10, "train.lora.gb10", 38, 40, "TFLOP/s", 4, 1, ""},
    ConstantRow{C::kTrainGb10, "train.bf16.gb10", 50, 50, "TFLOP/s", 1, 1, "assumed: no trustworthy row exists"},
    ConstantRow{C::kTrainMixtureHopper, "train.mixture.hopper.mfu", 0.20, 0.19, "", 0, 0,
                "prior, of the BF16 peak in any format: Megatron-Bridge reports 12 to 25% on H100"},
    ConstantRow{C::kTrainMixtureBlackwell, "train.mixture.blackwell.mfu", 0.36, 0.33, "", 0, 0,
                "prior, of the BF16 peak in any format: Megatron-Bridge reports 25 to 66% by release, best on GB300"},
    ConstantRow{C::kImageEager, "image.eager.mfu", 0.32, 0.4, "", 3, 1, ""},
    ConstantRow{C::kImageCompiled, "image.compiled.mfu", 0.49, 0.4, "", 4, 1, ""},
    ConstantRow{C::kImageEagerBlock, "image.eager.block", 2.7, 2, "ms", 3, 1, ""},
    ConstantRow{C::kImageBf16Gb10, "image.bf16.gb10", 70, 60, "TFLOP/s", 2, 2, "two rows"},
    ConstantRow{C::kImageFp4Gb10, "image.fp4.gb10", 104, 120, "TFLOP/s", 1, 1,
                "one row; FLUX.1 schnell FP4 reaches 106 to 118"},
    ConstantRow{C::kImageSplit, "image.split.nvlink", 0.85, 0.85, "", 4, 1, ""},
    ConstantRow{C::kImageRing, "image.split.ring", 0.9, 0.9, "", 2, 1, "two rows"},
    ConstantRow{C::kEtaCpu32, "decode.cpu.32bit.bandwidth", 0.7, 0.7, "", 0, 0, kCalibrated},
    ConstantRow{C::kEtaCpu16, "decode.cpu.16bit.bandwidth", 0.7, 0.7, "", 0, 0, kCalibrated},
    ConstantRow{C::kEtaCpu8, "decode.cpu.8bit.bandwidth", 0.7, 0.7, "", 0, 0, kCalibrated},
    ConstantRow{C::kEtaCpu4, "decode.cpu.4bit.bandwidth", 0.7, 0.7, "", 0, 0, kCalibrated},
    ConstantRow{C::kEtaCpu4Group32, "decode.cpu.4bit-g32.bandwidth", 0.7, 0.7, "", 0, 0, kCalibrated},
    ConstantRow{C::kEtaCpuFp4, "decode.cpu.fp4.bandwidth", 0.7, 0.7, "", 0, 0, kCalibrated},
    ConstantRow{C::kEtaCpuCache, "decode.cache.cpu.bandwidth", 0.7, 0.7, "", 0, 0, kCalibrated},
    ConstantRow{C::kLayerCpu, "decode.layer.cpu", 40, 40, "us", 0, 0, kCalibrated},
    ConstantRow{C::kStepCpu, "decode.step.cpu", 50, 50, "us", 0, 0, kCalibrated},
    ConstantRow{C::kStepCpuRanks, "decode.step.cpu.ranks", 200, 200, "us", 0, 0, kCalibrated},
    ConstantRow{C::kPrefillCpu32, "prefill.cpu.32bit.mfu", 0.5, 0.5, "", 0, 0, kCalibrated},
    ConstantRow{C::kPrefillCpu16, "prefill.cpu.16bit.mfu", 0.5, 0.5, "", 0, 0, kCalibrated},
    ConstantRow{C::kPrefillCpu8, "prefill.cpu.8bit.mfu", 0.5, 0.5, "", 0, 0, kCalibrated},
    ConstantRow{C::kPrefillCpu4, "prefill.cpu.4bit.mfu", 0.5, 0.5, "", 0, 0, kCalibrated},
    ConstantRow{C::kPrefillCpuFp4, "prefill.cpu.fp4.mfu", 0.5, 0.5, "", 0, 0, kCalibrated},
};
static_assert(kTable.size() == kConstantCount);

}  // namespace

std::span<const ConstantRow> constant_table() { return kTable; }

const ConstantRow& row_of(Constant id) {
  const ConstantRow& row = kTable[static_cast<std::size_t>(id)];
  YOKE_CHECK(row.id == id, "the table of constants is out of order at {}", row.name);
  return row;
}

Constants shipped_constants() {
  Constants constants;
  for (const ConstantRow& row : kTable) constants.set(row.id, row.value);
  return constants;
}

Constants prior_constants() {
  Constants constants;
  for (const ConstantRow& row : kTable) constants.set(row.id, row.prior);
  return constants;
}

}  // namespace yoke::plan
