/** A real server with a few routes of its own, and a client that writes requests byte by byte. */
import { Buffer } from "node:buffer";
import type { LogEntry } from "../../lib/log_events.ts";
import { issueKey } from "../../lib/access/keys.ts";
import type { AccessTable } from "../../lib/access/access_table.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { GatewayError } from "../../lib/errors.ts";
import { createGateway, type Gateway } from "../../lib/gateway.ts";
import { createApp } from "../../lib/server/app.ts";
import type { BodyLimits } from "../../lib/server/body.ts";
import { jsonWithEtag } from "../../lib/server/json_response.ts";
import type { Route } from "../../lib/server/router.ts";
import { type Json, writeJson } from "../../lib/json/mod.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";

/** Limits that a test can reach. */
export const TEST_LIMITS: BodyLimits = {
  jsonBytes: 100_000,
  budgetBytes: 420_000,
  gapMs: 20_000,
  graceMs: 20_000,
  minBytesPerSecond: 1000,
  totalMs: 60_000,
};

/** Recorded events beside the answers. */
export interface Observed {
  logs: LogEntry[];
  /** Reasons with which endless bodies were cancelled. */
  cancelled: unknown[];
}

/** A minimal gateway with two keys: one with all permissions, one that may only list models. */
export function testGateway(
  file: Json,
  log: (entry: LogEntry) => void,
): { gateway: Gateway; key: string; poorKey: string } {
  const config = parseConfig(file);
  const store = openMemoryStore();
  const keys = ["default", "poor"].map((group) => {
    const { key, record } = issueKey({ name: group, group, now: 0 });
    void store.keys.add(record);
    return key;
  });
  const gateway = createGateway({ config, store, now: () => 0, random: () => 0, log });
  return { gateway, key: keys[0] ?? "", poorKey: keys[1] ?? "" };
}

function testRoutes(observed: Observed): Route[] {
  const echo: Route["handlers"] = {
    async POST(_request, context) {
      const { value: body } = await context.readJson();
      return new Response(writeJson({ body, again: (await context.readJson()).value === body }));
    },
  };
  return [
    { path: "/public", handlers: { GET: () => Response.json({ public: true }) } },
    { path: "/v1/things", handlers: { GET: (request) => jsonWithEtag(request, { things: [1, 2] }) } },
    {
      path: "/v1/things/[vendor]",
      handlers: {
        GET: (_request, { params }) => Response.json(params),
        DELETE: () => new Response(null, { status: 204 }),
      },
    },
    { path: "/v1/things/[vendor]/[name]", handlers: { GET: (_request, { params }) => Response.json(params) } },
    { path: "/v1/things/fixed", handlers: { GET: () => Response.json({ fixed: true }) } },
    { path: "/v1/echo", handlers: echo },
    { path: "/anthropic/v1/echo", handlers: echo },
    {
      path: "/v1/fail",
      handlers: {
        GET: () => Promise.reject(new TypeError("the prompt was: secret")),
        POST: () => {
          throw new GatewayError("limited", "Cannot go on", { retryAfterMs: 1500 });
        },
      },
    },
    {
      path: "/v1/endless",
      handlers: {
        GET: () =>
          new Response(
            new ReadableStream({
              pull: (controller) => controller.enqueue(new Uint8Array(1024)),
              cancel: (reason) => void observed.cancelled.push(reason),
            }),
          ),
      },
    },
    {
      path: "/v1/wait",
      handlers: {
        GET: (request) =>
          new Promise((_resolve, reject) => {
            request.signal.addEventListener("abort", () => reject(request.signal.reason), { once: true });
            observed.logs.push({ level: "info", event: "stopping" });
          }),
      },
    },
  ];
}

const ACCESS: AccessTable = {
  "GET /public": { credential: "none" },
  "GET /v1/things": { credential: "bearer", endpoint: "models" },
  "GET /v1/things/[vendor]": { credential: "none" },
  "DELETE /v1/things/[vendor]": { credential: "bearer", endpoint: "chat" },
  "GET /v1/things/[vendor]/[name]": { credential: "none" },
  "GET /v1/things/fixed": { credential: "none" },
  "POST /v1/echo": { credential: "none" },
  "POST /anthropic/v1/echo": { credential: "none" },
  "GET /v1/fail": { credential: "none" },
  "POST /v1/fail": { credential: "api_key", endpoint: "messages" },
  "GET /v1/endless": { credential: "none" },
  "GET /v1/wait": { credential: "none" },
};

