// The page of yoke watch in a real browser: node watch.mjs URL FOLDER. Prints "ready" when it shows a healthy cluster,
// "shown" when a fault is there that it knows nothing of beforehand, "ended" when that has gone; screenshots go to the
// folder.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(`${process.cwd()}/`));
const { chromium } = require('playwright-core');
const [url, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
const complaints = [];

try {
  const page = await browser.newPage({ viewport: { width: 1100, height: 900 } });
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) complaints.push(message.text()); });
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(url);
  // Every cable with its rates, and plots of every node.
  await page.waitForFunction(() => {
    const rates = [...document.querySelectorAll('#drawing text.rate')];
    const nodes = document.querySelectorAll('#nodes article').length;
    return nodes > 1 && rates.length >= nodes && rates.every((rate) => !rate.textContent.includes('-'))
      && document.getElementById('findings').textContent === 'No findings.';
  });
  assert.equal(await page.locator('#drawing .down').count(), 0);
  await page.screenshot({ path: `${folder}/healthy.png` });
  console.log('ready');

  await page.waitForFunction(() => document.querySelector('#findings .error'));
  const finding = await page.textContent('#findings .error');
  await page.waitForFunction(() => document.querySelectorAll('#drawing .down').length > 0);
  assert.equal(await page.locator('#findings .error .plot path').count(), 1);
  await page.screenshot({ path: `${folder}/fault.png` });
  console.log(`shown ${finding}`);

  await page.waitForFunction(() => document.getElementById('findings').textContent === 'No findings.'
    && document.querySelectorAll('#drawing .down').length === 0);
  const ended = await page.textContent('#ended');
  assert(ended.includes(finding.split(',')[0]), ended);
  console.log('ended');
  assert.deepEqual(complaints, []);
} finally {
  await browser.close();
}
