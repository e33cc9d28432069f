/** Makes broken requests from a seed: the same seed makes the same requests. */
import type { JsonObject } from "../../lib/json/mod.ts";
import type { Random } from "../support/random.ts";
import { changeBytes, inChunks, joined, latin1 } from "./bytes.ts";
import { changedForm, type Part } from "./forms.ts";
import { changedJson } from "./values.ts";

/** A request that would be answered. */
export interface Sound {
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  json?: JsonObject;
  form?: readonly Part[];
  /** Weight of the choice; absent: 1. */
  weight?: number;
}

/** A request, ready to be written to a socket. */
export interface Mutant {
  /** Head and body as bytes. */
  bytes: Uint8Array;
  /** False if the head may be nonsense, so that the server may answer without the gateway, or close. */
  soundHead: boolean;
  /** Shape of the errors of its path. */
  errors: ErrorShape;
}

/** Shapes of errors. */
export type ErrorShape = "openai" | "anthropic" | "google";

const ODD_TARGETS = [
  "/",
  "//",
  "/v1",
  "/v1/models/%zz",
  "/v1/models/a%2Fb",
  "/v1/models/%00",
  "/v1/models/%ed%a0%80/x",
  "/v1/models/__proto__",
  "/v1/models/constructor/prototype",
  `/v1/models/${"a".repeat(9_000)}`,
  `/v1/models/${"%2F".repeat(2_000)}`,
  "/anthropic/../v1/models",
  "/anthropic/v1/messages/",
  "/anthropic%2Fv1/models",
  "/ANTHROPIC/v1/models",
  "/v1/chat/completions?model=x",
  "/admin/v1/keys/%2e%2e",
  "/admin/v1/keys/..%2fgood",
  "/admin/v1/keys/",
  "/admin/v1/usage/req_%F0%9F%98%80",
  "/admin/v1/usage?since=7d&since=8d",
  "/admin/v1/usage?since=99999999999999999999d",
  "/admin/v1/usage?since=-1&until=%00&by=__proto__",
  "/admin/v1/usage?by=constructor",
  "/admin/v1/usage?by=upstream&upstream=__proto__",
  "/admin/v1/usage?by=upstream&upstream=%00",
  "/admin/v1/usage?since=2026-02-30&until=0",
  "/admin/v1/usage?%ff=%fe&&=&",
  "*",
  "/%",
  "/v1/\u00e9",
  "http://other/v1/models",
  "/v1/models#x",
  "/v1/models?\u0001",
];
const ODD_HEADERS: readonly (readonly [string, string])[] = [
  ["host", "x/healthz?"],
  ["host", "[::1"],
  ["host", ""],
  ["authorization", "Bearer"],
  ["authorization", "Bearer  "],
  ["authorization", `Bearer ${"k".repeat(7_000)}`],
  ["authorization", "Basic eDp5"],
  ["authorization", "Bearer sk-sluice-\u00e9"],
  ["x-api-key", "\u00ff"],
  ["content-type", "multipart/form-data; boundary=x"],
  ["content-type", "application/json; charset=utf-16"],
  ["content-type", "text/plain"],
  ["content-type", ";;;"],
  ["content-encoding", "gzip"],
  ["content-encoding", "deflate"],
  ["content-encoding", "br"],
  ["content-encoding", "gzip, gzip"],
  ["transfer-encoding", "gzip, chunked"],
  ["transfer-encoding", "chunked"],
  ["content-length", "1"],
  ["content-length", "99999999"],
  ["content-length", "999999999999999999999"],
  ["content-length", "-1"],
  ["anthropic-version", "tomorrow"],
  ["anthropic-beta", "a".repeat(5_000)],
  ["idempotency-key", "\u00e9"],
  ["idempotency-key", "k".repeat(300)],
  ["idempotency-key", "the-same"],
  ["traceparent", "00-00000000000000000000000000000000-0000000000000000-00"],
  ["tracestate", "=,=,="],
  ["x-request-id", "req_ours\u00e9"],
  ["x-forwarded-for", "a, b, ::1, 999.1.1.1"],
  ["forwarded", 'for="[::1'],
  ["x-sluice-show", "client-address"],
  ["if-none-match", '"x", W/'],
  ["range", "bytes=0-18446744073709551615"],
  ["expect", "100-continue"],
  ["expect", "the unexpected"],
  ["connection", "upgrade, x-api-key"],
  ["upgrade", "websocket"],
  ["upgrade", "h2c"],
  ["x-long", "y".repeat(9_000)],
  ["accept", "text/event-stream"],
  ["accept-encoding", "gzip;q=nan"],
  ["origin", "null"],
  ["cookie", "a=b; c"],
];
const METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "FOO", "get", "PRI"];
const ODD_BODIES: readonly Uint8Array[] = [
  Uint8Array.of(),
  latin1("null"),
  latin1("[]"),
  latin1('"x"'),
  Uint8Array.of(0xff, 0xfe, 0x7b, 0, 0x7d, 0),
  Uint8Array.of(0xef, 0xbb, 0xbf, 0x7b, 0x7d),
  latin1('{"model":"\xff"}'),
  latin1("[".repeat(200_000)),
  latin1(`{${Array.from({ length: 20_000 }, (_, index) => `"k${index}":0`).join()}}`),
  latin1(`[${"0,".repeat(100_000)}0]`),
  latin1(`{"model":"${"\\u0041".repeat(40_000)}"}`),
  latin1(" ".repeat(400_000)),
];

