// Looks at a run under way in Chromium: node renewed.js CHROMIUM BASE with
// playwright-core on NODE_PATH. Prints what it waits for, until its standard input has a
// line, and what is wrong.
const { chromium } = require('playwright-core');
const lines = require('readline').createInterface({ input: process.stdin })[Symbol.asyncIterator]();

(async () => {
  const [executablePath, base] = process.argv.slice(2);
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  const context = await browser.newContext();
  const pages = {};
  for (const path of ['/', '/runs/1']) {
    const page = pages[path] = await context.newPage();
    page.on('console', m => { if (m.type() === 'error') console.log(`${path}: console: ${m.text()}`); });
    page.on('pageerror', e => console.log(`${path}: ${e}`));
    await page.goto(base + path);
    await page.evaluate(() => { window.same = true; });
  }
  const run = pages['/runs/1'];
  const says = async (page, text) => {
    try {
      await page.waitForFunction(text => document.body.innerText.includes(text), text, { timeout: 15000 });
    } catch {
      console.log(`never shows ${text}: ${await page.evaluate(() => document.body.innerText)}`);
    }
  };
  await run.focus('nav a');
  for (const text of ['3 of about 8', 'making failure 1 of 1', 'misaligned value of x', 'with 1']) {
    console.log(`waits for ${text}`);
    await lines.next();
    await run.bringToFront();
    await says(run, text);
  }
  await pages['/'].bringToFront();
  await says(pages['/'], 'with 1');
  for (const [path, page] of Object.entries(pages)) {
    if (!await page.evaluate(() => window.same)) console.log(`${path} was loaded again`);
  }
  if (await run.evaluate(() => document.activeElement.tagName) !== 'A') console.log('the focus is lost');
  if (await run.locator('.renew').count()) console.log('a run that has ended is renewed');
  await browser.close();
  process.exit(0); // its input is still open
})().catch(e => { console.log(String(e)); process.exit(1); });
