/** Serves the files of the console: the style sheet, the icon and the scripts. */
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { SCRIPTS } from "./scripts.ts";
import { MARK, SECURITY_HEADERS } from "./html.tsx";

/** Text of `console.css`. */
const STYLE = `
:root {
  color-scheme: light dark;
  --back: light-dark(#f6f7f9, #0f1317); --surface: light-dark(#fff, #171c22); --raised: light-dark(#f0f2f5, #202730);
  --text: light-dark(#161b22, #e6eaef); --dim: light-dark(#57606c, #a1acb8); --line: light-dark(#dfe3e8, #2c343e);
  --field: light-dark(#848e9a, #6b7683); --accent: light-dark(#0a5cb0, #7db8ff); --on-accent: light-dark(#fff, #0b1a2b);
  --good: light-dark(#14703a, #6fd08c); --bad: light-dark(#b3261e, #ff9c93); --warn: light-dark(#875200, #f2b75c);
  --shade: light-dark(#00000026, #000000a0); --radius: .5rem;
}
*, ::before, ::after { box-sizing: border-box; }
body { margin: 0; font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; color: var(--text);
  background: var(--back); }
h1, h2, h3 { line-height: 1.25; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0 0 1rem; letter-spacing: -.01em; }
h2 { font-size: 1.05rem; margin: 2rem 0 .6rem; }
h3 { font-size: .95rem; margin: 1.25rem 0 .4rem; }
p { margin: 0 0 .75rem; max-width: 75ch; }
ul, ol { padding-left: 1.4rem; }
a { color: var(--accent); text-underline-offset: .15em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: .2rem; }
code, pre, .mono { font: .92em/1.55 ui-monospace, "SF Mono", "Cascadia Mono", Consolas, monospace; }
pre { background: var(--raised); padding: .75rem 1rem; overflow-x: auto; border-radius: var(--radius); margin: 0 0 1rem; }
pre[tabindex] { max-height: 40rem; overflow: auto; }
.skip { position: absolute; left: -100vw; background: var(--surface); padding: .5rem 1rem; z-index: 1; }
.skip:focus { left: .5rem; top: .5rem; }

/* Frame: a column beside the page, a bar above it on narrow screens. */
body:has(> header nav) { display: grid; grid-template-columns: 13rem minmax(0, 1fr); min-height: 100vh;
  background: linear-gradient(to right, var(--surface) calc(13rem - 1px), var(--line) calc(13rem - 1px) 13rem, var(--back) 13rem); }
body > header { background: var(--surface); padding: 1.25rem .75rem; margin-right: 1px;
  display: flex; flex-direction: column; gap: 1rem; position: sticky; top: 0; max-height: 100vh; overflow-y: auto; }
header .brand { font-size: 1.15rem; font-weight: 700; letter-spacing: -.01em; padding: 0 .6rem; color: inherit;
  text-decoration: none; display: flex; gap: .5rem; align-items: center; }
header .brand svg { width: 1.4rem; height: 1.4rem; color: var(--accent); flex: none; }
header nav { flex: 1; display: flex; flex-direction: column; gap: 1rem; }
header nav ul { list-style: none; margin: 0; padding: 0; display: flex; flex-direction: column; gap: 1px; }
header nav a { display: block; padding: .35rem .6rem; border-radius: .35rem; color: var(--text); text-decoration: none; }
header nav a:hover { background: var(--raised); }
header nav a[aria-current] { background: var(--raised); font-weight: 600; color: var(--accent); }
header form, header .role { margin: 0 .6rem; }
header .role { font-size: .85rem; }
main { overflow-wrap: anywhere; padding: 1.5rem 2rem 3rem; max-width: 84rem; width: 100%; margin: 0 auto; }
main > nav { margin: 0 1.25rem 1rem 0; display: inline-flex; flex-wrap: wrap; gap: .3rem; }
main > nav a { padding: .2rem .6rem; border: 1px solid var(--line); border-radius: 1rem; text-decoration: none;
  background: var(--surface); }
main > nav a[aria-current] { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }

/* Pages without a menu: signing in. */
body:not(:has(> header nav)) > header { background: none; padding: 1.5rem 1rem 0; }
body:not(:has(> header nav)) > :is(header, main) { max-width: 30rem; margin: 0 auto; }
body:not(:has(> header nav)) > header .brand { padding: 0 .25rem; }
body:not(:has(> header nav)) > main { padding: 1.25rem; }
body:not(:has(> header nav)) form.fields { grid-template-columns: 1fr; }

/* Tables scroll inside themselves. */
.scroll { overflow-x: auto; overflow-wrap: normal;
  /* A shadow at each end that has more. */
  background: linear-gradient(to right, var(--surface) 40%, transparent) local left,
    linear-gradient(to left, var(--surface) 40%, transparent) local right,
    linear-gradient(to right, var(--shade), transparent) left, linear-gradient(to left, var(--shade), transparent) right;
  background-color: var(--surface); background-repeat: no-repeat;
  background-size: 2.5rem 100%, 2.5rem 100%, .8rem 100%, .8rem 100%; border: 1px solid var(--line); border-radius: var(--radius);
  margin: 0 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .45rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:last-child > * { border-bottom: 0; }
tbody tr:hover { background: var(--raised); }
thead th { font-weight: 600; font-size: .85rem; color: var(--dim); white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td { white-space: nowrap; }
td.long, td:has(> .wrap) { white-space: normal; min-width: 14rem; overflow-wrap: anywhere; }
td form { margin: 0; }
td button { height: 1.6rem; padding: 0 .5rem; }
tr.total > * { font-weight: 600; border-top: 1px solid var(--field); }
details { margin: 0 0 1rem; }
details > summary { padding: .2rem 0; }
.empty { color: var(--dim); border: 1px dashed var(--line); border-radius: var(--radius); padding: 1rem; margin: 0 0 1rem;
  max-width: none; }

/* Figures with their names. */
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .75rem; margin: 0 0 1.25rem; }
.cards div { background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius);
  padding: .65rem .9rem; min-width: 0; }
.cards dt { color: var(--dim); font-size: .8rem; }
.cards dd { margin: .1rem 0 0; font-size: 1.15rem; font-weight: 600; font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere; }
.cards dd a { color: inherit; text-decoration-color: var(--line); }
.cards dd time, .cards dd .state { font-size: 1rem; font-weight: 500; }

.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); } .dim { color: var(--dim); }
.state::before { content: ""; display: inline-block; width: .55em; height: .55em; border-radius: 50%;
  background: currentColor; margin-right: .45em; }
.notice { border: 1px solid var(--line); border-left: 4px solid var(--accent); background: var(--surface);
  border-radius: var(--radius); padding: .7rem 1rem; margin: 0 0 1rem; max-width: none; color: var(--text); }
.notice.bad { border-left-color: var(--bad); } .notice.warn { border-left-color: var(--warn); }
.notice > :last-child { margin-bottom: 0; }

/* Forms. */
form.fields, div.fields { display: grid; grid-template-columns: repeat(auto-fill, minmax(11.5rem, 1fr)); gap: .75rem; align-items: end;
  margin: 0 0 1.25rem; }
form.fields > details, form.fields > .links { grid-column: 1 / -1; }
form.fields > details { margin: 0; }
form.fields > details > div { margin: .6rem 0 0; }
form.fields > .links { margin: 0; display: flex; gap: 1rem; }
textarea { width: 100%; resize: vertical; }
form.inline { vertical-align: bottom; display: inline-flex; flex-wrap: wrap; gap: .5rem; align-items: end; margin: 0 1.25rem .75rem 0; }
fieldset { border: 1px solid var(--line); border-radius: var(--radius); margin: 0 0 1rem; padding: .75rem 1rem; min-width: 0; }
label { display: grid; gap: .2rem; color: var(--dim); font-size: .9rem; min-width: 0; overflow-wrap: anywhere; }
input, select, textarea, button { font: inherit; font-size: 14px; color: var(--text); background: var(--surface);
  border: 1px solid var(--field); border-radius: .35rem; padding: .35rem .6rem; min-width: 0; height: 2.25rem; }
textarea { height: auto; }
::placeholder { color: var(--dim); opacity: .85; }
input[type="checkbox"], input[type="radio"] { width: 1rem; height: 1rem; accent-color: var(--accent); }
label:has(> input[type="checkbox"]), label:has(> input[type="radio"]) { display: flex; gap: .5rem; align-items: center; }
button, a.button { background: var(--accent); color: var(--on-accent); border-color: var(--accent); font-weight: 600;
  cursor: pointer; }
a.button { display: inline-block; padding: .35rem .75rem; border-radius: .35rem; text-decoration: none; }
button:hover, a.button:hover { filter: brightness(1.08); }
button.quiet, a.quiet { background: transparent; color: var(--text); border: 1px solid var(--field); font-weight: 500; }
button.danger { background: var(--bad); border-color: var(--bad); }
summary { cursor: pointer; color: var(--accent); }
meter { width: 6rem; height: .8rem; vertical-align: middle; }
ul.plain { list-style: none; margin: 0; padding: 0; overflow-wrap: anywhere; }

@media (max-width: 56rem) {
  body:has(> header nav) { display: block; background: var(--back); }
  body > header { flex-flow: row wrap; align-items: center; justify-content: space-between; gap: .5rem; padding: .6rem .75rem 0;
    margin: 0; border-bottom: 1px solid var(--line); position: static; max-height: none; }
  header nav { order: 1; flex: 1 0 100%; flex-direction: row; gap: 0; overflow-x: auto; margin: 0 -.75rem; padding: 0 .75rem; }
  header nav ul { flex-direction: row; }
  header nav a { white-space: nowrap; border-radius: 0; border-bottom: 2px solid transparent; padding: .45rem .6rem; }
  header nav a[aria-current] { background: none; border-bottom-color: var(--accent); }
  header form, header .role { margin: 0; }
  main { padding: 1rem .75rem 2rem; }
  .cards { grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); gap: .5rem; }
  form.fields, div.fields { grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: .5rem .6rem; }
}
@media print { body > header, form, main > nav { display: none !important; } body { background: none; } }
`;