/** A running server. */
export interface TestServer extends AsyncDisposable {
  port: number;
  key: string;
  /** May use `models` only. */
  poorKey: string;
  observed: Observed;
}

/** Starts the app on a free port. */
export function startServer(
  { file = {}, limits = TEST_LIMITS }: { file?: Json; limits?: BodyLimits } = {},
): TestServer {
  const observed: Observed = { logs: [], cancelled: [] };
  const whole = { groups: { poor: { endpoints: ["models"] } }, ...file as Record<string, Json> };
  const { gateway, key, poorKey } = testGateway(whole, (entry) => {
    // Every request has a line when it is over.
    if (entry.event !== "request") observed.logs.push(entry);
  });
  const app = createApp({ routes: testRoutes(observed), access: ACCESS, gateway: () => gateway, limits });
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, app);
  return { port: server.addr.port, key, poorKey, observed, [Symbol.asyncDispose]: () => server.shutdown() };
}

/** Longest silence of the server before the test fails, in milliseconds. */
const PATIENCE_MS = 20_000;

/** A response as it came over the wire. */
export interface RawResponse {
  /** 0 without an answer. */
  status: number;
  headers: Headers;
  body: string;
}

/** Writes the pieces of a request and reads until the response is complete or the server closes. */
export async function exchange(
  port: number,
  pieces: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
  { patienceMs = PATIENCE_MS }: { patienceMs?: number } = {},
): Promise<RawResponse> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const timer = setTimeout(() => connection.close(), patienceMs);
  let answered = false;
  const reading = readResponse(connection).finally(() => answered = true);
  try {
    for await (const piece of pieces) {
      if (answered) break;
      await writeAll(
        connection,
        typeof piece === "string" ? Buffer.from(piece, "latin1") : piece,
      );
    }
  } catch {
    // The server has closed already; its answer is being read.
  }
  try {
    return await reading;
  } finally {
    clearTimeout(timer);
  }
}

async function writeAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
}

/** The text has one character per byte until the response is complete, so that lengths agree. */
async function readResponse(connection: Deno.Conn): Promise<RawResponse> {
  const buffer = new Uint8Array(65536);
  let text = "";
  while (true) {
    const size = await connection.read(buffer).catch(() => null);
    if (size !== null) text += Buffer.from(buffer.subarray(0, size)).toString("latin1");
    const response = parseResponse(text);
    if (response !== undefined && (size === null || isComplete(response))) {
      return {
        ...response,
        body: new TextDecoder().decode(Buffer.from(response.body, "latin1")),
      };
    }
    if (size === null) return { status: 0, headers: new Headers(), body: "" };
  }
}

/** Interim answers, such as 100, before the final one. */
const INTERIM = /^(?:HTTP\/1\.1 1\d\d [^\r]*\r\n(?:[^\r\n]+\r\n)*\r\n)+/;

function parseResponse(received: string): RawResponse | undefined {
  const text = received.replace(INTERIM, "");
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [start = "", ...lines] = text.slice(0, end).split("\r\n");
  const headers = new Headers(lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  }));
  return { status: Number(start.split(" ")[1]), headers, body: text.slice(end + 4) };
}

function isComplete({ status, headers, body }: RawResponse): boolean {
  if (headers.get("transfer-encoding") === "chunked") return /(^|\r\n)0\r\n\r\n$/.test(body.slice(-7));
  const length = headers.get("content-length");
  return length === null ? status === 204 || status === 304 : body.length >= Number(length);
}

/** A request's head with these headers, and a default `Host`. */
export function head(start: string, headers: Record<string, string> = {}): string {
  const all = { host: "localhost", ...headers };
  return `${start} HTTP/1.1\r\n${Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
}

/** A POST with a body and its length. */
export function post(path: string, body: string, headers: Record<string, string> = {}): string {
  return head(`POST ${path}`, { "content-length": String(body.length), ...headers }) + body;
}
