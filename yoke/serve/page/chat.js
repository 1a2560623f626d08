// The conversation: kept in this browser, streamed from /v1/chat/completions.
import { markdown } from '/markdown.js';

const $ = (id) => document.getElementById(id);
const kSettings = ['system', 'temperature', 'top_p', 'max_tokens', 'seed', 'api_key', 'theme'];
const kept = (key, fallback) => {
  try { return JSON.parse(localStorage.getItem(`yoke.${key}`)) ?? fallback; } catch { return fallback; }
};
const keep = (key, value) => {
  try { localStorage.setItem(`yoke.${key}`, JSON.stringify(value)); } catch { /* full or forbidden: not kept */ }
};

let messages = kept('messages', []);
let model = '';
let asking = null;  // an AbortController while an answer comes

export function headers() {
  const key = $('api_key').value;
  return key ? { Authorization: `Bearer ${key}` } : {};
}

// ---- settings

for (const id of kSettings) {
  $(id).value = kept(`set.${id}`, '');
  $(id).addEventListener('change', () => { keep(`set.${id}`, $(id).value); applyTheme(); });
}
function applyTheme() {
  if ($('theme').value) document.documentElement.dataset.theme = $('theme').value;
  else delete document.documentElement.dataset.theme;
}
applyTheme();
$('show-settings').addEventListener('click', () => $('settings').showModal());

function show(name) {
  for (const one of ['chat', 'cluster']) {
    $(one).hidden = one !== name;
    $(`show-${one}`).setAttribute('aria-pressed', String(one === name));
  }
  if (name === 'chat') $('question').focus();
}
$('show-chat').addEventListener('click', () => show('chat'));
$('show-cluster').addEventListener('click', () => show('cluster'));
$('new-chat').addEventListener('click', () => {
  asking?.abort();
  messages = [];
  save();
  render();
  show('chat');
});

// ---- messages

const save = () => keep('messages', messages);

function tool(label, action) {
  const button = document.createElement('button');
  button.textContent = label;
  button.addEventListener('click', action);
  return button;
}

function fill(body, message) {
  if (message.role !== 'assistant') {
    body.textContent = message.content;
    return;
  }
  body.replaceChildren(markdown(message.content));
  if (!message.thought) return;
  const thought = document.createElement('details');
  const title = document.createElement('summary');
  title.textContent = message.content ? 'Thoughts' : 'Thinking…';
  thought.open = !message.content;
  thought.append(title, message.thought);
  body.prepend(thought);
}

function editor(item, place) {
  const area = document.createElement('textarea');
  area.value = messages[place].content;
  area.rows = Math.min(10, area.value.split('\n').length + 1);
  item.replaceChildren(area, tool('Send again', () => {
    messages = messages.slice(0, place);
    ask(area.value);
  }), tool('Cancel', render));
  area.focus();
}

function element(message, place) {
  const item = document.createElement('li');
  item.className = message.role;
  const body = document.createElement('div');
  body.className = 'body';
  fill(body, message);
  const tools = document.createElement('div');
  tools.className = 'tools';
  if (message.role === 'user') tools.append(tool('Edit', () => asking || editor(item, place)));
  else {
    tools.append(tool('Copy', () => navigator.clipboard?.writeText(message.content)));
    if (place === messages.length - 1) tools.append(tool('Regenerate', regenerate));
  }
  item.append(body, tools);
  if (message.error) {
    const error = document.createElement('p');
    error.className = 'error';
    error.textContent = message.error;
    item.append(error);
  }
  return item;
}

function render() {
  $('messages').replaceChildren(...messages.map(element));
  $('messages').scrollTop = $('messages').scrollHeight;
}

// ---- asking

function body() {
  const sent = messages.filter((m) => m.content !== '' || m.role === 'user').map(({ role, content }) => ({ role, content }));
  if ($('system').value) sent.unshift({ role: 'system', content: $('system').value });
  const out = { messages: sent, stream: true };
  if (model) out.model = model;
  for (const id of ['temperature', 'top_p', 'max_tokens', 'seed']) {
    if ($(id).value !== '') out[id] = Number($(id).value);
  }
  return out;
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    for (let end = held.indexOf('\n\n'); end >= 0; end = held.indexOf('\n\n')) {
      const line = held.slice(0, end);
      held = held.slice(end + 2);
      if (line.startsWith('data: ')) yield line.slice(6);
    }
  }
}

async function stream(answer, controller) {
  const response = await fetch('/v1/chat/completions', {
    method: 'POST', signal: controller.signal, body: JSON.stringify(body()),
    headers: { 'Content-Type': 'application/json', ...headers() },
  });
  if (!response.ok) throw new Error((await response.json()).error?.message ?? `status ${response.status}`);
  for await (const data of events(response)) {
    if (data === '[DONE]') return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Error(chunk.error.message);
    answer.content += chunk.choices[0]?.delta?.content ?? '';
    const thought = chunk.choices[0]?.delta?.reasoning_content;
    if (thought) answer.thought = (answer.thought ?? '') + thought;
    const shown = $('messages').lastElementChild;
    const atEnd = $('messages').scrollHeight - $('messages').scrollTop - $('messages').clientHeight < 80;
    if (shown) fill(shown.firstElementChild, answer);
    if (atEnd) $('messages').scrollTop = $('messages').scrollHeight;
  }
}

async function answerLast() {
  const controller = new AbortController();
  asking = controller;
  $('send').hidden = true;
  $('stop').hidden = false;
  const answer = { role: 'assistant', content: '' };
  const task = stream(answer, controller);
  messages.push(answer);
  render();
  try {
    await task;
  } catch (error) {
    if (!controller.signal.aborted) answer.error = error.message;
  }
  if (asking === controller) {
    asking = null;
    $('send').hidden = false;
    $('stop').hidden = true;
    save();
    render();
  }
}

function ask(text) {
  if (asking || text.trim() === '') return;
  messages.push({ role: 'user', content: text });
  $('question').value = '';
  answerLast();
}

function regenerate() {
  if (asking) return;
  if (messages.at(-1)?.role === 'assistant') messages.pop();
  answerLast();
}

$('ask').addEventListener('submit', (event) => { event.preventDefault(); ask($('question').value); });
$('stop').addEventListener('click', () => asking?.abort());
$('question').addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    ask($('question').value);
  }
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && asking && !$('settings').open) asking.abort();
});
$('question').addEventListener('input', () => {
  $('question').style.height = 'auto';
  $('question').style.height = `${$('question').scrollHeight}px`;
});

render();
try {
  const response = await fetch('/v1/models', { headers: headers() });
  if (response.ok) model = (await response.json()).data[0].id;
  else if (response.status === 401) $('settings').showModal();
  $('model').textContent = model;
} catch { /* the cluster view says that the server cannot be reached */ }
