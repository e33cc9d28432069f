/** Files of the console: a style sheet, and a script that shows times in the viewer's zone. */
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { SECURITY_HEADERS } from "./html.tsx";

const STYLE = `
:root { color-scheme: light dark; --back: #fff; --panel: #f5f6f8; --text: #1b1f24; --dim: #59636e; --line: #d5dae0;
  --accent: #0b57d0; --good: #1a7f37; --bad: #b3261e; --warn: #8a5300; }
@media (prefers-color-scheme: dark) { :root { --back: #14171b; --panel: #1e2329; --text: #e7eaee; --dim: #a3adb8;
  --line: #363d46; --accent: #8ab4f8; --good: #6fcf87; --bad: #ff9a90; --warn: #f0b35a; } }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; background: var(--back); color: var(--text); }
header { display: flex; flex-wrap: wrap; gap: .5rem 1.25rem; align-items: baseline; padding: .75rem 1rem;
  border-bottom: 1px solid var(--line); background: var(--panel); }
header strong { font-size: 1.1rem; }
header nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; flex: 1; }
main { padding: 1rem; max-width: 75rem; margin: 0 auto; }
a { color: var(--accent); }
nav a[aria-current] { color: var(--text); font-weight: 600; text-decoration: none; }
h1 { font-size: 1.4rem; margin: .25rem 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 1.75rem 0 .5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; color: var(--dim); white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
pre { background: var(--panel); padding: .75rem; overflow-x: auto; border-radius: .4rem; }
.cards { display: grid; overflow-wrap: anywhere; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .75rem; margin: 0 0 1rem; }
.cards div { background: var(--panel); border-radius: .4rem; padding: .6rem .8rem; }
.cards dt { color: var(--dim); }
.cards dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); } .dim { color: var(--dim); }
form.fields { display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); gap: .75rem; align-items: end;
  margin: 0 0 1.25rem; }
main > nav { margin: 0 0 .75rem; }
form.inline { display: inline-flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin: 0 .75rem .5rem 0; }
label { display: grid; gap: .2rem; color: var(--dim); }
input, select, button { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line);
  border-radius: .3rem; padding: .35rem .6rem; min-width: 0; }
button { background: var(--accent); color: var(--back); border-color: var(--accent); cursor: pointer; }
button.danger { background: var(--bad); border-color: var(--bad); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.notice { border-left: 4px solid var(--accent); background: var(--panel); padding: .6rem .8rem; margin: 0 0 1rem; }
.notice.bad { border-color: var(--bad); color: inherit; }
svg.chart { width: 100%; height: auto; display: block; }
svg.chart rect { fill: var(--accent); }
svg.chart text { fill: var(--dim); font-size: 11px; }
meter { width: 8rem; }
`;

const SCRIPT = `
for (const time of document.querySelectorAll("time[datetime]")) {
  const date = new Date(time.dateTime);
  if (Number.isNaN(date.getTime())) continue;
  time.title = time.textContent;
  time.textContent = date.toLocaleString();
}
`;

const ASSETS: Readonly<Record<string, { type: string; text: string }>> = {
  "console.css": { type: "text/css; charset=utf-8", text: STYLE },
  "console.js": { type: "text/javascript; charset=utf-8", text: SCRIPT },
};

/** `GET /admin/console/assets/[name]`. @throws {GatewayError} `not_found` */
export function asset(_request: Request, { params: { name = "" } }: RouteContext): Response {
  const found = Object.hasOwn(ASSETS, name) ? ASSETS[name] : undefined;
  if (found === undefined) throw new GatewayError("not_found", "Cannot find this file of the console");
  return new Response(found.text, { headers: { ...SECURITY_HEADERS, "content-type": found.type } });
}
