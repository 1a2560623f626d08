// The page of yoke watch. Texts of the nodes are put in as text, never as markup.
const byId = (id) => document.getElementById(id);
const svgElement = (name, attributes = {}, text = "") => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
};
const element = (name, className, text = "") => {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = text;
  return made;
};

const kRows = 3600;
let history = {};  // node -> {times, series}
let cables = [];

const rate = (bits) => bits === undefined || bits === null ? "-"
  : bits >= 1e9 ? `${(bits / 1e9).toPrecision(3)} Gb/s` : bits >= 1e6 ? `${(bits / 1e6).toPrecision(3)} Mb/s`
  : bits >= 1e3 ? `${(bits / 1e3).toPrecision(3)} kb/s` : "0";
const bytes = (size) => size >= 2 ** 30 ? `${(size / 2 ** 30).toPrecision(4)} GiB` : `${(size / 2 ** 20).toPrecision(3)} MiB`;
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString();

function valueText(name, value) {
  if (value === undefined || value === null || Number.isNaN(value)) return "-";
  if (name === "memory") return bytes(value);
  if (name.startsWith("rail/")) return rate(value);
  if (name.includes("/nvlink/")) return `${(value / 1e9).toPrecision(3)} GB/s`;
  if (name.endsWith("clock")) return `${value.toFixed(0)} MHz`;
  if (name.endsWith("power")) return `${value.toFixed(0)} W`;
  if (name.endsWith("temperature")) return `${value.toFixed(0)} \u00b0C`;
  if (name === "tokens") return `${value.toFixed(1)}/s`;
  return `${value.toFixed(0)} %`;
}

function plot(times, values) {
  const picture = svgElement("svg", {viewBox: "0 0 300 26", preserveAspectRatio: "none"});
  const first = times[0], span = Math.max(60, times[times.length - 1] - first);
  const top = Math.max(1e-9, ...values.filter((v) => v !== null && Number.isFinite(v)));
  let path = "", pen = false;
  values.forEach((value, i) => {
    if (value === null || !Number.isFinite(value)) { pen = false; return; }
    path += `${pen ? "L" : "M"}${((times[i] - first) / span * 300).toFixed(1)} ${(25 - value / top * 24).toFixed(1)}`;
    pen = true;
  });
  picture.append(svgElement("path", {d: path}));
  return picture;
}

function valuesOf(node) {
  const row = {};
  if (node.cpu_busy !== undefined) row.cpu = node.cpu_busy * 100;
  if (node.memory_available !== undefined) row.memory = node.memory_available;
  for (const rail of node.rails ?? []) {
    if (!rail.listed && (!rail.rail || !rail.carrier)) continue;
    if (rail.received_bits_per_second !== undefined) row[`rail/${rail.interface}/in`] = rail.received_bits_per_second;
    if (rail.sent_bits_per_second !== undefined) row[`rail/${rail.interface}/out`] = rail.sent_bits_per_second;
  }
  for (const gpu of node.gpus ?? []) {
    const put = (key, value) => { if (value !== undefined) row[`gpu/${gpu.index}/${key}`] = value; };
    put("nvlink/in", gpu.nvlink_received_bytes_per_second);
    put("nvlink/out", gpu.nvlink_sent_bytes_per_second);
    put("busy", gpu.utilization_percent);
    put("clock", gpu.sm_clock_mhz);
    put("power", gpu.power_w);
    put("temperature", gpu.temperature_c);
  }
  if (node.tokens_per_second !== undefined) row.tokens = node.tokens_per_second;
  return row;
}

function remember(node) {
  const kept = history[node.node] ??= {times: [], series: {}};
  const last = kept.times[kept.times.length - 1] ?? -1;
  if (node.silent || node.time - last < 0.95) return;
  kept.times.push(node.time);
  const row = valuesOf(node);
  for (const name of new Set([...Object.keys(row), ...Object.keys(kept.series)])) {
    const series = kept.series[name] ??= Array(kept.times.length - 1).fill(null);
    series.push(row[name] ?? null);
  }
  if (kept.times.length <= kRows) return;
  kept.times.shift();
  for (const series of Object.values(kept.series)) series.shift();
}

