/** A gateway with one fault: a proxy that changes one thing in the answers it passes on. */
import { isObject, type JsonObject } from "../../lib/json/mod.ts";
import { READY } from "../../lib/conform/prompts.ts";

/** A request and its answer on the way through. */
export interface ProxiedAnswer {
  method: string;
  path: string;
  sent: Headers;
  /** Body of the request; `{}` without one. Gemini's model and streaming mode are members of it. */
  request: JsonObject;
  status: number;
  headers: Headers;
  text: string;
}

/** Breaks an answer, in place. */
export type Break = (passing: ProxiedAnswer) => void;

/** A running proxy. */
export interface FaultyProxy extends AsyncDisposable {
  url: string;
}

/** Answers of the gateway by request, in the order in which the request was sent again. */
export type Recorded = Map<string, Pick<ProxiedAnswer, "status" | "headers" | "text">[]>;

/**
 * Starts a proxy in front of a gateway. `recorded` holds answers that the gateway gave through other proxies: it gives
 * the same answers to the same requests in the same order, so each is fetched once.
 */
export function startFaultyProxy(origin: string, breaks: Break, recorded: Recorded = new Map()): FaultyProxy {
  const counts = new Map<string, number>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const path = request.url.slice(request.url.indexOf("/", 8));
    const { method } = request;
    const headers = new Headers(request.headers);
    headers.delete("host");
    // A large body is recognized by its length, and read only by the gateway.
    const isLarge = Number(headers.get("content-length")) > 100_000;
    let body = isLarge ? undefined : await request.bytes();
    const key = JSON.stringify([method, path, [...headers], body && new TextDecoder("latin1").decode(body)]);
    headers.delete("content-length");
    const times = counts.get(key) ?? 0;
    counts.set(key, times + 1);
    const answers = recorded.get(key) ?? [];
    recorded.set(key, answers);
    if (answers[times] === undefined) {
      body ??= await request.bytes();
      const response = await fetch(origin + path, { method, headers, ...(body.length > 0 && { body }) });
      answers[times] = { status: response.status, headers: response.headers, text: await response.text() };
    }
    const response = answers[times];
    const passing: ProxiedAnswer = {
      method,
      path,
      sent: request.headers,
      request: isLarge ? {} : { ...read(new TextDecoder().decode(body)), ...readPath(path) },
      status: response.status,
      headers: new Headers(response.headers),
      text: response.text,
    };
    passing.headers.delete("content-length");
    breaks(passing);
    return new Response(passing.text === "" ? null : passing.text, passing);
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

function read(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** Members of a request that Gemini's protocol has in the path; `{}` for a stream as a JSON array. */
function readPath(path: string): JsonObject {
  const [, model, method] = /^\/v1beta\/models\/([^:?]+):(generateContent|streamGenerateContent\?alt=sse)/.exec(path) ??
    [];
  return model === undefined ? {} : { model, ...(method !== "generateContent" && { stream: true }) };
}

/** Only the suite's plain question, whole or streamed. */
export function isPlain({ request, status }: ProxiedAnswer): boolean {
  const members = ["model", "messages", "contents", "input", "store", "max_tokens", "stream", "stream_options"];
  return status === 200 && JSON.stringify(request).includes(READY) &&
    Object.keys(request).every((name) => members.includes(name)) &&
    JSON.stringify(request).length < 300 && request.model !== undefined;
}

/** Breaks the plain whole answer as JSON. */
export function whole(change: (body: Record<string, unknown>) => unknown): Break {
  return (passing) => {
    if (!isPlain(passing) || passing.request.stream === true) return;
    const body = JSON.parse(passing.text);
    change(body);
    passing.text = JSON.stringify(body);
  };
}

/** Breaks the events of the plain stream, each with its lines. */
export function events(change: (events: string[]) => string[]): Break {
  return (passing) => {
    if (!isPlain(passing) || passing.request.stream !== true) return;
    passing.text = change(blocks(passing.text)).map((event) => `${event}\n\n`).join("");
  };
}

/** Breaks the events of every stream with tools. */
export function toolEvents(change: (events: string[]) => string[]): Break {
  return (passing) => {
    if (passing.status !== 200 || passing.request.tools === undefined || passing.request.stream !== true) return;
    passing.text = change(blocks(passing.text)).map((event) => `${event}\n\n`).join("");
  };
}

function blocks(text: string): string[] {
  return text.split("\n\n").filter((event) => event !== "");
}

/** Breaks answers with a status. */
export function onStatus(status: number, change: (passing: ProxiedAnswer) => void): Break {
  return (passing) => {
    if (passing.status === status) change(passing);
  };
}
