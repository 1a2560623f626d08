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
    const bodies = [
      '{"prompt":"a","max_tokens":1}', '{"messages":[{"role":"user","content":"a"}],"max_tokens":1,"stream":true}',
      '{"messages":[{"role":"user","content":"a"}],"max_tokens":1,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"a":{"type":"integer"}}}}}}',
      '{"input":"a","max_output_tokens":1}', '{"tokens":[1,2]}'];
    const paths = ['/v1/completions', '/v1/chat/completions', '/v1/chat/completions', '/v1/responses', '/detokenize', '/v1/messages', '/tokenize'];
    let seed = 1;
    const random = (below) => { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor(seed / 65536) % below; };
    const before = memory();
    const statuses = new Map();
    const one = async () => {
      const body = Buffer.from(bodies[random(bodies.length)]);
      let text = Buffer.concat([Buffer.from(`POST ${paths[random(paths.length)]} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`), body]);
      for (let k = random(4); k > 0; k -= 1) text[random(text.length)] = random(256);
      if (random(5) === 0) text = text.subarray(0, random(text.length));
      const socket = await connect();
      await new Promise((resolve) => {
        let came = '';
        const timer = setTimeout(() => socket.destroy(), 2000);
        socket.on('data', (data) => { came += data; });
        socket.on('error', () => {});
        socket.on('close', () => { clearTimeout(timer); const status = came.slice(9, 12); statuses.set(status, (statuses.get(status) ?? 0) + 1); resolve(); });
        socket.end(text);
      });
    };
    const count = Number(process.env.SOAK_REQUESTS ?? 100000);
    for (let i = 0; i < count; i += 100) await Promise.all(Array.from({ length: 100 }, one));
    const took = await alive();
    console.log(`${count} requests; statuses ${[...statuses].sort().map(([k, v]) => `${k || 'none'}: ${v}`).join(', ')}; ${before.toFixed(0)} MiB before, ${memory().toFixed(0)} MiB after; a request takes ${took.toFixed(1)} ms`);
    if ((statuses.get('500') ?? 0) > 0) fail('answers with the status 500');
  },
};
await rounds[round]();