function labelOf(node, name) {
  for (const rail of node.rails ?? []) {
    if (name.startsWith(`rail/${rail.interface}/`)) {
      return `rail ${rail.rail ?? rail.interface} ${name.slice(name.lastIndexOf("/") + 1)}`;
    }
  }
  return name.replaceAll("/", " ");
}

function showNode(node) {
  const box = element("article", node.silent ? "silent" : "");
  box.append(element("h2", "", node.silent ? `${node.node}: silent since ${clock(node.time)}` : node.node));
  const kept = history[node.node];
  for (const [name, values] of Object.entries(kept?.series ?? {})) {
    const line = element("div", "plot");
    line.append(element("span", "", labelOf(node, name)),
                element("span", "", node.silent ? "-" : valueText(name, values[values.length - 1])),
                plot(kept.times, values));
    box.append(line);
  }
  for (const gpu of node.gpus ?? []) {
    if (gpu.lost) box.append(element("p", "", `GPU ${gpu.index}: ${gpu.lost}`));
    else if (gpu.ecc_corrected || gpu.ecc_uncorrected) {
      box.append(element("p", "", `GPU ${gpu.index}: ${gpu.ecc_corrected ?? "-"} memory errors corrected, ` +
        `${gpu.ecc_uncorrected ?? "-"} not correctable`));
    }
  }
  for (const engine of node.engines ?? []) {
    box.append(element("p", "", `${engine.kind} ${engine.model ?? ""}: ${engine.running ?? "-"} running, ` +
      `${engine.waiting ?? "-"} waiting, ${(engine.tokens_per_second ?? 0).toFixed(1)} tokens/s`));
  }
  for (const job of node.jobs ?? []) box.append(element("p", "", `job ${job.name}${job.command ? `: ${job.command}` : ""}`));
  return box;
}

// The evidence of a finding: from a minute before it began until it ended.
function plotOf(finding) {
  const kept = history[finding.node], values = kept?.series[finding.series];
  if (!values) return null;
  const from = kept.times.findIndex((time) => time > finding.began - 60);
  const end = finding.ended ? kept.times.findIndex((time) => time > finding.ended + 10) : -1;
  const to = end < 0 ? kept.times.length : end;
  if (from < 0 || to - from < 2) return null;
  const line = element("div", "plot");
  line.append(element("span", "", finding.series.replaceAll("/", " ")), element("span", "", valueText(finding.series, values[to - 1])),
              plot(kept.times.slice(from, to), values.slice(from, to)));
  return line;
}

function showFinding(finding) {
  const box = element("div", `finding ${finding.severity}${finding.ended ? " ended" : ""}`);
  const span = finding.ended ? `${clock(finding.began)} to ${clock(finding.ended)}` : `since ${clock(finding.began)}`;
  box.append(element("p", "", `${finding.severity}: ${finding.what} (${finding.rule}), ${span}`));
  box.append(element("p", "", `Evidence: ${finding.evidence}`));
  const picture = plotOf(finding);
  if (picture) box.append(picture);
  if (!finding.ended) box.append(element("p", "", `Cost: ${finding.consequence}. Fix: ${finding.fix}.`));
  return box;
}

const kPerRow = 8;
const kRow = 100;

// Nodes in rows; where a switch joins them, it lies below.
function placeNodes(nodes, isSwitched) {
  const columns = Math.min(nodes.length, isSwitched ? kPerRow : nodes.length), rows = Math.ceil(nodes.length / columns);
  const height = isSwitched ? rows * kRow + 70 : 190;
  const place = {switch: {x: 500, y: height - 30}};
  nodes.forEach((node, i) => {
    place[node.node] = {x: 1000 * (i % columns + 0.5) / columns, y: 40 + Math.floor(i / columns) * kRow};
  });
  return {place, height, half: Math.min(60, 460 / columns)};
}

