/** HTML pages for a browser at `/` and at unknown paths of the console. They show nothing secret. */
import { createHash } from "node:crypto";
import { hasConsole } from "./console_guard.ts";
import type { Exchange, ServerState } from "./exchange.ts";
import { hostOf } from "./head.ts";

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

/**
 * Returns the page for a request; `undefined` for other paths, and for clients that do not accept HTML, such as SDKs.
 */
export function startPage(
  exchange: Exchange,
  { path, surface }: { path: string; surface: ServerState["surface"] },
): Response | undefined {
  const { request: { method }, head } = exchange;
  const isBrowser = (head.get("accept") ?? "").includes("text/html");
  if (!isBrowser || method !== "GET" && method !== "HEAD") return undefined;
  const hasConsoleHere = surface !== "public" && hasConsole(exchange);
  if (hasConsoleHere && path.startsWith("/admin/console/")) return htmlPage("Not found", NO_SUCH_PAGE, 404);
  if (path !== "/") return undefined;
  const parts = [
    "<p>A gateway for language and image models: one address and one key for the models of many vendors.</p>",
    ...(surface === "admin" ? [] : [baseUrls(originOf(exchange))]),
    ...(hasConsoleHere ? ['<p>For operators: the <a href="/admin/console">console</a>.</p>'] : []),
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

/** Returns the origin that the browser requested, or `https://…` if it is not known. It needs no escaping in HTML. */
function originOf({ request, head, addressed }: Exchange): string {
  const host = hostOf(addressed);
  if (!/^[\w.-]+(?::\d+)?$|^\[[0-9a-f:.]+\](?::\d+)?$/i.test(host)) return "https://…";
  const isSecure = request.url.startsWith("https:") || head.get("x-forwarded-proto") === "https";
  return `${isSecure ? "https" : "http"}://${host}`;
}