/** The styles. Each part of a chart has a contrast of at least 3:1 to the background (WCAG 2.2, 1.4.11). */
const CHART_STYLE = `
.charts > figure { margin: 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; margin: 0 0 1rem; }
figure { margin: 0 0 1rem; min-width: 0; background: var(--surface); border: 1px solid var(--line); padding: .6rem .9rem;
  border-radius: var(--radius); }
figcaption { font-weight: 600; font-size: .9rem; }
main > figure { max-width: 48rem; }
svg.chart { width: 100%; height: auto; display: block; max-width: 45rem; overflow: visible; }
svg.chart line { stroke: var(--line); }
svg.chart text { fill: var(--dim); font-size: 11px; }
@media (max-width: 30rem) { svg.chart text { font-size: 15px; } }
svg.chart path.part { fill: var(--part); }
svg.chart path.line { fill: none; stroke: var(--part); stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
svg.chart rect.target { fill: transparent; }
svg.chart rect.target:hover { fill: var(--text); fill-opacity: .12; }
svg.timeline { max-width: none; min-width: 44rem; }
.timeline-frame { overflow-x: auto; padding-top: .5rem; margin: 0 0 .75rem; }
svg.timeline rect.wait { fill: light-dark(#6e7781, #8b949e); } svg.timeline rect.answer { fill: var(--good); }
svg.timeline rect.failure { fill: var(--bad); }
tr.new { animation: new 2s; }
@keyframes new { from { background: light-dark(#fff3c4, #4a3f12); } }
button[aria-pressed="true"]::before { content: "● "; color: var(--bad); }
.copyable button { height: auto; padding: .05rem .5rem; font-size: .8rem; }
div.copyable { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: .5rem; align-items: start; margin: 0 0 1rem; }
div.copyable pre { margin: 0; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
.sides section { min-width: 0; } .sides img { max-width: 100%; border-radius: var(--radius); }
.answer { white-space: pre-wrap; overflow-wrap: anywhere; min-height: 3rem; }
#playground label { margin-bottom: .6rem; } #playground textarea { width: 100%; resize: vertical; }
#playground .fields { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: 0 .75rem; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 0 0 .75rem; padding: 0; font-size: .9rem; }
.legend li { overflow-wrap: anywhere; }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: .15em; background: var(--part); }
.p0, .p50 { --part: light-dark(#0b57d0, #8ab4f8); } .p1, .p95 { --part: light-dark(#b35900, #f0b35a); }
.p2 { --part: light-dark(#1a7f37, #6fcf87); } .p3 { --part: light-dark(#8250df, #c9a0ff); }
.p4 { --part: light-dark(#b3261e, #ff9a90); } .p5 { --part: light-dark(#00706b, #5fd3c4); }
.p6 { --part: light-dark(#7d5a3c, #d2b48c); } .others { --part: light-dark(#6e7781, #8b949e); }
`;

