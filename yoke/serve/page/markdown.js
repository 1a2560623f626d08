// A model's markdown as elements. Every text becomes a text node: nothing that a model writes is ever read as markup,
// and links go nowhere but to http and https.
const make = (name, ...children) => {
  const element = document.createElement(name);
  element.append(...children);
  return element;
};

const patterns = [
  [/`([^`\n]+)`/, (m) => make('code', m[1])],
  [/\*\*([^*\n]+)\*\*/, (m) => make('strong', ...inline(m[1]))],
  [/\*([^*\s][^*\n]*)\*/, (m) => make('em', ...inline(m[1]))],
  [/\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)/, (m) => {
    const link = make('a', m[1]);
    link.href = m[2];
    link.rel = 'noopener noreferrer nofollow';
    link.target = '_blank';
    return link;
  }],
];

function inline(text) {
  const parts = [];
  while (text) {
    let first = null;
    for (const [pattern, build] of patterns) {
      const match = pattern.exec(text);
      if (match && (!first || match.index < first.match.index)) first = { match, build };
    }
    if (!first) break;
    if (first.match.index > 0) parts.push(text.slice(0, first.match.index));
    parts.push(first.build(first.match));
    text = text.slice(first.match.index + first.match[0].length);
  }
  if (text) parts.push(text);
  return parts;
}

const withBreaks = (lines) => lines.flatMap((line, i) => (i ? [make('br'), ...inline(line)] : inline(line)));

const cells = (line) => line.replace(/^\s*\||\|\s*$/g, '').split('|').map((cell) => cell.trim());

function table(lines) {
  const rows = lines.filter((line, i) => i !== 1).map((line, i) =>
    make('tr', ...cells(line).map((cell) => make(i ? 'td' : 'th', ...inline(cell)))));
  return make('table', ...rows);
}

// The lines from `start` on that hold a block of one kind.
function run(lines, start, test) {
  let end = start;
  while (end < lines.length && test(lines[end])) end += 1;
  return lines.slice(start, end);
}

export function markdown(text) {
  const out = document.createDocumentFragment();
  const lines = text.split('\n');
  for (let i = 0; i < lines.length;) {
    const line = lines[i];
    const fence = /^\s*(```|~~~)(\S*)/.exec(line);
    const heading = /^(#{1,6})\s+(.*)/.exec(line);
    if (fence) {
      const body = run(lines, i + 1, (one) => !one.trim().startsWith(fence[1]));
      out.append(make('pre', make('code', body.join('\n'))));
      i += body.length + 2;
    } else if (heading) {
      out.append(make(`h${Math.min(6, heading[1].length + 1)}`, ...inline(heading[2])));
      i += 1;
    } else if (/^\s*([-*+]|\d+[.)])\s+/.test(line)) {
      const ordered = /^\s*\d/.test(line);
      const items = run(lines, i, (one) => /^\s*([-*+]|\d+[.)])\s+/.test(one));
      out.append(make(ordered ? 'ol' : 'ul', ...items.map((one) =>
        make('li', ...inline(one.replace(/^\s*([-*+]|\d+[.)])\s+/, ''))))));
      i += items.length;
    } else if (line.includes('|') && /^[\s|:-]+$/.test(lines[i + 1] || '') && (lines[i + 1] || '').includes('-')) {
      const rows = run(lines, i, (one) => one.includes('|'));
      out.append(table(rows));
      i += rows.length;
    } else if (line.trim() === '') {
      i += 1;
    } else {
      const body = run(lines, i, (one) => one.trim() !== '' && !/^\s*(```|~~~|#{1,6}\s|[-*+]\s|\d+[.)]\s)/.test(one));
      const taken = body.length ? body : [line];
      out.append(make('p', ...withBreaks(taken)));
      i += taken.length;
    }
  }
  return out;
}