/** Breaks a valid request. */
export function mutate(sound: Sound, random: Random): Mutant {
  let { method, path } = sound;
  const headers = new Map<string, readonly string[]>(
    Object.entries({ host: "localhost", connection: "close", ...sound.headers }).map((
      [name, value],
    ) => [name, [value]]),
  );
  let body = bodyOf(sound, { random, headers });
  let soundHead = true;
  const change = random.next();
  if (change < 0.15) {
    soundHead = false;
    if (change < 0.03) method = random.pick(METHODS);
    else if (change < 0.06) path = random.pick(ODD_TARGETS);
    else {
      const [name, value] = random.pick(ODD_HEADERS);
      const twice = random.chance(0.2) ? headers.get(name) ?? [value] : [];
      headers.set(name, [...twice, value]);
    }
  } else if (change < 0.23) {
    headers.set("transfer-encoding", ["chunked"]);
    // The server handles broken chunks, not the gateway.
    soundHead = false;
    body = inChunks(body, random);
  } else if (change < 0.25) path = `${path}${random.pick(["?", "?x=1", "/", "%20", "?a=%zz", ";x", "?a=1&a=2"])}`;
  if (body.length > 0 && !headers.has("content-length") && !headers.has("transfer-encoding")) {
    headers.set("content-length", [String(body.length)]);
  }
  const lines = [...headers].flatMap(([name, values]) => values.map((value) => `${name}: ${value}\r\n`)).join("");
  const sent = latin1(`${method} ${path} HTTP/1.1\r\n${lines}\r\n`);
  const broken = random.chance(0.01);
  // The server waits for the end of a head: its time limits are tested elsewhere.
  const head = broken ? joined(changeBytes(sent, random), latin1("\r\n\r\n")) : sent;
  return {
    bytes: joined(head, body),
    soundHead: soundHead && !broken,
    errors: errorsOf(head),
  };
}

/** The shape of errors for what lies under `/anthropic` and `/v1beta`, for Google's clients elsewhere, and for all else. */
function errorsOf(head: Uint8Array): ErrorShape {
  const text = new TextDecoder("latin1").decode(head.subarray(0, 20_000));
  const target = /^[^ ]* (?:http:\/\/[^/]*)?(\/[^ \r]*)/.exec(text)?.[1] ?? "";
  const base = /^\/(anthropic|v1beta|v1\/models)(?![^/?#])/.exec(target)?.[1];
  if (base === "anthropic") return "anthropic";
  const isMethod = /^[^?]*:(?:generateContent|streamGenerateContent|countTokens)(?:\?|$)/.test(target);
  const isGoogles = base === "v1/models" && (isMethod || /^x-goog-api-key:/im.test(text));
  return base === "v1beta" || isGoogles ? "google" : "openai";
}

function bodyOf(
  { json, form }: Sound,
  { random, headers }: { random: Random; headers: Map<string, readonly string[]> },
): Uint8Array {
  if (form !== undefined) {
    const { type, body } = changedForm(form, random);
    headers.set("content-type", [type]);
    return body;
  }
  if (json === undefined) return random.chance(0.02) ? latin1("{}") : new Uint8Array();
  if (random.chance(0.02)) return random.pick(ODD_BODIES);
  const body = new TextEncoder().encode(changedJson(json, random));
  return random.chance(0.2) ? changeBytes(body, random) : body;
}
