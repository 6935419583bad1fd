'use strict';
(() => {
const D = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const esc = s => String(s).replace(/[&<>"]/g, c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
const WORD = /^(\s*(?:@!?\S+ )?)([A-Z][\w.]*)|\b(?:U?R|U?P|B|r|ur|p|up|b)\d+\b|\b(?:U?RZ|U?PT)\b|(#?-?0x[0-9a-f]+)|(\.L[\w]*)/g;

/* An instruction of a stage, or SASS, with its parts coloured. */
function paint(text) {
  return esc(text).replace(WORD, (all, front, op, num, label) =>
    op ? `${front}<i class="k">${op}</i>` : num ? `<i class="n">${num}</i>` : label ? `<i class="l">${label}</i>`
      : `<i class="v">${all}</i>`);
}

/* ---------------------------------------------------------------- what is selected: a line of PTX */
function select(line, from, row) {
  for (const x of document.querySelectorAll('.hit')) x.classList.remove('hit');
  for (const x of document.querySelectorAll('.cur')) x.classList.remove('cur');
  if (row) row.classList.add('cur');
  if (line) {
    for (const x of document.querySelectorAll(`[data-line="${line}"]`)) x.classList.add('hit');
    for (const id of ['ptx', 'sass', 'diff']) {
      if (id === from) continue;
      const first = $(id).querySelector('.hit');
      if (first) show($(id), first);
    }
  }
}
function show(box, x) {
  const a = box.getBoundingClientRect(), b = x.getBoundingClientRect();
  if (b.top < a.top || b.bottom > a.bottom) box.scrollTop += b.top - a.top - a.height / 3;
}
document.addEventListener('click', e => {
  const row = e.target.closest('[data-line]');
  if (!row) return;
  const box = row.closest('.scroll');
  if (row.dataset.at) current(+row.dataset.at); else select(+row.dataset.line, box && box.id, row);
});

/* ---------------------------------------------------------------- head, resources, remarks */
$('title').textContent = D.name;
$('about').textContent = `${D.source} for ${D.target}, by ${D.made}, ${D.options}`;
$('resources').innerHTML = D.resources.map(([k, v]) => `<div><dt>${esc(k)}</dt><dd>${v}</dd></div>`).join('');
$('occupancy').innerHTML = '<tr><th>threads a block</th><th>blocks an SM</th><th>warps</th><th>occupancy</th><th>limited by</th></tr>'
  + D.occupancy.map(([n, b, w, f, l, bound]) => `<tr${bound ? ' class="hit"' : ''}><td>${n}</td><td>${b}</td><td>${w} of ${D.max_warps}</td>`
  + `<td>${Math.round(f * 100)} %</td><td>${esc(l)}</td></tr>`).join('');
const SIGN = { passed: '+', missed: '\u2212', analysis: 'i' };
$('remarks').innerHTML = D.remarks.map(([kind, pass, line, text, value]) => `<p data-line="${line}"><span class="tag">${SIGN[kind]} ${kind}</span> `
  + `<i class="k">${esc(pass)}</i> ${line ? 'line ' + line + ': ' : ''}${esc(text)} ${value ? `<i class="v">${esc(value)}</i>` : ''}</p>`).join('')
  || '<p>none</p>';
if (!D.resources.length) for (const id of ['p-occupancy', 'p-remarks']) $(id).style.display = 'none';  // saved streams have neither

/* ---------------------------------------------------------------- PTX */
const wide = String(D.ptx.length).length;
$('ptx').innerHTML = D.ptx.map((t, n) => `<div class="r" data-line="${n + 1}"><span class="num" style="width:${wide + 1}ch">${n + 1}</span><span>${t || ' '}</span></div>`).join('');

/* ---------------------------------------------------------------- SASS */
const most = Math.max(1, ...D.code.map(r => r[5]));
const starts = new Map(D.blocks.map(([first, , label], k) => [first, [k, label]]));
const waits = m => [0, 1, 2, 3, 4, 5].filter(k => m >> k & 1).join('') || '-';
const board = n => n === 7 || n === undefined ? '-' : n;
$('sass').innerHTML = D.code.map(([pc, text, line, ctl, why, alive], n) => {
  const at = starts.get(n), spill = /^(?:@\S+ )?(?:STL|LDL)\b/.test(text);
  const head = at ? `<div class="label" id="b${at[0]}">${esc(at[1] || 'block ' + at[0])}:</div>` : '';
  return head + `<div class="r${spill ? ' spill' : ''}" id="i${n}" data-at="${n}" data-line="${line}"><span class="num">${pc.toString(16).padStart(4, '0')}</span>`
    + `<span class="bar" title="${alive} general registers alive"><i style="width:${Math.round(alive / most * 100)}%"></i><b>${alive}</b></span>`
    + `<span class="${ctl[0] > 8 ? 'hot' : ''}" title="stall">${String(ctl[0] ?? '').padStart(2)}</span>`
    + `<span title="write, read scoreboard">W${board(ctl[2])} R${board(ctl[3])}</span><span title="waits for scoreboards" style="width:6ch">${waits(ctl[4] || 0)}</span>`
    + `<span style="min-width:46ch">${paint(text)}</span><span class="w">${esc(why)}</span></div>`;
}).join('');
let here = -1;
function current(n) {
  if (n < 0 || n >= D.code.length) return;
  here = n;
  const [pc, text, line, ctl, why, alive, uniform, preds] = D.code[n], row = $('i' + n);
  select(line, 'sass', row);
  show($('sass'), row);
  $('why').textContent = `${pc.toString(16).padStart(4, '0')} ${text}, PTX line ${line || '(none)'}: ${why || 'nothing to wait for'}; `
    + `${alive} general, ${uniform} uniform registers, ${preds} predicates alive`;
  const block = D.blocks.findIndex(([first, end]) => first <= n && n < end);
  for (const x of document.querySelectorAll('.node')) x.classList.toggle('hit', +x.dataset.block === block);
  mark(n);
}

/* ---------------------------------------------------------------- stages and passes */
let chosen = -1, all = false;
$('passlist').innerHTML = D.passes.map((p, n) => {
  const seen = p.state >= 0;
  return `<button type="button" role="option" class="p${p.name ? '' : ' stage'}${seen ? '' : ' none'}" aria-selected="false" data-pass="${n}" ${seen ? '' : 'tabindex="-1"'}>`
    + `<span>${p.name ? '\u00a0 ' : ''}${esc(p.name || p.stage)}</span><span>${p.before}\u2192${p.after}</span><span>${p.ms.toFixed(1)} ms</span></button>`;
}).join('');
function lines(state) { return state < 0 ? [] : D.states[state].map(id => D.lines[id]); }
/* Both texts with the words that differ underlined. */
function words(a, b) {
  const x = a.split(/(\W)/), y = b.split(/(\W)/);
  if (x.length !== y.length) return [paint(a), paint(b)];
  const one = (p, q) => p.map((w, n) => w === q[n] ? esc(w) : `<u>${esc(w)}</u>`).join('');
  return [one(x, y), one(y, x)];
}
function pair(l, r) {
  const cell = (line, cls, sign, inner) => `<div class="${cls}" data-line="${line}">${sign}${inner}</div>`;
  if (l && r) {
    if (l[0] === r[0]) return cell(l[1], '', '  ', paint(l[0])) + cell(r[1], '', '  ', paint(r[0]));
    const [a, b] = words(l[0], r[0]);
    return cell(l[1], 'chg', '~ ', a) + cell(r[1], 'chg', '~ ', b);
  }
  return (l ? cell(l[1], 'del', '\u2212 ', paint(l[0])) : '<div></div>') + (r ? cell(r[1], 'add', '+ ', paint(r[0])) : '<div></div>');
}
function choose(n) {
  const p = D.passes[n];
  if (!p || p.state < 0) return;
  chosen = n;
  for (const x of $('passlist').children) x.setAttribute('aria-selected', String(+x.dataset.pass === n));
  show($('passlist'), $('passlist').children[n]);
  const before = lines(p.state - 1), after = lines(p.state), rows = [];
  $('diff').classList.toggle('many', after.length > 1500);
  let i = 0, j = 0;
  if (!p.state) {  // beside the first text stands the PTX that it was made of
    let last = 0;
    $('diff').innerHTML = after.map(([text, line]) => {
      const from = line && line !== last ? D.ptx[line - 1] || '' : '';
      last = line || last;
      return `<div class="two"><div data-line="${line}">${from}</div><div data-line="${line}">${paint(text)}</div></div>`;
    }).join('');
    $('passinfo').innerHTML = `<b>${esc(p.stage)}</b>: PTX on the left, the first instructions on the right; ${p.after} instructions, ${p.ms.toFixed(2)} ms`;
    return;
  }
  for (const [differ, left, right] of p.diff) {
    if (!differ) for (let k = 0; k < right; k++) rows.push([before[i + k], after[j + k]]);
    else for (let k = 0; k < Math.max(left, right); k++)
      rows.push([k < left ? before[i + k] : undefined, k < right ? after[j + k] : undefined, true]);
    i += left; j += right;
  }
  let changed = 0;
  const out = [], quiet = rows.map(([l, r, d]) => !d && l && r && l[0] === r[0]);
  for (let k = 0; k < rows.length; k++) {
    let end = k;
    while (!all && end < rows.length && quiet[end]) end++;
    if (end - k > 8) {
      const part = rows.slice(k + 3, end - 3).map(([l, r]) => `<div class="two">${pair(l, r)}</div>`).join('');
      out.push(...rows.slice(k, k + 3).map(([l, r]) => `<div class="two">${pair(l, r)}</div>`),
        `<button type="button" class="fold">${end - k - 6} equal lines</button><div hidden>${part}</div>`,
        ...rows.slice(end - 3, end).map(([l, r]) => `<div class="two">${pair(l, r)}</div>`));
      k = end - 1;
      continue;
    }
    const [l, r, d] = rows[k];
    changed += !quiet[k];
    out.push(`<div class="two">${d && l && r ? pair(l, undefined) + '</div><div class="two">' + pair(undefined, r) : pair(l, r)}</div>`);
  }
  $('passinfo').innerHTML = `<b>${esc(p.stage)}${p.name ? '/' + esc(p.name) : ''}</b>: before on the left, behind it on the right; ${p.before} \u2192 ${p.after} instructions, `
    + `${p.rewrites} rewrites, ${p.ms.toFixed(2)} ms, ${p.memory} KiB; ${changed} rows differ`;
  $('diff').innerHTML = out.join('');
  $('diff').scrollTop = 0;
}
$('passlist').addEventListener('click', e => { const b = e.target.closest('[data-pass]'); if (b) choose(+b.dataset.pass); });
$('diff').addEventListener('click', e => {
  if (e.target.className !== 'fold') return;
  e.target.nextElementSibling.hidden = false;
  e.target.remove();
});
function step(by) {
  for (let n = chosen + by; n >= 0 && n < D.passes.length; n += by) if (D.passes[n].state >= 0) return choose(n);
}

/* ---------------------------------------------------------------- control-flow graph */
const NS = 'http://www.w3.org/2000/svg';
const LARGE = 250;  // blocks up to which dagre lays the graph out; it takes too long, and too much stack, for long code
function layered(sizes, edges) {
  const g = new dagre.graphlib.Graph({ multigraph: true });
  g.setGraph({ nodesep: 18, ranksep: 34, marginx: 8, marginy: 8 });
  sizes.forEach((width, k) => g.setNode(k, { width, height: 34 }));
  edges.forEach(([a, b, taken], n) => { if (a !== b) g.setEdge(a, b, { taken }, n); });
  dagre.layout(g);
  const { width, height } = g.graph();
  return { width, height, nodes: g.nodes().map(k => [+k, g.node(k).x, g.node(k).y, g.node(k).width, g.node(k).height]),
    edges: g.edges().map(e => [g.edge(e).taken, g.edge(e).points.map(p => [p.x, p.y])]) };
}
/* Blocks below each other in the order of the code, jumps on the right: the longer, the farther out. */
function column(sizes, edges) {
  const widest = Math.max(...sizes), step = 50, x = 8 + widest / 2, y = k => 25 + k * step;
  const out = n => Math.min(400, 14 + Math.abs(n) * 9);
  const drawn = edges.filter(([a, b]) => a !== b).map(([a, b, taken]) => b === a + 1 && !taken
    ? [taken, [[x, y(a) + 17], [x, y(b) - 17]]]
    : [taken, [[x + sizes[a] / 2, y(a)], [8 + widest + out(b - a), y(a)], [8 + widest + out(b - a), y(b)], [x + sizes[b] / 2, y(b)]]]);
  return { width: widest + 430, height: y(sizes.length), nodes: sizes.map((w, k) => [k, x, y(k), w, 34]), edges: drawn };
}
function graph() {
  const text = D.blocks.map(([first, end, label], k) => [label || 'block ' + k, `${end - first} instr., ${D.code.slice(first, end).reduce((s, r) => s + (r[3][0] || 0), 0)} cycles`]);
  const LOOP = 26, own = new Map(D.edges.filter(([a, b]) => a === b).map(w => [w[0], w[2]]));
  const sizes = text.map((t, k) => Math.max(...t.map(s => s.length)) * 6.8 + 14 + (own.has(k) ? 2 * LOOP : 0));
  draw((sizes.length > LARGE ? column : layered)(sizes, D.edges), text, own, LOOP);
}
function draw({ width, height, nodes, edges }, text, own, LOOP) {
  const out = [];
  for (const [taken, points] of edges) {
    const p = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`);
    out.push(`<path class="${taken ? 'taken' : 'through'}" d="M${p.join('L')}" marker-end="url(#${taken ? 'arrowt' : 'arrowf'})"><title>${taken ? 'taken' : 'falls through'}</title></path>`);
  }
  for (const [k, cx, cy, w, h] of nodes) {
    const v = { x: cx, y: cy, width: w, height: h }, t = text[k];
    if (own.has(k)) {
      v.width -= 2 * LOOP;
      const x = v.x + v.width / 2;
      out.push(`<path class="${own.get(k) ? 'taken' : 'through'}" d="M${x} ${v.y + 8}C${x + LOOP} ${v.y + 22},${x + LOOP} ${v.y - 22},${x} ${v.y - 8}" marker-end="url(#arrowt)"><title>taken: a loop of one block</title></path>`);
    }
    out.push(`<g class="node" tabindex="0" role="button" data-block="${k}" aria-label="${esc(t.join(', '))}" transform="translate(${(v.x - v.width / 2).toFixed(1)},${(v.y - v.height / 2).toFixed(1)})">`
      + `<rect width="${v.width}" height="${v.height}" rx="3"/><text x="7" y="14">${esc(t[0])}</text><text x="7" y="28">${esc(t[1])}</text></g>`);
  }
  const arrow = (id, colour) => `<marker id="${id}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:var(${colour})"/></marker>`;
  $('graph').innerHTML = `<svg xmlns="${NS}" width="${Math.ceil(width) || 1}" height="${Math.ceil(height) || 1}" role="group" aria-label="blocks">`
    + `<defs>${arrow('arrowt', '--orange')}${arrow('arrowf', '--blue')}</defs>${out.join('')}</svg>`;
  $('graph').dataset.done = '1';
}
const block = e => { const x = e.target.closest('.node'); if (x) current(D.blocks[+x.dataset.block][0]); return x; };
$('graph').addEventListener('click', block);
$('graph').addEventListener('keydown', e => { if (e.key === 'Enter' || e.key === ' ') { if (block(e)) e.preventDefault(); } });

/* ---------------------------------------------------------------- register pressure */
const W = 1000, H = 150;
function chart() {
  const n = Math.max(1, D.code.length), top = Math.max(8, ...D.code.map(r => Math.max(r[5], r[6], r[7]))) * 1.08;
  const x = k => (k / n * W).toFixed(1), y = v => (H - v / top * H).toFixed(1);
  const path = c => D.code.map((r, k) => `${k ? 'L' : 'M'}${x(k)} ${y(r[c])}L${x(k + 1)} ${y(r[c])}`).join('');
  const peak = D.code.reduce((b, r, k) => r[5] > D.code[b][5] ? k : b, 0);
  const spills = D.code.map((r, k) => /^(?:@\S+ )?(?:STL|LDL)\b/.test(r[1]) ? `<path d="M${x(k + .5)} ${H}V${H - 9}" stroke="var(--purple)" stroke-width="2" vector-effect="non-scaling-stroke"/>` : '').join('');
  const line = (c, colour, dash) => `<path d="${path(c)}" fill="none" stroke="var(${colour})" stroke-width="1.6" ${dash} vector-effect="non-scaling-stroke"/>`;
  $('pressure').innerHTML = `<svg viewBox="0 0 ${W} ${H}" preserveAspectRatio="none" role="img" aria-label="registers alive along the code">`
    + line(5, '--blue', '') + line(6, '--orange', 'stroke-dasharray="6 3"') + line(7, '--green', 'stroke-dasharray="2 3"') + spills
    + `<path id="cursor" d="" stroke="var(--fg)" vector-effect="non-scaling-stroke"/></svg>`;
  const at = D.code[peak];
  $('pressureinfo').innerHTML = `<svg width="30" height="8"><path d="M0 4H30" stroke="var(--blue)" stroke-width="2"/></svg> general `
    + `<svg width="30" height="8"><path d="M0 4H30" stroke="var(--orange)" stroke-width="2" stroke-dasharray="6 3"/></svg> uniform `
    + `<svg width="30" height="8"><path d="M0 4H30" stroke="var(--green)" stroke-width="2" stroke-dasharray="2 3"/></svg> predicates; `
    + `ticks below: local memory; most general registers alive: ${at ? at[5] : 0}, at ${at ? at[0].toString(16) : 0}, PTX line ${at ? at[2] : 0}`;
}
function mark(n) { const c = $('cursor'), x = ((n + .5) / Math.max(1, D.code.length) * W).toFixed(1); if (c) c.setAttribute('d', `M${x} 0V${H}`); }
$('pressure').addEventListener('click', e => {
  const b = $('pressure').getBoundingClientRect();
  current(Math.min(D.code.length - 1, Math.floor((e.clientX - b.left) / b.width * D.code.length)));
});

/* ---------------------------------------------------------------- keys, theme */
const PANELS = ['p-ptx', 'p-sass', 'p-graph', 'p-passes', 'p-pressure', 'p-occupancy', 'p-remarks'];
function theme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
}
function help() { $('help').hidden = !$('help').hidden; $('keys').setAttribute('aria-expanded', String(!$('help').hidden)); }
$('theme').addEventListener('click', theme);
$('keys').addEventListener('click', help);
document.addEventListener('keydown', e => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const k = e.key;
  if (k === 't') theme();
  else if (k === '?') help();
  else if (k === 'n') step(1);
  else if (k === 'p') step(-1);
  else if (k === 'a') { all = !all; choose(chosen); }
  else if (k === 'ArrowDown' || k === 'ArrowUp') {
    if (document.activeElement && document.activeElement.closest('#passlist')) { step(k === 'ArrowDown' ? 1 : -1); }
    else if (document.activeElement && document.activeElement.closest('#p-sass')) current(here + (k === 'ArrowDown' ? 1 : -1));
    else return;
    e.preventDefault();
  } else if (k >= '1' && k <= '7') { const s = $(PANELS[+k - 1]); s.focus(); s.scrollIntoView({ block: 'nearest' }); }
});
chart();
step(1);
current(0);
graph();
})();
