// The cluster as it is cabled, with what it does now.
import { headers } from '/chat.js';

const $ = (id) => document.getElementById(id);
const kSvg = 'http://www.w3.org/2000/svg';
const history = [];  // tokens per second, of each second
let before = null;   // the counters of a second ago

function svg(name, attributes, text) {
  const element = document.createElementNS(kSvg, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const bytes = (value) => {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let i = 0;
  while (value >= 1000 && i < units.length - 1) { value /= 1000; i += 1; }
  return `${value.toPrecision(3)} ${units[i]}`;
};
const rate = (value) => `${(value * 8 / 1e9).toPrecision(3)} Gb/s`;

function figures(view) {
  const rows = [
    ['tokens/s', view.tokens_per_second.toFixed(1)],
    ['running', view.running],
    ['waiting', view.waiting],
    ['ranks', view.engine?.ranks ?? '-'],
    ['recoveries', view.recoveries],
  ];
  if (view.engine) rows.push(['cache', `${Math.round(100 * view.tokens_held / view.engine.cache_tokens)}%`]);
  $('figures').replaceChildren(...rows.map(([name, value]) => {
    const box = document.createElement('div');
    const figure = document.createElement('b');
    const label = document.createElement('span');
    figure.textContent = value;
    label.textContent = name;
    box.append(figure, label);
    return box;
  }));
}

// What passes over a rail, in bytes a second: as the node's supervisor measures it, or where the head has none, since
// the last look.
function railRate(rail, isOwn) {
  if (rail.sent_bytes_per_second !== undefined) return rail.sent_bytes_per_second + rail.received_bytes_per_second;
  if (!isOwn) return null;
  const last = before?.rails[rail.interface];
  if (!last || rail.sent_bytes === undefined) return null;
  const seconds = (performance.now() - before.at) / 1000;
  return (rail.sent_bytes + rail.received_bytes - last) / seconds;
}

// "192.168.100.1/24": its subnet. Rails of one subnet are joined: two by a cable, more by a switch.
function subnetOf(address) {
  const [ip, length] = (address ?? '').split('/');
  const number = ip.split('.').reduce((all, part) => all * 256 + Number(part), 0);
  return `${Math.floor(number / 2 ** (32 - Number(length)))}/${length}`;
}

// The groups of joined rail ends.
function cablesOf(view) {
  const groups = new Map();
  view.nodes.forEach((node, n) => (node.rails ?? []).forEach((rail, r) => {
    const subnet = subnetOf(rail.address);
    groups.set(subnet, [...(groups.get(subnet) ?? []), { node: n, rail: r }]);
  }));
  return [...groups.values()].filter((ends) => ends.length > 1);
}

const kRailHeight = 17;

function railLabel(rail, isOwn) {
  if (rail.up === false) return `${rail.name} down`;
  const now = railRate(rail, isOwn);
  return now === null ? rail.name : `${rail.name} ${rate(now)}`;
}

function nodeBox(node, box, isOwn) {
  const group = svg('g', {});
  group.append(svg('rect', { class: 'node', x: box.x, y: box.y, width: box.width, height: box.height, rx: 8 }));
  group.append(svg('text', { x: box.x + 10, y: box.y + 22 }, node.name));
  box.lines.forEach((line, i) => group.append(
    svg('text', { class: 'soft', x: box.x + 10, y: box.y + box.linesAt + 15 * i }, line)));
  (node.rails ?? []).forEach((rail, k) => group.append(svg('text',
    { class: 'soft rail-name', x: box.x + box.width - 8, y: box.railY(k) + 4, 'text-anchor': 'end' }, railLabel(rail, isOwn))));
  return group;
}

function linesOf(node) {
  const lines = [];
  for (const rank of node.ranks ?? []) {
    const what = rank.up ? `${bytes(rank.weights_bytes)} weights, ${bytes(rank.cache_bytes)} cache` : 'is started again';
    lines.push(`rank ${rank.rank}: ${what}`);
  }
  if (node.memory_bytes) lines.push(`${bytes(node.memory_available_bytes)} of ${bytes(node.memory_bytes)} free`);
  return lines;
}

// Nodes below each other, as high as their rails and lines need; to the right of them a lane for each cable, or a switch.
function draw(view) {
  const drawing = $('drawing');
  const width = Math.max(300, drawing.clientWidth || 600);
  const cables = cablesOf(view);
  const switched = view.topology === 'switch' || cables.some((ends) => ends.length > 2);
  const lane = Math.min(14, 130 / Math.max(1, cables.length));
  const lanes = cables.length === 0 ? 0 : switched ? 90 : 24 + lane * cables.length;
  const boxWidth = Math.min(640, width - lanes - 2);
  let y = switched ? 20 : 10;
  const boxes = view.nodes.map((node) => {
    const lines = linesOf(node);
    const rails = (node.rails ?? []).length;
    const narrow = boxWidth < 360 && rails > 0;  // then what is said of the node stands below its rails
    const linesAt = narrow ? 44 + kRailHeight * rails : 42;
    const height = Math.max(60, linesAt + 15 * lines.length, 28 + kRailHeight * rails);
    const box = { x: 1, y, width: boxWidth, height, lines, linesAt };
    box.railY = (k) => box.y + 20 + kRailHeight * k;
    y += height + 26;
    return box;
  });
  const parts = view.nodes.map((node, n) => nodeBox(node, boxes[n], n === 0));
  const isDown = (ends) => ends.some((end) => view.nodes[end.node].rails[end.rail].up === false);
  const edge = 1 + boxWidth;
  if (switched && cables.length > 0) {
    const top = boxes[0].y;
    const last = boxes[boxes.length - 1];
    parts.push(svg('rect', { class: 'node switch', x: edge + 60, y: top, width: 28, height: last.y + last.height - top, rx: 6 }));
    parts.push(svg('text', { class: 'soft', x: edge + 74, y: top - 2, 'text-anchor': 'middle' }, 'switch'));
    for (const end of cables.flat()) {
      const at = boxes[end.node].railY(end.rail);
      const down = isDown([end]);
      parts.push(svg('path', { class: down ? 'rail down' : 'rail', d: `M${edge} ${at} H${edge + 60}` }));
    }
  } else {
    cables.forEach((ends, k) => {
      const [from, to] = ends.map((end) => boxes[end.node].railY(end.rail));
      const out = edge + 16 + lane * k;
      parts.push(svg('path', { class: isDown(ends) ? 'rail down' : 'rail', d: `M${edge} ${from} H${out} V${to} H${edge}` }));
    });
  }
  drawing.setAttribute('viewBox', `0 0 ${width} ${y}`);
  drawing.style.height = `${y}px`;
  drawing.replaceChildren(...parts);
}

function plot(view) {
  history.push(view.tokens_per_second);
  if (history.length > 60) history.shift();
  const expected = view.plan?.tokens_per_second ?? 0;  // of one request
  const top = Math.max(1, ...history, expected) * 1.1;
  const width = 600;
  const points = history.map((value, i) => `${(i + 60 - history.length) * 10},${110 - 100 * value / top}`);
  const parts = [svg('line', { class: 'axis', x1: 0, y1: 110, x2: width, y2: 110 }),
    svg('polyline', { class: 'curve', points: points.join(' ') }),
    svg('text', { class: 'soft', x: 0, y: 125 }, 'tokens/s, last minute'),
    svg('text', { class: 'soft', x: width, y: 12, 'text-anchor': 'end' }, top.toFixed(0))];
  if (expected > 0) {
    const y = 110 - 100 * expected / top;
    parts.push(svg('line', { class: 'expected', x1: 0, y1: y, x2: width, y2: y }),
      svg('text', { class: 'soft', x: 4, y: y - 4 }, `one request, as planned: ${Number(expected.toPrecision(3))} tokens/s`));
  }
  $('rate').setAttribute('viewBox', `0 0 ${width} 130`);
  $('rate').replaceChildren(...parts);
}

function notices(view) {
  $('notices').replaceChildren(...view.notices.slice().reverse().map((text) => {
    const item = document.createElement('li');
    item.textContent = text;
    return item;
  }));
}

async function look() {
  try {
    const response = await fetch('/v1/cluster', { headers: headers() });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const view = await response.json();
    $('state').textContent = view.state === 'ready' ? 'ready' : `${view.state}${view.why ? `: ${view.why}` : ''}`;
    $('state').className = view.state === 'ready' ? '' : 'bad';
    if (!$('cluster').hidden) { figures(view); draw(view); notices(view); }
    plot(view);
    before = { at: performance.now(), rails: Object.fromEntries((view.nodes[0]?.rails ?? []).map((rail) =>
      [rail.interface, (rail.sent_bytes ?? 0) + (rail.received_bytes ?? 0)])) };
  } catch (error) {
    $('state').textContent = `the server cannot be reached (${error.message})`;
    $('state').className = 'bad';
  }
  setTimeout(look, 1000);
}
look();
