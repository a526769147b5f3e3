// Looks at a page in Chromium: node browser.cjs CHROMIUM AXE PAGE [SHOTS]. Prints
// one JSON object with what is wrong and how long things took.
const fs = require("fs");
const {chromium} = require("playwright-core");
const [binary, axe, page, shots] = process.argv.slice(2);
(async () => {
  const browser = await chromium.launch({executablePath: binary, args: ["--no-sandbox"]});
  const out = {errors: [], axe: [], ms: {}};
  for (const [name, viewport, scheme] of [["wide", {width: 1600, height: 1000}, "light"], ["phone", {width: 390, height: 844}, "dark"]]) {
    const context = await browser.newContext({viewport, colorScheme: scheme});
    const tab = await context.newPage();
    tab.on("console", m => { if (m.type() === "error") out.errors.push(m.text()); });
    tab.on("pageerror", e => out.errors.push(String(e)));
    tab.on("dialog", d => { out.errors.push("dialog " + d.message()); d.dismiss(); });
    tab.on("request", r => { if (!r.url().startsWith("file:") && !r.url().startsWith("data:")) out.errors.push("request " + r.url()); });
    await tab.goto("file://" + page);
    out.ms["paint " + name] = await tab.evaluate(() => new Promise(done => {
      const got = performance.getEntriesByName("first-contentful-paint")[0];
      if (got) done(got.startTime);
      new PerformanceObserver(l => done(l.getEntries()[0].startTime)).observe({type: "paint", buffered: true});
      setTimeout(() => done(-1), 5000);
    }));
    if (await tab.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1)) out.errors.push(name + ": the page is wider than the screen");
    const rows = () => tab.locator("#cases-table tbody tr").count();
    // Filters, by what a user does: typing, choosing, following a link.
    const all = await tab.locator("#cases-count").textContent();
    await tab.fill("#f-text", "zzzz-no-such");
    if (await rows() !== 0) out.errors.push("the filter hides nothing");
    await tab.click("#f-clear");
    if (await tab.locator("#cases-count").textContent() !== all) out.errors.push("Show all does not");
    const link = tab.locator("#cover tbody td a").first();
    if (await link.count()) {
      const n = Number(await link.textContent());
      await link.click();
      if (!tab.url().includes("#cases?op=")) out.errors.push("the cell leads nowhere: " + tab.url());
      const shown = (await tab.locator("#cases-count").textContent()).split(" ")[0];
      if (Number(shown) < 1) out.errors.push(`the cell says ${n} cases, the table shows ${shown}`);
      await tab.goto(tab.url()); await tab.reload();
      if ((await tab.locator("#cases-count").textContent()).split(" ")[0] !== shown) out.errors.push("the fragment is forgotten by a reload");
      await tab.click("#f-clear");
    }
    const own = tab.locator("#own-0 table");
    await own.locator("thead button").nth(1).click();
    if (await own.locator("thead th").nth(1).getAttribute("aria-sort") === "none") out.errors.push("a table of a command's own does not sort");
    for (const id of ["#cases-table", "#tests-table"]) {
      await tab.locator(id + " thead button").nth(1).click();
      if (await tab.locator(id + " thead th").nth(1).getAttribute("aria-sort") === "none") out.errors.push(id + " does not sort");
    }
    const interact = async (what, f) => { const t = Date.now(); await tab.evaluate(f); out.ms[what + " " + name] = Date.now() - t; };
    await interact("filter", () => { const e = document.getElementById("f-text"); e.value = "a"; e.dispatchEvent(new Event("input")); document.body.offsetHeight; });
    await interact("sort", () => { document.querySelectorAll("#cases-table thead button")[4].click(); document.body.offsetHeight; });
    await interact("cover", () => { const e = document.getElementById("axis"); e.value = "3"; e.dispatchEvent(new Event("input")); document.body.offsetHeight; });
    await tab.click("#f-clear");
    if (await tab.evaluate(() => window.hostile !== undefined)) out.errors.push("hostile text ran");
    if (axe !== "-") {
      await tab.evaluate(() => scrollTo(0, 0));
      const source = fs.readFileSync(axe, "utf8");
      await context.newCDPSession(tab).then(c => c.send("Runtime.evaluate", {expression: source}));
      const r = await tab.evaluate(() => window.axe.run(document, {resultTypes: ["violations"]}));
      for (const v of r.violations) out.axe.push(`${name}: ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(" | ")}`);
    }
    if (shots) { await tab.evaluate(() => scrollTo(0, 0)); await tab.screenshot({path: `${shots}-${name}.png`}); await tab.screenshot({path: `${shots}-${name}-full.png`, fullPage: true}); }
    await context.close();
  }
  await browser.close();
  console.log(JSON.stringify(out));
})().catch(e => { console.log(JSON.stringify({errors: [String(e)], axe: [], ms: {}})); });
