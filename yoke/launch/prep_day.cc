#include "yoke/launch/prep_day.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/base/progress.h"
#include "yoke/base/text.h"
#include "yoke/fleet/fleet.h"
#include "yoke/launch/hub.h"
#include "yoke/launch/prep_drive.h"
#include "yoke/launch/prep_image.h"
#include "yoke/plan/words.h"
#include "yoke/predict/plan_input.h"
#include "yoke/report/html.h"
#include "yoke/sync/sync.h"

namespace yoke::launch {
namespace {

namespace fs = std::filesystem;

struct ChecklistPart {
  std::string title;
  std::vector<std::string> items;
};

std::string bytes_text(double bytes) { return to_string(Bytes{static_cast<std::int64_t>(bytes)}); }

ChecklistPart what_to_bring(const plan::Machines& machines, const plan::Cabling& cabling, double drive_bytes) {
  ChecklistPart part{.title = "To bring", .items = {}};
  const spec::HardwareFacts& facts = *machines.facts;
  part.items.push_back(fmt::format("{} x {}, each with its own power supply", machines.nodes, machines.hardware));
  if (facts.load_power.value > 0) {
    const double watts = machines.nodes * facts.load_power.value;
    part.items.push_back(fmt::format("power for {:.0f} W in all under load ({}), and {} outlets", watts,
                                     facts.load_power.source, machines.nodes + 1));
  }
  const int cables = cabling.cables_in_all;
  if (machines.topology == spec::Topology::kMesh) {
    part.items.push_back(
        fmt::format("{} breakout optics, each for one port and two links of 100 Gb/s, {} fibres "
                    "between them, and one of each to spare",
                    2 * machines.nodes, cables));
  } else if (cables > 0) {
    std::string parts;
    for (const spec::ApprovedCable& cable : cabling.approved) {
      parts += fmt::format("{}{}, {}", parts.empty() ? "" : "; or ", cable.part, cable.length);
    }
    part.items.push_back(fmt::format("{} cable{} and one to spare{}", cables, cables == 1 ? "" : "s",
                                     parts.empty() ? "" : ": " + parts));
  }
  if (machines.topology == spec::Topology::kSwitch) part.items.emplace_back("the switch, with its power cable");
  part.items.emplace_back("a network cable for each machine to the office network, or its Wi-Fi password");
  if (machines.gpu.kind == spec::MemoryKind::kUnified) {
    part.items.emplace_back(
        "a fan, or room of a hand's width around each unit: units that stand in their own warm air slow down");
  }
  part.items.emplace_back(
      "a laptop with an ssh client, and a screen and keyboard for the case that ssh does not answer");
  if (drive_bytes > 0) {
    part.items.push_back(
        fmt::format("a drive with {} free, in case the line is slow (yoke prep --from)", bytes_text(drive_bytes)));
  }
  return part;
}

// Bytes per second of this line, by the first bytes of a large file; nothing where it cannot be measured.
std::optional<double> measure_line(const Hub& hub, const HubModel& model) {
  const auto largest = std::max_element(model.files.begin(), model.files.end(),
                                        [](const auto& a, const auto& b) { return a.size < b.size; });
  if (largest == model.files.end() || !model.gate.empty()) return std::nullopt;
  const std::string url = fmt::format("{}://{}/{}/resolve/{}/{}", hub.endpoint.scheme, hub.endpoint.host, model.id,
                                      model.commit, http::quote_path(largest->path));
  const auto got = try_to([&] {
    return run({.argv = {"curl", "-qsSfL", "--max-time", "10", "--range", "0-67108863", "-o", "/dev/null", "-w",
                         "%{speed_download}", url},
                .timeout = Seconds{15}});
  });
  if (!got) return std::nullopt;
  const double rate = std::strtod(got->out.c_str(), nullptr);  // also of a download that the ten seconds cut
  return rate > 0 ? std::optional(rate) : std::nullopt;
}

ChecklistPart what_to_download(const DayOptions& options, const plan::Machines& machines, double& bytes) {
  ChecklistPart part{.title = "To download beforehand", .items = {}};
  if (options.hub_model) {
    const Hub hub = hub_of_environment();
    const HubModel model = describe_model(hub, *options.hub_model, "main");
    bytes += static_cast<double>(model.bytes());
    std::string line =
        fmt::format("{}: {} in {} files", model.id, bytes_text(static_cast<double>(model.bytes())), model.files.size());
    if (const auto rate = measure_line(hub, model)) {
      line += fmt::format(", {:.1f} hours at this line's {}", static_cast<double>(model.bytes()) / *rate / 3600,
                          to_string(to_bits_per_second(BytesPerSecond{*rate})));
    }
    if (!model.gate.empty()) line += "; gated: accept its terms, and bring the token";
    part.items.push_back(line);
    part.items.push_back(fmt::format("  yoke prep model {} /models/{}, then: yoke model sync /models/{}", model.id,
                                     fs::path(model.id).filename().native(), fs::path(model.id).filename().native()));
  } else if (!options.model.empty()) {
    const predict::PlannedModel model = predict::read_planned_model(options.model);
    if (model.language) {
      plan::Request request{.model = *model.language, .image = {}, .format = *plan::find_format("bf16")};
      if (model.format) request.format = *model.format;
      if (!options.format.empty()) {
        const plan::WeightFormat* format = plan::find_format(options.format);
        if (!format)
          throw Error(ErrorCode::kUsage, fmt::format("--format cannot be '{}'", printable(options.format, 40)));
        request.format = *format;
      }
      request.machines = machines;
      const plan::Plan made = plan::make_plan(request, plan::shipped_constants());
      const plan::PlannedLayout& layout = made.layouts.front();
      const double weights = layout.memory.weights * layout.layout.tensor * layout.layout.pipeline;
      bytes += weights;
      part.items.push_back(fmt::format("{} in {}: about {}, {:.1f} hours at 100 Mb/s; {}", made.model, made.format,
                                       bytes_text(weights), weights / 12.5e6 / 3600,
                                       made.fits ? "fits as " + layout.name : "does not fit these machines"));
    }
  }
  constexpr double kImageBytes = 25e9;  // engines' images with CUDA are 15 to 30 GB
  bytes += kImageBytes;
  part.items.push_back(
      fmt::format("the engine's container image, about {}: yoke prep image vllm", bytes_text(kImageBytes)));
  return part;
}

std::vector<ChecklistPart> what_to_do() {
  return {{.title = "The evening before",
           .items = {"all machines on the same release of their system, updated and restarted",
                     "your ssh key on every machine: ssh-copy-id USER@MACHINE",
                     "yoke on one machine; it carries itself to the others",
                     "yoke prep: every line that says 'missing' is done",
                     "yoke prep image vllm, yoke prep nccl: built and pulled, not on the day"}},
          {.title = "On the day",
           .items = {"cables in, until they click; both machines on", "yoke link discover -o cluster.yaml",
                     "yoke link setup", "yoke check", "yoke bench all-reduce", "yoke launch vllm MODEL"}}};
}

void print_parts(terminal::Session& session, const std::vector<ChecklistPart>& parts) {
  for (const ChecklistPart& part : parts) {
    session.print(fmt::format("{}{}\n", &part == &parts.front() ? "" : "\n", part.title));
    for (const std::string& item : part.items) {
      session.print(item.starts_with("  ") ? fmt::format("    {}\n", item) : fmt::format("  [ ] {}\n", item));
    }
  }
}

report::HtmlPage page_of(const std::vector<ChecklistPart>& parts, const plan::Machines& machines) {
  report::HtmlPage page{.title = fmt::format("Checklist for {}", machines.text), .blocks = {}};
  for (const ChecklistPart& part : parts) {
    page.blocks.emplace_back(report::HtmlHeading{part.title});
    report::Table table{.title = {}, .columns = {{.header = ""}, {.header = ""}}, .rows = {}, .footnotes = {}};
    for (const std::string& item : part.items) {
      table.rows.push_back({item.starts_with("  ") ? "" : "\u2610", std::string(trim(item))});
    }
    page.blocks.emplace_back(std::move(table));
  }
  return page;
}

}  // namespace

int print_checklist(terminal::Session& session, const DayOptions& options,
                    const std::optional<spec::Cluster>& cluster) {
  const plan::Machines machines = predict::read_machines({.on = options.on, .cluster = cluster});
  const plan::Cabling cabling = plan::plan_cabling(machines);
  double bytes = 0;
  ChecklistPart downloads = what_to_download(options, machines, bytes);
  std::vector<ChecklistPart> parts = {what_to_bring(machines, cabling, bytes), std::move(downloads)};
  for (ChecklistPart& part : what_to_do()) parts.push_back(std::move(part));
  if (options.page) write_file_atomically(*options.page, report::render_html(page_of(parts, machines)));
  if (session.json) {
    Document list = Document::list();
    for (const ChecklistPart& part : parts) {
      Document items = Document::list();
      for (const std::string& item : part.items) items.items.push_back(Document::string(std::string(trim(item))));
      list.items.push_back(Document::map({{"title", Document::string(part.title)}, {"items", std::move(items)}}));
    }
    session.print_json(Document::map({{"parts", std::move(list)}}));
    return kExitOk;
  }
  print_parts(session, parts);
  if (options.page) session.print(fmt::format("\nA page to print: {}\n", *options.page));
  return kExitOk;
}

int prep_from_drive(terminal::Session& session, const DayOptions& options,
                    const std::optional<spec::Cluster>& cluster) {
  const Drive drive = read_drive(*options.from);
  const auto models = drive.below("models"), images = drive.below("images"), packages = drive.below("packages");
  const fs::path to = fs::absolute(options.to);
  session.print(fmt::format("{}: {} files of models, {} images, {} packages; {} in all\n", options.from->c_str(),
                            models.size(), images.size(), packages.size(),
                            bytes_text(static_cast<double>(drive.bytes()))));
  const fs::path image_folder = to / ".images";
  {
    Progress progress("copying from the drive", static_cast<std::int64_t>(drive.bytes()));
    std::uint64_t before = 0;
    const auto on_progress = [&](std::uint64_t done) { progress.update(static_cast<std::int64_t>(before + done)); };
    copy_from_drive(drive, models, to, on_progress);
    for (const DriveFile& file : models) before += file.size;
    copy_from_drive(drive, images, image_folder, on_progress);
  }
  if (cluster && cluster->nodes.size() > 1) {
    fleet::Fleet fleet(cluster->nodes, fleet::NodeOptions{});
    std::vector<std::string> folders;
    for (const DriveFile& file : models) {
      const std::string rest = file.path.substr(file.path.find('/') + 1);
      const std::string folder = (to / rest.substr(0, rest.find('/'))).native();
      if (rest.find('/') != std::string::npos && (folders.empty() || folders.back() != folder))
        folders.push_back(folder);
    }
    if (!images.empty()) folders.push_back(image_folder.native());
    for (const std::string& folder : folders) {
      sync::sync_folder(*cluster, fleet, {.folder = folder, .to = folder, .source = 0, .rail = {}, .dry_run = false});
      session.print(fmt::format("{} is on all nodes\n", folder));
    }
    for (const DriveFile& file : images) {
      const std::string name = fs::path(file.path).filename().native();
      for (const NodeImage& image : load_images(fleet, (image_folder / name).native())) {
        session.print(fmt::format(
            "{}: {} {}\n", image.node, name,
            image.problem.empty() ? "loaded, " + image.id.substr(0, 19) : "is not loaded: " + image.problem));
      }
    }
  } else {
    for (const DriveFile& file : images) {
      session.print(
          fmt::format("Load it: docker load --input {}\n", (image_folder / fs::path(file.path).filename()).native()));
    }
  }
  if (!packages.empty()) {
    session.print(fmt::format("Packages are not installed by yoke: sudo apt-get install {}/packages/*.deb\n",
                              options.from->c_str()));
  }
  session.print("Every file has the hash that SHA256SUMS lists.\n");
  return kExitOk;
}

}  // namespace yoke::launch
