/** Pages for a browser: the gateway's address, and unknown paths of the console. They hold nothing that strangers may not know. */
import { createHash } from "node:crypto";
import { hasConsole } from "./console_guard.ts";
import type { Exchange, ServerState } from "./exchange.ts";

const STYLE = "body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;" +
  "color-scheme:light dark}code{overflow-wrap:anywhere}";

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy": `default-src 'none'; style-src 'sha256-${
    createHash("sha256").update(STYLE).digest("base64")
  }'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

const NO_SUCH_PAGE = ['<p>The console has no such page. Go to its <a href="/admin/console">overview</a>.</p>'];

/** The page; `undefined` for another path, and for a client that does not ask for a page, such as an SDK. */
export function startPage(
  exchange: Exchange,
  { path, surface }: { path: string; surface: ServerState["surface"] },
): Response | undefined {
  const { request: { method }, head } = exchange;
  const isBrowser = (head.get("accept") ?? "").includes("text/html");
  if (!isBrowser || method !== "GET" && method !== "HEAD") return undefined;
  const isConsoleHere = surface !== "public" && hasConsole(exchange);
  if (isConsoleHere && path.startsWith("/admin/console/")) return htmlPage("Not found", NO_SUCH_PAGE, 404);
  if (path !== "/") return undefined;
  const parts = [
    "<p>A gateway for language and image models: one address and one key for the models of many vendors.</p>",
    ...(surface === "admin" ? [] : [baseUrls(originOf(exchange))]),
    ...(isConsoleHere ? ['<p>For operators: the <a href="/admin/console">console</a>.</p>'] : []),
    "<p>The documentation is in the folder <code>docs</code> of the source.</p>",
  ];
  return htmlPage("Sluice", parts);
}

function htmlPage(title: string, parts: readonly string[], status = 200): Response {
  const text = '<!doctype html><html lang="en"><head><meta charset="utf-8">' +
    `<meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title>` +
    `<style>${STYLE}</style></head><body><main><h1>${title}</h1>${parts.join("")}</main></body></html>`;
  return new Response(text, { status, headers: HEADERS });
}

function baseUrls(origin: string): string {
  return "<p>Base URLs; every request needs an API key:</p><ul>" +
    `<li>OpenAI's SDKs and compatible clients: <code>${origin}/v1</code></li>` +
    `<li>Anthropic's SDKs and Claude Code: <code>${origin}/anthropic</code></li>` +
    `<li>Google's SDKs and Gemini CLI: <code>${origin}</code></li></ul>`;
}

/** The origin that the browser asked for, as far as it can be known. The text holds nothing that HTML gives a meaning. */
function originOf({ request, head }: Exchange): string {
  const host = head.get("host") ?? "";
  if (!/^[\w.-]+(?::\d+)?$|^\[[0-9a-f:.]+\](?::\d+)?$/i.test(host)) return "https://…";
  const isSecure = request.url.startsWith("https:") || head.get("x-forwarded-proto") === "https";
  return `${isSecure ? "https" : "http"}://${host}`;
}
