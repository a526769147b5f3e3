// Renews what a run under way changes: a region names in data-from where its content
// comes from; it is asked for again as long as that says data-going, or data-always.
'use strict';

const often = 2000, seldom = 10000; // milliseconds

function replace(region, text) {
  const scrolled = [...region.querySelectorAll('.wide')].map(w => w.scrollLeft);
  const focused = region.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null;
  const fresh = new DOMParser().parseFromString(text, 'text/html');
  region.replaceChildren(...fresh.body.childNodes);
  region.querySelectorAll('.wide').forEach((w, i) => { w.scrollLeft = scrolled[i] || 0; });
  if (focused !== null) region.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

async function text(from) {
  const answer = await fetch(from, { signal: AbortSignal.timeout(15000) });
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer.text();
}

function renew(region) {
  const control = document.querySelector('.renew'), box = control.querySelector('input'), status = control.querySelector('[role=status]');
  let last = '';
  control.hidden = false;
  async function once() {
    let wait = often;
    if (box.checked && !document.hidden) {
      try {
        const now = await text(region.dataset.from);
        status.textContent = '';
        if (now !== last) replace(region, last = now);
        if (!('always' in region.dataset) && !region.querySelector('[data-going]')) {
          const page = new DOMParser().parseFromString(await text(location.href), 'text/html');
          document.querySelector('main').replaceChildren(...page.querySelector('main').childNodes);
          return;
        }
      } catch {
        status.textContent = 'The server does not answer; what is shown may be old.';
        wait = seldom;
      }
    }
    setTimeout(once, wait);
  }
  setTimeout(once, often);
}

document.querySelectorAll('[data-from]').forEach(renew);
