// The page in a real browser: node page.mjs URL FOLDER. Chats, stops, looks at the cluster, in light and dark, large and
// on a phone; screenshots go to the folder.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(`${process.cwd()}/`));
const { chromium } = require('playwright-core');
const [url, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
const complaints = [];

async function open(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) complaints.push(message.text()); });
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(url);
  await page.waitForFunction(() => document.getElementById('state').textContent === 'ready');
  return page;
}
const shot = (page, name) => page.screenshot({ path: `${folder}/${name}.png` });
const answered = (page) => page.waitForFunction(() => document.getElementById('stop').hidden, null, { timeout: 30000 });

try {
  const page = await open({ viewport: { width: 1100, height: 750 }, colorScheme: 'light' });
  await page.fill('#question', 'Which cable joins two units?');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('#messages li').length === 2);
  await answered(page);
  const text = await page.textContent('#messages');
  assert(text.includes('Which cable joins two units?') && text.includes('QSFP') || text.length > 60, text);
  await shot(page, 'chat');
  console.log('ok chat');

  await page.reload();
  assert.equal(await page.locator('#messages li').count(), 2);
  console.log('ok kept in the browser');

  await page.getByRole('button', { name: 'Regenerate' }).click();
  await answered(page);
  assert.equal(await page.locator('#messages li').count(), 2);
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.fill('#messages textarea', 'What is a rail?');
  await page.getByRole('button', { name: 'Send again' }).click();
  await answered(page);
  assert.equal(await page.locator('#messages li.user .body').textContent(), 'What is a rail?');
  assert.equal(await page.locator('#messages li').count(), 2);
  console.log('ok regenerate and edit');

  // What is set goes with the next question.
  await page.click('#show-settings');
  await page.fill('#system', 'Be short.');
  await page.fill('#temperature', '0.5');
  await page.fill('#max_tokens', '5');
  await page.keyboard.press('Escape');
  const [sent] = await Promise.all([page.waitForRequest('**/v1/chat/completions'),
    page.getByRole('button', { name: 'Regenerate' }).click()]);
  const { messages: [system], temperature, max_tokens: most } = sent.postDataJSON();
  assert.deepEqual([system, temperature, most], [{ role: 'system', content: 'Be short.' }, 0.5, 5]);
  await answered(page);
  console.log('ok settings');

  // Model output never becomes markup.
  await page.evaluate(() => localStorage.setItem('yoke.messages', JSON.stringify([
    { role: 'user', content: '<img src=x onerror=alert(1)>' }, { role: 'assistant', content: '<script>alert(1)</script> **b** `c`' }])));
  await page.reload();
  assert.equal(await page.locator('#messages img, #messages script').count(), 0);
  assert.equal(await page.locator('#messages strong').count(), 1);
  console.log('ok no markup');

  await page.click('#new-chat');
  await page.fill('#question', 'Tell me everything about cables, rails and nodes.');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => !document.getElementById('stop').hidden || document.querySelectorAll('#messages li').length === 2);
  if (await page.isVisible('#stop')) await page.keyboard.press('Escape');
  await answered(page);
  console.log('ok stop');

  await page.click('#show-cluster');
  await page.waitForFunction(() => document.querySelectorAll('#drawing .node').length > 0);
  await page.waitForFunction(() => document.querySelectorAll('#figures div').length >= 5);
  await shot(page, 'cluster');
  // A rail without a carrier and a rank that is started again are drawn as such.
  await page.route('**/v1/cluster', async (route) => {
    const rails = (up) => [{ name: 'A', interface: 'e0', address: `192.168.100.${up === false ? 1 : 2}/24`, up, sent_bytes: 1, received_bytes: 1 }];
    const rank = (number, up) => [{ rank: number, up, restarts: 0, weights_bytes: 1e9, cache_bytes: 1e8 }];
    const view = await (await route.fetch()).json();
    view.nodes = [{ name: 'spark-1', rails: rails(false), ranks: rank(0, true) }, { name: 'spark-2', rails: rails(), ranks: rank(1, false) }];
    await route.fulfill({ json: view });
  });
  await page.waitForFunction(() => document.querySelectorAll('#drawing .rail.down').length === 1
    && document.getElementById('drawing').textContent.includes('rank 1: is started again'));
  await shot(page, 'faults');
  await page.unroute('**/v1/cluster');
  // Rails are drawn as they are cabled: a ring has a cable between the last node and the first, eight rails of two
  // servers do not cover each other, and a switch has a line to each rail.
  const shapes = [
    { name: 'ring', topology: 'ring', cables: 6, nodes: [0, 1, 2].map((n) => [n, (n + 2) % 3].flatMap((cable) =>
      [0, 1].map((half) => `192.168.${100 + 10 * cable + half}.${n + 1}/24`))) },
    { name: 'eight', topology: 'direct', cables: 8, nodes: [1, 2].map((n) =>
      [0, 1, 2, 3, 4, 5, 6, 7].map((rail) => `192.168.${100 + rail}.${n}/24`)) },
    { name: 'switch', topology: 'switch', cables: 8, nodes: [1, 2, 3, 4].map((n) =>
      [0, 1].map((rail) => `192.168.${100 + rail}.${n}/24`)) }];
  for (const shape of shapes) {
    await page.route('**/v1/cluster', async (route) => {
      const view = await (await route.fetch()).json();
      view.topology = shape.topology;
      view.nodes = shape.nodes.map((addresses, n) => ({ name: `${shape.name}-${n + 1}`, ranks: [],
        rails: addresses.map((address, r) => ({ name: 'ABCDEFGH'[r], interface: `e${r}`, address })) }));
      await route.fulfill({ json: view });
    });
    await page.waitForFunction((name) => document.getElementById('drawing').textContent.includes(`${name}-1`), shape.name);
    const drawn = await page.evaluate(() => ({
      cables: document.querySelectorAll('#drawing .rail').length,
      labels: [...document.querySelectorAll('#drawing .rail-name')].map((one) => one.getBoundingClientRect()).map(({ x, y, width, height }) => ({ x, y, width, height })) }));
    assert.equal(drawn.cables, shape.cables, shape.name);
    const covers = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y + 3 < b.y + b.height && b.y + 3 < a.y + a.height;
    drawn.labels.forEach((a, i) => drawn.labels.slice(i + 1).forEach((b) => assert(!covers(a, b), `${shape.name}: labels overlap`)));
    await shot(page, shape.name);
    await page.unroute('**/v1/cluster');
  }
  console.log('ok cluster');

  const dark = await open({ viewport: { width: 1100, height: 750 }, colorScheme: 'dark' });
  const background = await dark.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const parts = background.match(/\d+/g).map(Number);
  assert(parts[0] + parts[1] + parts[2] < 200, background);
  await shot(dark, 'dark');
  console.log('ok dark');

  const phone = await open({ viewport: { width: 375, height: 667 }, isMobile: true, hasTouch: true });
  const overflow = await phone.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert(overflow <= 0, `the page is ${overflow} pixels too wide`);
  assert(await phone.isVisible('#question') && await phone.isVisible('#send'));
  await shot(phone, 'phone');
  console.log('ok phone');
  assert.deepEqual(complaints, []);
} finally {
  await browser.close();
}
