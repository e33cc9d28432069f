/** Pages of the console: their frame, their headers, and forms that only this console can send. */
import type { ComponentChildren, VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import { type ConsoleSession, isEqual } from "../access/console_session.ts";
import type { RequestTexts } from "../billing/reports/requests.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import { logFailure } from "../server/finish_response.ts";
import type { RouteContext } from "../server/router.ts";
import type { SCRIPTS } from "./scripts.ts";

/** Headers of every answer: nothing is cached, framed, guessed or loaded from elsewhere. */
export const SECURITY_HEADERS = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
} as const;

/** Path of the console. */
export const CONSOLE = "/admin/console";

/** Pages in the menu, in sections. */
const MENU = [
  [["", "Overview"], ["/requests", "Requests"], ["/usage", "Usage"]],
  [["/playground", "Playground"], ["/connect", "Connect"]],
  [["/keys", "Keys"], ["/groups", "Groups"], ["/budgets", "Budgets"], ["/models", "Models"]],
  [["/node", "Nodes"], ["/configuration", "Configuration"], ["/changes", "Changes"]],
] as const;

/** A page before it is framed. */
export interface Page {
  title: string;
  /** Name of the menu's page that it belongs to; absent: the title. */
  section?: string;
  /** Scripts that it needs beside the console's own. */
  scripts?: readonly (keyof typeof SCRIPTS)[];
  body: ComponentChildren;
  status?: number;
  /** True: it shows images whose data is in the page. */
  hasImages?: true;
}

/** Frames a page and makes its response. @param session absent: the page is shown without a menu */
export function htmlResponse(page: Page, session?: ConsoleSession): Response {
  const text = `<!doctype html>${renderToString(<Frame page={page} session={session} />)}`;
  const headers = new Headers({ ...SECURITY_HEADERS, "content-type": "text/html; charset=utf-8" });
  if (page.hasImages === true) {
    const policy = SECURITY_HEADERS["content-security-policy"];
    headers.set("content-security-policy", policy.replace("img-src 'self'", "img-src 'self' data:"));
  }
  return new Response(text, { status: page.status ?? 200, headers });
}

function Frame(
  { page: { title, section = title, scripts = [], body }, session }: {
    page: Page;
    session: ConsoleSession | undefined;
  },
): VNode {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>{`${title} – Sluice`}</title>
        <link rel="icon" href={`${CONSOLE}/assets/icon.svg`} />
        <link rel="stylesheet" href={`${CONSOLE}/assets/console.css`} />
        <script src={`${CONSOLE}/assets/console.js`} defer />
        {scripts.map((name) => <script type="module" src={`${CONSOLE}/assets/${name}`} />)}
      </head>
      <body>
        <a class="skip" href="#main">Skip to the page</a>
        <header>
          <a class="brand" href={CONSOLE}>
            <Mark /> Sluice
          </a>
          {session !== undefined && <Menu section={section} session={session} />}
        </header>
        <main id="main">
          <h1>{title}</h1>
          {body}
        </main>
      </body>
    </html>
  );
}

function Menu({ section, session }: { section: string; session: ConsoleSession }): VNode {
  return (
    <>
      <nav aria-label="Pages">
        {MENU.map((pages) => (
          <ul>
            {pages.map(([path, name]) => (
              <li>
                <a href={CONSOLE + path} aria-current={name === section ? "page" : undefined}>{name}</a>
              </li>
            ))}
          </ul>
        ))}
      </nav>
      {session.role === "viewer" && <span class="role dim">read only</span>}
      <form method="post" action={`${CONSOLE}/sign-out`}>
        <CsrfField session={session} />
        <button type="submit" class="quiet">Sign out</button>
      </form>
    </>
  );
}

/** A gate in a stream. */
function Mark(): VNode {
  return (
    <svg
      viewBox="0 0 24 24"
      aria-hidden="true"
      fill="none"
      stroke="currentColor"
      stroke-width="2"
      stroke-linecap="round"
    >
      <path d={MARK} />
    </svg>
  );
}

/** Outline of the mark, in a square of 24. */
export const MARK = "M5 3v18M19 3v18M5 7h14M9 7v6M15 7v6M8 13h8M2 18q2.5-2 5 0t5 0 5 0 5 0";

/** The hidden field that proves that a form is from this console and this session. */
export function CsrfField({ session }: { session: ConsoleSession }): VNode {
  return <input type="hidden" name="csrf" value={session.csrf} />;
}

