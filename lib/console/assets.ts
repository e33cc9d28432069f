/** Serves the files of the console: the style sheet, the icon and the scripts. */
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { CHART_STYLE } from "./chart_style.ts";
import { SCRIPTS } from "./scripts.ts";
import { MARK, SECURITY_HEADERS } from "./html.tsx";
import { STYLE } from "./style.ts";

/**
 * The script of all pages, which shows times in the viewer's time zone, and ignores the second click on a button: only
 * the page after the first one has the secret of a new key, and a second rotation would end the present secret.
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
// A script that replaces a part of the page says so.
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
