// Looks at pages in Chromium: node browse.js CHROMIUM BASE PATH… with
// playwright-core and axe-core on NODE_PATH. Prints what is wrong, a line each.
const { chromium } = require('playwright-core');
const axe = require('axe-core').source;

(async () => {
  const [executablePath, base, ...paths] = process.argv.slice(2);
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  for (const scheme of ['light', 'dark']) {
    for (const viewport of [{ width: 360, height: 640 }, { width: 1280, height: 900 }]) {
      if (!process.env.PLUMB_SHOTS && (scheme === 'dark') !== (viewport.width < 1000)) continue;
      const context = await browser.newContext({ colorScheme: scheme, viewport, bypassCSP: true });
      for (const path of paths) {
        const page = await context.newPage();
        page.on('console', m => { if (m.type() === 'error') console.log(`${path}: console: ${m.text()}`); });
        page.on('pageerror', e => console.log(`${path}: ${e}`));
        page.on('dialog', d => { console.log(`${path}: a dialog: ${d.message()}`); d.dismiss(); });
        page.on('request', r => { if (!r.url().startsWith(base) && !r.url().startsWith('data:')) console.log(`${path}: asks for ${r.url()}`); });
        const response = await page.goto(base + path);
        if (response.status() !== 200) console.log(`${path}: ${response.status()}`);
        if (await page.evaluate(() => window.hacked)) console.log(`${path}: a name ran`);
        if (await page.evaluate(() => document.querySelectorAll('script:not([src="/live.js"]), iframe, object, [onerror], [onload]').length)) console.log(`${path}: has active elements`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        if (wide > 0) console.log(`${path}: is ${wide}px wider than a ${viewport.width}px screen`);
        await page.evaluate(axe);
        const found = await page.evaluate(() => window.axe.run());
        for (const v of found.violations) console.log(`${path} (${scheme}): axe ${v.id}: ${v.nodes[0].html}`);
        const shots = process.env.PLUMB_SHOTS;
        if (shots) await page.screenshot({ path: `${shots}/${scheme}_${viewport.width}${path.replace(/[^a-z0-9]+/gi, '_')}.png`, fullPage: viewport.width > 1000 });
        await page.close();
      }
      await context.close();
    }
  }
  await browser.close();
})().catch(e => { console.log(String(e)); process.exit(1); });
