"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tests = data.tests || [], cases = data.cases || [], cells = data.cells || [];
  const words = data.words || [], texts = data.texts || [];
  const $ = id => document.getElementById(id);
  const el = (name, text, cls) => {
    const e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    if (cls) e.className = cls;
    return e;
  };
  const number = x => x === "inf" ? Infinity : typeof x === "number" ? x : NaN;
  const ratio = x => x === "inf" ? "∞" : x === 0 ? "" : String(x);
  const ms = us => (us / 1000).toFixed(us < 10000 ? 2 : 0) + " ms";
  const size = 100;

  // The fragment is a section, then what it shows: #cases?op=relu&dtype=float32.
  const state = () => {
    const [section, query] = location.hash.slice(1).split("?");
    return [decodeURIComponent(section), new URLSearchParams(query || "")];
  };
  const link = (section, params) => "#" + section + "?" + new URLSearchParams(params);

  // A table with columns that sort and pages.
  function table(id, columns, rows, describe) {
    const root = $(id + "-table"), pager = $(id + "-pager"), count = $(id + "-count");
    let by = -1, down = false, page = 0, shown = rows;
    const head = el("thead"), line = el("tr"), body = el("tbody");
    const heads = columns.map((c, i) => {
      const th = el("th"), b = el("button", c.name);
      th.scope = "col"; b.type = "button";
      b.addEventListener("click", () => { down = by === i ? !down : !!c.down; by = i; page = 0; draw(); });
      th.append(b); line.append(th);
      return th;
    });
    head.append(line); root.append(head, body);
    function draw() {
      heads.forEach((th, i) => th.setAttribute("aria-sort", i !== by ? "none" : down ? "descending" : "ascending"));
      let list = shown;
      if (by >= 0) {
        const key = columns[by].key;
        list = shown.slice().sort((a, b) => { const x = key(a), y = key(b); return x < y ? -1 : x > y ? 1 : 0; });
        if (down) list.reverse();
      }
      const pages = Math.max(1, Math.ceil(list.length / size));
      page = Math.min(page, pages - 1);
      const part = document.createDocumentFragment();
      for (const r of list.slice(page * size, (page + 1) * size)) {
        const tr = el("tr");
        columns.forEach((c, i) => {
          const cell = el(i === 0 ? "th" : "td", undefined, c.cls);
          if (i === 0) cell.scope = "row";
          const v = c.show(r);
          if (v instanceof Node) cell.append(v); else cell.textContent = v;
          tr.append(cell);
        });
        part.append(tr);
      }
      body.replaceChildren(part);
      count.textContent = describe(list.length);
      pager.replaceChildren();
      if (pages > 1) {
        const step = (text, to, off) => { const b = el("button", text); b.type = "button"; b.disabled = off; b.addEventListener("click", () => { page = to; draw(); }); pager.append(b, " "); };
        step("Previous", page - 1, page === 0);
        step("Next", page + 1, page === pages - 1);
        pager.append(el("span", `page ${page + 1} of ${pages}`));
      }
    }
    return list => { shown = list; page = 0; draw(); };
  }

  const anchor = (text, href) => { const a = el("a", text); a.href = href; return a; };
  const counts = c => [c[0] ? c[0] + " aligned" : "", c[1] ? c[1] + " failed" : "", c[2] ? c[2] + " other" : ""].filter(Boolean).join(", ");
  const showTests = table("tests", [
    {name: "test", show: t => anchor(t[0], link("cases", {test: t[0]})), key: t => t[0]},
    {name: "cases", show: t => t[1], key: t => t[1], down: true},
    {name: "verdicts", show: t => counts(t[2]), key: t => t[2][1], down: true},
    {name: "worst ÷ limit", show: t => ratio(t[3]), key: t => number(t[3]), down: true},
    {name: "time", show: t => ms(t[4]), key: t => t[4], down: true},
    {name: "remarks", show: t => t[6] || t[5], key: t => t[6] + t[5], down: true, cls: "wrap"},
  ], tests, n => `${n} of ${tests.length}`);
  const slowest = tests.slice().sort((a, b) => b[4] - a[4]);
  const filterTests = () => { const q = $("tests-filter").value.toLowerCase(); showTests(slowest.filter(t => t[0].toLowerCase().includes(q))); };
  $("tests-filter").addEventListener("input", filterTests);
  filterTests();

  const word = c => words[c[3]], failed = w => ["misaligned", "crash", "timeout", "oom", "fault"].includes(w);
  const showCases = table("cases", [
    {name: "test", show: c => tests[c[0]][0], key: c => tests[c[0]][0]},
    {name: "case", show: c => c[1], key: c => c[1]},
    {name: "verdict", show: c => el("span", word(c), failed(word(c)) ? "bad" : ""), key: c => word(c)},
    {name: "worst ÷ limit", show: c => ratio(c[4]), key: c => number(c[4]), down: true},
    {name: "time", show: c => ms(c[5]), key: c => c[5], down: true},
    {name: "operators", show: c => (c[8] || []).map(i => texts[i]).join(", "), key: c => (c[8] || []).length, cls: "wrap"},
    {name: "dtypes", show: c => (c[9] || []).map(i => texts[i]).join(", "), key: c => (c[9] || []).map(i => texts[i]).join()},
    {name: "candidate", show: c => texts[c[6]], key: c => texts[c[6]]},
    {name: "id", show: c => el("code", c[2]), key: c => c[2]},
    {name: "reason", show: c => c[7] < 0 ? "" : texts[c[7]], key: c => c[7] < 0 ? "" : texts[c[7]], cls: "wrap"},
  ], cases, n => `${n} of ${cases.length}`);
  const option = (select, value, text) => { const o = el("option", text); o.value = value; select.append(o); };
  option($("f-word"), "", "all"); option($("f-word"), "failed", "failed"); words.forEach(w => option($("f-word"), w, w));
  option($("f-dtype"), "", "all");
  [...new Set(cases.flatMap(c => c[9] || []))].map(i => texts[i]).sort().forEach(d => option($("f-dtype"), d, d));
  const fields = {text: "f-text", word: "f-word", op: "f-op", dtype: "f-dtype"};
  let test = "";
  function filterCases() {
    const q = $("f-text").value.toLowerCase(), w = $("f-word").value, op = $("f-op").value.toLowerCase(), dtype = $("f-dtype").value;
    const hits = texts.map(t => t.toLowerCase().includes(q)), names = tests.map(t => t[0].toLowerCase().includes(q));
    const ops = texts.map(t => t.toLowerCase() === op), some = texts.map(t => t.toLowerCase().includes(op));
    const exact = ops.includes(true) ? ops : some;
    const dt = texts.indexOf(dtype);
    showCases(cases.filter(c =>
      (!test || tests[c[0]][0] === test) &&
      (!w || (w === "failed" ? failed(word(c)) : word(c) === w)) &&
      (!op || (c[8] || []).some(i => exact[i])) &&
      (!dtype || (c[9] || []).includes(dt)) &&
      (!q || names[c[0]] || c[2].includes(q) || (c[7] >= 0 && hits[c[7]]) || (c[8] || []).some(i => hits[i]))));
  }
  function keep() {
    const params = {};
    for (const k in fields) if ($(fields[k]).value) params[k] = $(fields[k]).value;
    if (test) params.test = test;
    history.replaceState(null, "", link("cases", params));
    filterCases();
  }
  for (const k in fields) $(fields[k]).addEventListener("input", keep);
  $("f-clear").addEventListener("click", () => { for (const k in fields) $(fields[k]).value = ""; test = ""; keep(); });

  // The matrix of what was met.
  function cover() {
    const axis = Number($("axis").value), q = $("cover-filter").value.toLowerCase();
    const columns = [...new Set(cells.map(c => c[axis]))].sort(), rows = new Map();
    const at = (op, col) => {
      if (!rows.has(op)) rows.set(op, new Map());
      const r = rows.get(op);
      if (!r.has(col)) r.set(col, [0, 0, 0]);
      return r.get(col);
    };
    // Cells count a case in each mode and layout: where the columns are no modes, one mode tells.
    const first = new Map();
    for (const c of cells) if (!first.has(c[0]) || c[3] < first.get(c[0])) first.set(c[0], c[3]);
    for (const c of cells) {
      if (q && !c[0].toLowerCase().includes(q)) continue;
      const n = at(c[0], c[axis]), one = axis === 3 || c[3] === first.get(c[0]);
      if (one) c[4].forEach((x, i) => { n[i] += x; });
      else if (c[4][1] > n[1]) n[1] = c[4][1];
    }
    if (axis === 1 && !data.dropped) {
      for (const r of rows.values()) for (const n of r.values()) n.fill(0);
      for (const c of cases) for (const o of c[8] || []) for (const d of c[9] || []) {
        const r = rows.get(texts[o]), n = r && r.get(texts[d]);
        if (n) n[failed(word(c)) ? 1 : word(c) === "aligned" ? 0 : 2]++;
      }
    }
    const head = el("thead"), line = el("tr"), body = el("tbody");
    for (const name of ["operator", ...columns]) { const th = el("th", name); th.scope = "col"; line.append(th); }
    head.append(line);
    for (const [op, r] of rows) {
      const tr = el("tr"), th = el("th");
      th.scope = "row"; th.append(anchor(op, link("cases", {op}))); tr.append(th);
      for (const col of columns) {
        const n = r.get(col), td = el("td");
        if (n && n[0] + n[1] + n[2]) {
          td.className = n[1] ? "no" : n[0] ? "ok" : "na";
          const a = anchor(n[0] + n[1] + n[2], link("cases", axis === 1 ? {op, dtype: col} : {op}));
          a.title = `${op}, ${col}: ${counts(n)}`;
          td.append(n[1] ? el("span", "✗ ", "bad") : "", a);
        }
        tr.append(td);
      }
      body.append(tr);
    }
    $("cover").replaceChildren(head, body);
  }
  $("axis").addEventListener("input", cover);
  $("cover-filter").addEventListener("input", cover);
  cover();

  // Tables that came whole.
  for (const t of document.querySelectorAll("table.sortable")) {
    const body = t.tBodies[0];
    [...t.tHead.rows[0].cells].forEach((th, i) => {
      const b = el("button", th.textContent);
      b.type = "button";
      th.replaceChildren(b);
      b.addEventListener("click", () => {
        const down = th.getAttribute("aria-sort") === "ascending";
        for (const other of t.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        th.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = r => { const s = r.cells[i].textContent, n = parseFloat(s); return isNaN(n) ? s : n; };
        const rows = [...body.rows].sort((a, b) => { const x = key(a), y = key(b); return x < y ? -1 : x > y ? 1 : 0; });
        if (down) rows.reverse();
        body.append(...rows);
      });
    });
  }

  for (const b of document.querySelectorAll(".copy")) {
    b.addEventListener("click", async () => {
      const pre = b.parentElement.querySelector("pre"), label = b.dataset.label || b.textContent;
      b.dataset.label = label;
      try {
        await navigator.clipboard.writeText(pre.textContent);
      } catch {
        const range = document.createRange();
        range.selectNodeContents(pre);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        document.execCommand("copy");
      }
      b.textContent = "Copied";
      setTimeout(() => { b.textContent = label; }, 1500);
    });
  }

  function go() {
    const [section, params] = state();
    if (section === "cases") {
      for (const k in fields) $(fields[k]).value = params.get(k) || "";
      test = params.get("test") || "";
    }
    filterCases();
    if (section && location.hash.includes("?") && $(section)) $(section).scrollIntoView();
  }
  addEventListener("hashchange", go);
  go();
})();