/**
 * The script of all pages. It shows times in the viewer's time zone, and ignores a second click on a button: only the
 * answer to the first click shows the secret of a new key, and a second rotation would invalidate the current secret.
 */
const COMMON_SCRIPT = `
const thisYear = new Date().getFullYear();
let sentAt = -Infinity;
show();
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method !== "post") return;
  if (performance.now() - sentAt < 2000) event.preventDefault();
  else sentAt = performance.now();
});
// Scripts that replace a part of the page dispatch this event.
document.addEventListener("shown", show);
function show() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    const year = date.getFullYear() === thisYear ? {} : { year: "numeric" };
    const seconds = time.dataset.seconds === undefined ? {} : { second: "2-digit" };
    time.title = time.dateTime.slice(0, 19).replace("T", " ") + " UTC";
    time.textContent = date.toLocaleString([], {
      ...year, month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", ...seconds,
    });
  }
  for (const label of document.querySelectorAll("text[data-time]")) {
    label.textContent = new Date(label.dataset.time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  }
}
`;

const ICON =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#2f81f7" stroke-width="2" \
stroke-linecap="round"><path d="${MARK}"/></svg>`;

const ASSETS: Readonly<Record<string, { type: string; text: string }>> = {
  "console.css": { type: "text/css; charset=utf-8", text: STYLE + CHART_STYLE },
  ...Object.fromEntries(
    Object.entries(SCRIPTS).map(([name, text]) => [name, { type: "text/javascript; charset=utf-8", text }]),
  ),
  "console.js": { type: "text/javascript; charset=utf-8", text: COMMON_SCRIPT },
  "icon.svg": { type: "image/svg+xml", text: ICON },
};

/** `GET /admin/console/assets/[name]`. @throws {GatewayError} `not_found` for an unknown name */
export function asset(_request: Request, { params: { name = "" } }: RouteContext): Response {
  const file = Object.hasOwn(ASSETS, name) ? ASSETS[name] : undefined;
  if (file === undefined) throw new GatewayError("not_found", "Cannot find this file of the console");
  return new Response(file.text, { headers: { ...SECURITY_HEADERS, "content-type": file.type } });
}
