// Long rounds against a running yoke serve: node soak.mjs URL ROUND PID. No packages are needed.
import fs from 'node:fs';
import net from 'node:net';

const [url, round, pid] = process.argv.slice(2);
const { hostname, port } = new URL(url);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const memory = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
const fail = (why) => { console.log(`FAILED: ${why}`); process.exitCode = 1; };

async function alive() {
  const start = performance.now();
  const response = await fetch(`${url}/v1/completions`, { method: 'POST', body: JSON.stringify({ prompt: 'A', max_tokens: 1 }) });
  if (response.status !== 200) fail(`a request has the status ${response.status}`);
  await response.text();
  return performance.now() - start;
}
const connect = () => new Promise((resolve, reject) => {
  const socket = net.connect(Number(port), hostname, () => resolve(socket));
  socket.on('error', reject);
});

// One stream over a plain socket; resolves with what came.
async function stream(tokens, seed) {
  const body = JSON.stringify({ prompt: `Node ${seed} and`, max_tokens: tokens, ignore_eos: true, stream: true, seed });
  const socket = await connect();
  return new Promise((resolve) => {
    let text = '';
    socket.on('data', (data) => { text += data; });
    socket.on('error', () => resolve(text));
    socket.on('close', () => resolve(text));
    socket.write(`POST /v1/completions HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  });
}

// What the server holds: a leak shows in one of them.
const holds = () => ({
  memory: memory(),
  files: fs.readdirSync(`/proc/${pid}/fd`).length,
  threads: Number(/Threads:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]),
});

// Requests by a seed: valid ones with some bytes changed or cut, pieces of HTTP and JSON in any order, and any bytes.
function requestMaker(first) {
  let seed = first;
  const random = (below) => { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor(seed / 65536) % below; };
  const pick = (list) => list[random(list.length)];
  const chat = '"messages":[{"role":"user","content":"a"}],"max_tokens":1';
  const schema = '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}';
  const own = [
    ['/v1/completions', '{"prompt":"a","max_tokens":1}'],
    ['/v1/completions', '{"prompt":["a","b"],"max_tokens":1,"n":2,"logprobs":2,"echo":true}'],
    ['/v1/completions', `{"prompt":${'['.repeat(300)}${']'.repeat(300)}}`],
    ['/v1/completions', '{"prompt":"a","max_tokens":1e999}'],
    ['/v1/chat/completions', `{${chat},"stream":true,"stream_options":{"include_usage":true}}`],
    ['/v1/chat/completions', `{${chat},"temperature":0.5,"top_p":0.9,"seed":7,"stop":["x"],"logit_bias":{"5":-100}}`],
    ['/v1/chat/completions', `{${chat},"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":${schema}}}}`],
    ['/v1/chat/completions', `{${chat},"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]}`],
    ['/v1/responses', '{"input":"a","max_output_tokens":1,"stream":true}'],
    ['/v1/messages', `{${chat}}`], ['/v1/messages/count_tokens', '{"messages":[{"role":"user","content":"a"}]}'],
    ['/v1/embeddings', '{"input":[1,2,3],"encoding_format":"base64"}'],
    ['/tokenize', '{"prompt":"\\ud83d\\ude00 \\u0000"}'], ['/detokenize', '{"tokens":[1,2]}'],
    ['/v1/models', ''], ['/metrics', ''], ['/v1/cluster', ''], ['/', ''], ['/ready', '']];
  const pieces = ['GET ', 'POST ', '/v1/completions', ' HTTP/1.1\r\n', ' HTTP/1.0\r\n', 'Host: h\r\n', 'Content-Length: 5\r\n',
    'Content-Length: -1\r\n', 'Content-Length: 99999999999999999999\r\n', 'Transfer-Encoding: chunked\r\n', 'Expect: 100-continue\r\n',
    '\r\n', '\r\n\r\n', '0\r\n\r\n', 'ffffffffffffffff\r\n', '5\r\nhello\r\n', '{"prompt":', '"a"', '[[[[[[[[', '\\ud800', '1e308', '}', ',', '\xff\xfe', '\0'];
  const chunked = (body) => {
    const cut = random(body.length);
    return [body.slice(0, cut), body.slice(cut)].filter((part) => part).map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('') + '0\r\n\r\n';
  };
  const whole = () => {
    const [path, body] = pick(own);
    const isUsual = random(8) > 0;  // else what belongs to another path
    const head = `${(body === '') === isUsual ? 'GET' : 'POST'} ${isUsual ? path : pick(own)[0]} HTTP/1.1\r\nHost: h\r\n`;
    if (body === '') return `${head}\r\n`;
    if (random(6) === 0) return `${head}Transfer-Encoding: chunked\r\n\r\n${chunked(body)}`;
    return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
  };
  return () => {
    const kind = random(10);
    if (kind === 0) return Buffer.from(Array.from({ length: random(600) }, () => random(256)));
    if (kind === 1) return Buffer.from(Array.from({ length: random(30) }, () => pick(pieces)).join(''), 'latin1');
    // Two in a row, as a client sends that does not wait.
    let text = Buffer.from(random(20) === 0 ? whole() + whole() : whole(), 'latin1');
    for (let k = random(4); k > 0; k -= 1) text[random(text.length)] = random(256);
    if (random(5) === 0) text = text.subarray(0, random(text.length));
    return text;
  };
}

const rounds = {
  async streams() {
    await Promise.all(Array.from({ length: 50 }, (_, i) => stream(20, i)));
    const before = memory();
    const end = Date.now() + 60000;
    let done = 0, dropped = 0;
    await Promise.all(Array.from({ length: 1000 }, async (_, i) => {
      while (Date.now() < end) {
        const text = await stream(16, i);
        done += 1;
        if (!text.includes('data: [DONE]')) dropped += 1;
      }
    }));
    await sleep(2000);
    const after = memory();
    console.log(`${done} streams of 1000 clients, ${dropped} dropped; ${before.toFixed(0)} MiB before, ${after.toFixed(0)} MiB after`);
    if (dropped > 0) fail('streams were dropped');
    if (after > before + 64) fail('memory is not flat');
  },
  async idle() {
    const sockets = [];
    for (let i = 0; i < 10000; i += 1) {
      try { sockets.push(await connect()); } catch (error) { console.log(`${i} connections: ${error.code}`); break; }
      sockets.at(-1).on('error', () => {});
    }
    const took = await alive();
    console.log(`${sockets.length} idle connections; a request takes ${took.toFixed(1)} ms`);
    if (sockets.length < 10000) fail('not all could be opened (ulimit -n?)');
    for (const socket of sockets) socket.destroy();
  },
  async slowloris() {
    let closed = 0;
    const sockets = await Promise.all(Array.from({ length: 200 }, connect));
    for (const socket of sockets) { socket.on('close', () => { closed += 1; }); socket.on('error', () => {}); socket.resume(); }
    const head = 'POST /v1/completions HTTP/1.1\r\nHost: h\r\nX-Slow: '.concat('a'.repeat(60));
    for (let i = 0; i < 30; i += 1) {
      for (const socket of sockets) if (!socket.destroyed) socket.write(head[i] ?? 'a');
      await sleep(1000);
    }
    const took = await alive();
    console.log(`${closed} of 200 slow clients were closed; a request takes ${took.toFixed(1)} ms`);
    if (closed < 200) fail('slow clients hold their connections');
  },
  async fuzz() {
    const count = Number(process.env.SOAK_REQUESTS ?? 100000);
    const memoryMax = Number(process.env.SOAK_MEMORY ?? 64);  // MiB that the server may grow by
    const make = requestMaker(Number(process.env.SOAK_SEED ?? 1));
    const statuses = new Map();
    let hung = 0, longest = 0;
    // Each ends its side of the connection: the server answers, or not, and closes. One that does not hangs.
    const one = async () => {
      const request = make();
      const socket = await connect();
      const start = performance.now();
      await new Promise((resolve) => {
        let came = '';
        const timer = setTimeout(() => { hung += 1; console.log(`hangs: ${JSON.stringify(request.toString('latin1'))}`); socket.destroy(); }, 20000);
        socket.on('data', (data) => { if (came.length < 64) came += data.toString('latin1'); });
        socket.on('error', () => {});
        socket.on('close', () => {
          clearTimeout(timer);
          longest = Math.max(longest, performance.now() - start);
          // Behind the interim answer by which the server finds out whether the client still reads.
          const status = /HTTP\/1\.[01] ([2-5]\d\d)/.exec(came)?.[1] ?? (came ? 'other' : 'none');
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          resolve();
        });
        socket.end(request);
      });
    };
    const ask = async (requests) => {
      for (let i = 0; i < requests; i += 100) await Promise.all(Array.from({ length: Math.min(100, requests - i) }, one));
    };
    await ask(Math.min(5000, count / 10));  // caches fill
    await alive();
    const before = holds();
    const start = performance.now();
    await ask(count);
    const seconds = (performance.now() - start) / 1000;
    const took = await alive();
    await sleep(1000);
    const after = holds();
    const list = [...statuses].sort().map(([status, times]) => `${status}: ${times}`).join(', ');
    console.log(`${count} requests in ${seconds.toFixed(1)} s, ${hung} hung, the longest took ${longest.toFixed(0)} ms; statuses ${list}`);
    console.log(`memory ${before.memory.toFixed(0)} MiB before, ${after.memory.toFixed(0)} MiB after; ` +
      `descriptors ${before.files}, ${after.files}; threads ${before.threads}, ${after.threads}; a request takes ${took.toFixed(1)} ms`);
    if (hung > 0) fail('requests hang');
    if ((statuses.get('500') ?? 0) > 0) fail('answers with the status 500');
    if ((statuses.get('200') ?? 0) < count / 100) fail('hardly a request is valid: nothing was tried');
    if (after.memory > before.memory + memoryMax) fail('memory is not flat');
    if (after.files > before.files + 8 || after.threads > before.threads + 8) fail('descriptors or threads are not flat');
  },
};
await rounds[round]();
