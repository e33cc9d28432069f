/** The frame and headers of the console's pages, and the protection of its forms against other sites. */
import type { ComponentChildren, VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import { type ConsoleSession, isEqual } from "../access/console_session.ts";
import type { RequestTexts } from "../billing/reports/requests.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import { logFailure } from "../server/finish_response.ts";
import { type Addressed, hostOf } from "../server/head.ts";
import type { RouteContext } from "../server/router.ts";
import type { SCRIPTS } from "./scripts.ts";

/** Headers of every response. They forbid caching, framing, MIME sniffing, and loading anything from other origins. */
export const SECURITY_HEADERS = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
} as const;

/** Path of the console's first page. */
export const CONSOLE = "/admin/console";

/** Pages in the menu, by section: path below the console, and name. */
const MENU = [
  [["", "Overview"], ["/requests", "Requests"], ["/usage", "Usage"]],
  [["/playground", "Playground"], ["/connect", "Connect"]],
  [["/keys", "Keys"], ["/groups", "Groups"], ["/budgets", "Budgets"], ["/models", "Models"]],
  [["/node", "Nodes"], ["/configuration", "Configuration"], ["/changes", "Changes"]],
] as const;

/** The content of a page. */
export interface Page {
  title: string;
  /** Name in the menu that is marked as current; absent: the title. */
  section?: string;
  /** Scripts that the page needs in addition to the common one; absent: none. */
  scripts?: readonly (keyof typeof SCRIPTS)[];
  body: ComponentChildren;
  /** HTTP status; absent: 200. */
  status?: number;
  /** True if the page contains images as `data:` URLs; absent: no. */
  hasImages?: true;
}

/** Returns the response with a page in its frame. @param session absent: the page has no menu */
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

/** Shows the logo, a sluice gate in a stream. */
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

/** SVG path of the logo, in a square of 24 units. */
export const MARK = "M5 3v18M19 3v18M5 7h14M9 7v6M15 7v6M8 13h8M2 18q2.5-2 5 0t5 0 5 0 5 0";

/** Makes the hidden field that proves that a form comes from this console and this session. */
export function CsrfField({ session }: { session: ConsoleSession }): VNode {
  return <input type="hidden" name="csrf" value={session.csrf} />;
}

/** Returns the session of a request. @throws {TypeError} if the route does not require one */
function requireSession({ session }: Pick<RouteContext, "session">): ConsoleSession {
  if (session === undefined) throw new TypeError("Cannot show this page: its route requires no session");
  return session;
}

/**
 * Responds with a page, or with the response that `render` returns instead. An error becomes a page with its message.
 */
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
 * Runs the change that a form requests. A form that comes from another site, or from another session, is refused.
 * @param change makes the change and returns a page, the path to redirect to, or another response
 */
export async function runForm(
  request: Request,
  context: RouteContext,
  change: (fields: URLSearchParams, session: ConsoleSession) => Promise<Page | string | Response>,
): Promise<Response> {
  const session = requireSession(context);
  try {
    requireSameOrigin(request);
    const fields = await context.body.readForm();
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

/** Returns a CSV file that the browser saves. @param name name of the file without `.csv` */
export function csvResponse(text: string | ReadableStream<Uint8Array>, name: string): Response {
  return new Response(text, {
    headers: {
      ...SECURITY_HEADERS,
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": `attachment; filename="${name}.csv"`,
    },
  });
}

/** Returns the path of the list of requests with these filters. */
export function requestsPath(texts: RequestTexts): string {
  return `${CONSOLE}/requests?${new URLSearchParams(texts)}`;
}

/** Returns the path of the page of a key of the store. Others have no page, so it is the path of their requests. */
export function keyPath(id: string): string {
  return id.startsWith("key_") ? `${CONSOLE}/keys/${encodeURIComponent(id)}` : requestsPath({ key: id });
}

/** Returns the query of a request. */
export function queryOf({ url }: Pick<Request, "url">): URLSearchParams {
  return new URLSearchParams(url.includes("?") ? url.slice(url.indexOf("?")) : "");
}

/** Reads those parameters of the query that are in `names` and not empty, without spaces around them. */
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

/** Returns the response that redirects the browser to another page, which it loads with GET. */
export function redirectTo(path: string, headers: Record<string, string> = {}): Response {
  return new Response(null, { status: 303, headers: { ...SECURITY_HEADERS, location: path, ...headers } });
}

/** Requires that a form was sent by a page of the same origin. @throws {GatewayError} `forbidden` otherwise */
export function requireSameOrigin(request: Addressed): void {
  const { headers } = request;
  // This header is checked first, because a proxy may change `Host`.
  if (headers.get("sec-fetch-site") === "same-origin") return;
  const origin = URL.parse(headers.get("origin") ?? "");
  if (origin !== null && origin.host !== "" && origin.host === hostOf(request)) return;
  throw new GatewayError("forbidden", "Cannot accept this form: it was sent from another site");
}

/** Makes the page about an error. Details of internal errors are logged and not shown. */
function errorPage(thrown: unknown, { gateway, record, requestId }: RouteContext): Page {
  const error = toGatewayError(thrown);
  gateway.observer.failed(record, error);
  if (error.status >= 500) logFailure(error, { gateway, requestId });
  return {
    title: error.status === 404 ? "Not found" : "Cannot do this",
    status: error.status,
    body: (
      <>
        {error.message.split("\n").map((line) => <p class="notice bad" role="alert">{line}</p>)}
        <p>
          <a href={CONSOLE}>Overview</a>
        </p>
      </>
    ),
  };
}