/** The session of a page. @throws {TypeError} on a route without one */
function requireSession({ session }: Pick<RouteContext, "session">): ConsoleSession {
  if (session === undefined) throw new TypeError("Cannot show this page: its route requires no session");
  return session;
}

/** Answers with a page, or with a file in its place; a known error becomes a page with its message. */
export async function showPage(
  context: RouteContext,
  render: (session: ConsoleSession) => Page | Response | Promise<Page | Response>,
): Promise<Response> {
  const session = requireSession(context);
  try {
    const page = await render(session);
    return page instanceof Response ? page : htmlResponse(page, session);
  } catch (thrown) {
    return htmlResponse(errorPage(thrown, context), session);
  }
}

/**
 * Runs the change that a form asks for. A form that another site has sent is refused.
 * @param change returns a page, the path to go on with, or another response
 */
export async function runForm(
  request: Request,
  context: RouteContext,
  change: (fields: URLSearchParams, session: ConsoleSession) => Promise<Page | string | Response>,
): Promise<Response> {
  const session = requireSession(context);
  try {
    requireSameOrigin(request);
    const fields = await context.readForm();
    if (!isEqual(fields.get("csrf") ?? "", session.csrf)) {
      throw new GatewayError(
        "forbidden",
        "This form is out of date: go back, load the page again and repeat the change",
      );
    }
    const next = await change(fields, session);
    if (next instanceof Response) return next;
    return typeof next === "string" ? redirectTo(next) : htmlResponse(next, session);
  } catch (thrown) {
    return htmlResponse(errorPage(thrown, context), session);
  }
}

/** A file of rows that the browser saves. @param name without its ending */
export function csvResponse(text: string | ReadableStream<Uint8Array>, name: string): Response {
  return new Response(text, {
    headers: {
      ...SECURITY_HEADERS,
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": `attachment; filename="${name}.csv"`,
    },
  });
}

/** Path of the list of requests with these filters. */
export function requestsPath(texts: RequestTexts): string {
  return `${CONSOLE}/requests?${new URLSearchParams(texts)}`;
}

/** Path of the page of a key; keys of the configuration have none, but requests. */
export function keyPath(id: string): string {
  return id.startsWith("config:") ? requestsPath({ key: id }) : `${CONSOLE}/keys/${encodeURIComponent(id)}`;
}

/** The query of a request. */
export function queryOf({ url }: Pick<Request, "url">): URLSearchParams {
  return new URLSearchParams(url.includes("?") ? url.slice(url.indexOf("?")) : "");
}

/** Reads the non-empty parameters of the query that have these names. */
export function readTexts<Name extends string>(
  request: Pick<Request, "url">,
  names: readonly Name[],
): Partial<Record<Name, string>> {
  const query = queryOf(request);
  const texts: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const value = query.get(name)?.trim() ?? "";
    if (value !== "") texts[name] = value;
  }
  return texts;
}

/** Sends the browser to another page, which it loads with GET. */
export function redirectTo(path: string, headers: Record<string, string> = {}): Response {
  return new Response(null, { status: 303, headers: { ...SECURITY_HEADERS, location: path, ...headers } });
}

/** @throws {GatewayError} `forbidden` for a form that a page of another origin sends */
export function requireSameOrigin({ headers }: Pick<Request, "headers">): void {
  // A proxy may change the Host header, but a browser's own statement about the sending page passes.
  if (headers.get("sec-fetch-site") === "same-origin") return;
  const origin = headers.get("origin");
  const host = headers.get("host");
  if (origin !== null && host !== null && URL.canParse(origin) && new URL(origin).host === host) return;
  throw new GatewayError("forbidden", "Cannot accept this form: it was sent from another site");
}

/** A page about an error. Internal errors are logged and not shown. */
function errorPage(thrown: unknown, { gateway, record, requestId }: RouteContext): Page {
  const error = toGatewayError(thrown);
  gateway.observer.failed(record, error);
  if (error.status >= 500) logFailure(error, { gateway, requestId });
  return {
    title: error.status === 404 ? "Not found" : "Cannot do this",
    status: error.status,
    body: (
      <>
        <p class="notice bad" role="alert">{error.message}</p>
        <p>
          <a href={CONSOLE}>Overview</a>
        </p>
      </>
    ),
  };
}
