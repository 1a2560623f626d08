#include "yoke/spec/hardware_facts.h"

#include <algorithm>
#include <array>
#include <limits>

namespace yoke::spec {
namespace {

using namespace literals;
using Names = std::string_view;

// Sources that several figures share. "Stored copy" means that the page was read in a public archive, not on the
// maker's site. "Recalled" means from memory: check it before relying on it.
constexpr Names kHgx = "HGX tables (verda.com, fibermall.com copies of NVIDIA's), dense, stored copies";
constexpr Names kHopper = "NVIDIA H100/H200 data sheet figures via hmc-tech.com (3958 sparse FP8 / 2), stored copy";
constexpr Names kRecalled = "recalled, not checked";
constexpr Names kNoSuch = "the chip has no such unit";
constexpr Names kCatalogue =
    "data sheets in GB, here in GiB: H100 80, H200 141, B200 180 of 192, RTX PRO 6000 96 less what ECC takes";

constexpr std::array kSparkNames = {Names("gb10"),     Names("dgx-spark"), Names("dell-pro-max"),
                                    Names("gx10"),     Names("asus-gx10"), Names("hp-zgx-nano"),
                                    Names("zgx-nano"), Names("pgx"),       Names("msi-edgexpert")};
constexpr std::array kB300Names = {Names("xe9780"), Names("hgx-b300"), Names("dgx-b300")};
constexpr std::array kB200Names = {Names("hgx-b200"), Names("dgx-b200"), Names("xe9680-b200")};
constexpr std::array kH200Names = {Names("hgx-h200"), Names("dgx-h200"), Names("xe9680-h200")};
constexpr std::array kH100Names = {Names("hgx-h100"), Names("dgx-h100"), Names("xe9680")};
constexpr std::array kRtxNames = {Names("rtx6000"), Names("rtx-6000-pro"), Names("pro-6000")};
constexpr std::array kCpuNames = {Names("plain-cpu"), Names("laptop")};

constexpr Names kCableSource = "NVIDIA DGX Spark user guide, ConnectX-7 networking: approved cables (stored copy)";
constexpr std::array kSparkCables = {
    ApprovedCable{"Amphenol NJAAKK-N911 (QSFP to QSFP112, 32 AWG)", "0.4 m", kCableSource},
    ApprovedCable{"Amphenol NJAAKK0006", "0.5 m", kCableSource},
    ApprovedCable{"Luxshare LMTQF022-SD-R (QSFP112 400G DAC, 30 AWG)", "0.4 m", kCableSource}};

constexpr std::array kSparkRemarks = {
    Names("One ConnectX-7 with two 200G ports behind two PCIe Gen5 x4 links: about 200 Gb/s however it is cabled. "
          "A second cable to the same peer adds nothing."),
    Names("Each port shows two interfaces (two rails of about 100 Gb/s), and each reports 200 Gb/s."),
    Names("There is no NVLink between units and no GPUDirect RDMA. Two units are two memories, joined by ranks."),
    Names("Units of Dell, ASUS, HP, Lenovo, MSI and others share chip, memory and NIC (fixtures asus-gx10, "
          "dell-pro-max-gb10, hp-zgx-nano); SSD, power adapter, firmware and interface names differ."),
    Names("Dense BF16 is disputed: 62, 100 and 125 TFLOP/s are claimed. 'yoke bench matmul' measures it."),
    Names("Visible memory differs by unit and firmware: 119.2 to 121.7 GiB of the 128 GB.")};
constexpr std::array kB300Remarks = {
    Names("NVLink 5 is switched: every GPU reaches every other at the full rate. It is not a mesh of pairs."),
    Names("Eight ConnectX-8 of 800 Gb/s stand on the HGX board, one beside each GPU."),
    Names("No Dell page could be read for the XE9780: its power is computed from 8 x 1.1 kW GPUs, CPUs, NICs, fans.")};
constexpr std::array kServerRemarks = {Names("Eight GPUs behind NVSwitch, one NIC beside each GPU.")};
constexpr std::array kRtxRemarks = {Names("No NVLink: GPUs of one machine meet over PCIe."),
                                    Names("The catalogue's machine has one; say 4xrtx-pro-6000 for four machines.")};
constexpr std::array kCpuRemarks = {
    Names("Stands for a desktop of 2 memory channels. Probed facts or a cluster file's compute replace it.")};

constexpr Hardware kPlainCpu{.name = "cpu",
                             .title = "a plain machine without GPU",
                             .gpu = "none",
                             .gpus = 0,
                             .gpu_memory = 30_GiB,
                             .unified = true,
                             .gpu_memory_bandwidth = 60_GBps,
                             .rail_rate = 1_Gbps,
                             .management_rate = 1_Gbps};

HardwareFacts eight_gpus(std::string_view name, std::span<const std::string_view> aliases) {
  const Hardware* const hardware = find_hardware(name);
  return {.hardware = hardware,
          .aliases = aliases,
          .memory = {static_cast<double>(hardware->gpu_memory.value), kCatalogue},
          .bandwidth = {hardware->gpu_memory_bandwidth.value, kHgx},
          .nic_limit = {8 * hardware->rail_rate.value / 8, "eight NICs, one for each GPU"},
          .rails = 8,
          .ports = 8,
          .remarks = kServerRemarks};
}

HardwareFacts spark_facts() {
  const Hardware* const spark = find_hardware("spark");
  return {.hardware = spark,
          .aliases = kSparkNames,
          .memory = {121.69 * 1073741824,
                     "128 GB LPDDR5x of which vLLM logs see 121.69 GiB; other units show 119.2 to 119.7"},
          .bandwidth = {273e9, "8533 MT/s x 32 B; ai-infrastructure.net, stored copy. 301 GB/s is the chip's limit"},
          .bf16 = {125e12, "derived: an eighth of the sparse FP4 figure; contradicted (62 and 100), see remarks"},
          .fp8 = {250e12, "derived: a quarter of the sparse FP4 figure; NVIDIA publishes none"},
          .fp4 = {500e12, "\"1 PFLOP\" counts sparsity (huggingface.js#1861): 496 dense (hmc-tech.com)"},
          .nvlink = {0, "none between units"},
          .gpu_power = {140, "SoC; ai-infrastructure.net, stored copy"},
          .idle_power = {25, "idle with display, 22 to 37 W by update (tectack.org 2026-02)"},
          .load_power = {95, "serving (huggingface.co/blog/exolabs); 60 to 90 W (unanswered.io); adapter 240 W"},
          .nic_limit = {25e9, "two PCIe Gen5 x4 links; 25.7 GB/s measured with two cables (NVIDIA forum 352051)"},
          .rails = 2,
          .ports = 2,
          .cables = kSparkCables,
          .remarks = kSparkRemarks};
}

HardwareFacts b300_facts() {
  HardwareFacts facts = eight_gpus("b300", kB300Names);
  facts.memory.source = "288 GB physical, 270 to 279 GB exposed (verda.com, glennklockwood.com), stored copies";
  facts.bf16 = {2.25e15, kHgx};
  facts.fp8 = {4.5e15, kHgx};
  facts.fp4 = {13.1e15, "glennklockwood.com (13.1), verda.com (14); NVIDIA's chip-level figure is 15"};
  facts.nvlink = {1.8e12, "NVLink 5, 14.4 TB/s for eight"};
  facts.gpu_power = {1100, "1100 W air-cooled HGX, up to 1400 W (HGX tables)"};
  facts.idle_power = {2500, kRecalled};
  facts.load_power = {14000, "computed: 8 x 1.1 kW, CPUs, NICs, fans make 12 to 14.5 kW"};
  facts.remarks = kB300Remarks;
  return facts;
}

HardwareFacts b200_facts() {
  HardwareFacts facts = eight_gpus("b200", kB200Names);
  facts.bf16 = {2.25e15, kHgx};
  facts.fp8 = {4.5e15, kHgx};
  facts.fp4 = {9e15, kHgx};
  facts.nvlink = {1.8e12, kHgx};
  facts.gpu_power = {1000, kHgx};
  facts.idle_power = {2200, kRecalled};
  facts.load_power = {12500, kRecalled};
  return facts;
}

HardwareFacts hopper_facts(std::string_view name, std::span<const std::string_view> aliases) {
  HardwareFacts facts = eight_gpus(name, aliases);
  facts.bandwidth.source = kHopper;
  facts.bf16 = {0.99e15, kHopper};
  facts.fp8 = {1.98e15, kHopper};
  facts.fp4 = {0, kNoSuch};
  facts.nvlink = {0.9e12, kHopper};
  facts.gpu_power = {700, kHopper};
  facts.idle_power = {1700, kRecalled};
  facts.load_power = {10200, kRecalled};
  return facts;
}

HardwareFacts rtx_facts() {
  const Hardware* const rtx = find_hardware("rtx-pro-6000");
  return {.hardware = rtx,
          .aliases = kRtxNames,
          .memory = {static_cast<double>(rtx->gpu_memory.value), kCatalogue},
          .bandwidth = {1.79e12, "512-bit GDDR7; gpu.name, stored copy"},
          .bf16 = {0.5e15, "unverified"},
          .fp8 = {1e15, "unverified"},
          .fp4 = {2e15, "4 sparse \"TOPS\" / 2 (fixstars.com), stored copy"},
          .nvlink = {0, "none"},
          .gpu_power = {600, "600 W; the Max-Q card 300 W (gpu.name)"},
          .idle_power = {100, kRecalled},
          .load_power = {900, kRecalled},
          .nic_limit = {rtx->rail_rate.value / 8, "one 100G NIC assumed"},
          .rails = 1,
          .ports = 1,
          .remarks = kRtxRemarks};
}

HardwareFacts cpu_facts() {
  return {.hardware = &kPlainCpu,
          .aliases = kCpuNames,
          .memory = {static_cast<double>(kPlainCpu.gpu_memory.value), "32 GB with what firmware takes"},
          .bandwidth = {60e9, "two channels of DDR5-5600 at two thirds of 89.6 GB/s"},
          .bf16 = {1e12, "8 cores x 3.5 GHz x 32 FLOP, f32 with AVX2; BF16 units make it more"},
          .fp8 = {0, kNoSuch},
          .fp4 = {0, kNoSuch},
          .nvlink = {0, "none"},
          .gpu_power = {0, "none"},
          .idle_power = {30, kRecalled},
          .load_power = {120, kRecalled},
          .nic_limit = {1e9 / 8, "1GbE"},
          .rails = 1,
          .ports = 1,
          .remarks = kCpuRemarks};
}

}  // namespace

std::span<const HardwareFacts> hardware_facts() {
  static const std::array kFacts = {
      spark_facts(), b300_facts(), b200_facts(), hopper_facts("h200", kH200Names), hopper_facts("h100", kH100Names),
      rtx_facts(),   cpu_facts()};
  return kFacts;
}

namespace {

template <class Matches>
const HardwareFacts* first_of_all(Matches matches) {
  for (const auto& list : {hardware_facts(), other_hardware_facts()}) {
    const auto found = std::find_if(list.begin(), list.end(), matches);
    if (found != list.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

const HardwareFacts* find_hardware_facts(std::string_view name) {
  return first_of_all([&](const HardwareFacts& facts) {
    return facts.hardware->name == name ||
           std::find(facts.aliases.begin(), facts.aliases.end(), name) != facts.aliases.end();
  });
}

const HardwareFacts* find_hardware_facts_by_gpu(std::string_view gpu_name) {
  return first_of_all([&](const HardwareFacts& facts) {
    return facts.hardware->gpus > 0 && gpu_name.starts_with(facts.hardware->gpu);
  });
}

double rails_of_nic(const Hardware& hardware) {
  const HardwareFacts* facts = find_hardware_facts(hardware.name);
  if (!facts || facts->nic_limit.value <= 0 || hardware.rail_rate.value <= 0) {
    return std::numeric_limits<double>::infinity();
  }
  return facts->nic_limit.value * 8 / hardware.rail_rate.value;
}

std::vector<std::string> hardware_fact_names() {
  std::vector<std::string> names;
  for (const auto& list : {hardware_facts(), other_hardware_facts()}) {
    for (const HardwareFacts& facts : list) {
      names.emplace_back(facts.hardware->name);
      for (const std::string_view alias : facts.aliases) names.emplace_back(alias);
    }
  }
  return names;
}

}  // namespace yoke::spec