// Nodes, their cables, and what each cable carries in both directions.
function draw(board) {
  const drawing = byId("drawing");
  const isSwitched = cables.some((cable) => cable.b === "switch");
  const {place, height, half} = placeNodes(board.nodes, isSwitched);
  drawing.setAttribute("viewBox", `0 0 1000 ${height}`);
  drawing.style.height = `${height}px`;
  drawing.replaceChildren();
  const node = Object.fromEntries(board.nodes.map((each) => [each.node, each]));
  const lines = [], texts = [], drawn = {};
  const count = (key) => drawn[key] = (drawn[key] ?? 0) + 1;
  for (const cable of cables) {
    const a = place[cable.a], b = place[cable.b];
    if (!a || !b) continue;
    const nth = count(`${cable.a} ${cable.b}`);
    const rail = (node[cable.a].rails ?? []).find((r) => r.interface === cable.a_interface);
    const silent = node[cable.a].silent || node[cable.b]?.silent;
    const moved = (rail?.received_bits_per_second ?? 0) + (rail?.sent_bits_per_second ?? 0);
    const state = silent || (rail && !rail.carrier) ? "down" : moved > 1e6 ? "busy" : "";
    const name = rail?.rail ?? cable.a_interface;
    if (isSwitched) {
      lines.push(svgElement("line", {x1: a.x + (nth - 1.5) * 12, y1: a.y + 20, x2: b.x, y2: b.y - 14, class: state}));
      if (rail && !silent) {
        texts.push(svgElement("text", {x: a.x, y: a.y + 22 + nth * 14, class: "rate"},
          `${name} \u2191${rate(rail.sent_bits_per_second)} \u2193${rate(rail.received_bits_per_second)}`));
      }
      continue;
    }
    // Cables between neighbours are straight, others pass below the nodes between.
    const [x1, x2] = a.x < b.x ? [a.x, b.x] : [b.x, a.x];
    const isNear = x2 - x1 < 1500 / board.nodes.length;
    const middle = (x1 + x2) / 2, y = isNear ? 20 + nth * 16 : 62;
    lines.push(isNear ? svgElement("line", {x1: x1 + half, y1: y, x2: x2 - half, y2: y, class: state})
      : svgElement("path", {d: `M${x1 + nth * 6} ${y}Q${middle} ${y + 70 + nth * 12} ${x2 - nth * 6} ${y}`, class: state}));
    if (rail && !silent) {
      texts.push(svgElement("text", {x: middle, y: 82 + count(`at ${Math.round(middle)}`) * 16, class: "rate"},
        `rail ${name}: ${rate(rail.sent_bits_per_second)} \u2192  \u2190 ${rate(rail.received_bits_per_second)}`));
    }
  }
  drawing.append(...lines);
  for (const each of board.nodes) {
    const {x, y} = place[each.node];
    drawing.append(svgElement("rect", {x: x - half, y: y - 22, width: 2 * half, height: 44, rx: 6, class: each.silent ? "silent" : ""}),
                   svgElement("text", {x, y: y + 5}, each.node));
  }
  if (isSwitched) {
    const {x, y} = place.switch;
    drawing.append(svgElement("rect", {x: x - 60, y: y - 14, width: 120, height: 28, rx: 6}),
                   svgElement("text", {x, y: y + 5}, "switch"));
  }
  drawing.append(...texts);
}

function show(board) {
  byId("cluster").textContent = board.cluster;
  byId("state").textContent = clock(board.time);
  for (const node of board.nodes) remember(node);
  byId("nodes").replaceChildren(...board.nodes.map(showNode));
  byId("findings").replaceChildren(...(board.findings.length > 0 ? board.findings.map(showFinding)
    : [element("p", "quiet", "No findings.")]));
  byId("ended").replaceChildren(...board.ended_findings.slice(-20).reverse().map(showFinding));
  draw(board);
}

async function loadCables() {
  cables = await (await fetch("/cables.json")).json();
}

function follow() {
  const events = new EventSource("/events");
  events.addEventListener("history", async (event) => {
    const told = JSON.parse(event.data);
    history = Object.fromEntries(told.nodes.map((node) => [node.node, {times: node.times, series: node.series}]));
    await loadCables();
  });
  events.addEventListener("board", (event) => show(JSON.parse(event.data)));
  events.addEventListener("error", () => { byId("state").textContent = "the watch does not answer"; });
}

// What is known is shown at once. With "?once" that is all: for a picture of the page.
const first = await (await fetch("/board.json")).text();
if (first !== "") {
  await loadCables();
  show(JSON.parse(first));
}
if (location.search !== "?once") follow();
