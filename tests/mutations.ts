/** Requests that went wrong in one way or another, from a seed: the same seed, the same requests. */
import type { Json, JsonObject } from "../lib/json.ts";
import { isObject } from "../lib/json.ts";

/** Numbers from 0 up to 1, the same for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A request, ready to be written to a socket. */
export interface Mutant {
  /** Head and body as bytes. */
  bytes: Uint8Array;
  /** False where the head may be nonsense, so that the server may answer without the gateway, or close. */
  soundHead: boolean;
  isNative: boolean;
}

/** A request that would be answered. */
export interface Seed {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: JsonObject;
}

const ODD_VALUES: readonly Json[] = [
  null,
  true,
  0,
  -1,
  0.5,
  2 ** 53,
  -1e308,
  "",
  "x",
  "\ud800",
  "a\u0000b",
  "auto",
  "data:image/png;base64,AAAA",
  "data:,%zz",
  "call:f {",
  "x".repeat(3000),
  [],
  {},
  [[]],
  [null],
  { type: null },
  { type: "text" },
  { type: "function" },
  { type: "thinking", thinking: "a", signature: "b" },
  { role: "assistant", content: [] },
  { role: "system", content: "a" },
];
const ODD_NAMES = ["__proto__", "constructor", "toString", "type", "role", "content", "id", "name", "stream", "n", ""];
/** Texts that a value is replaced with in the JSON itself: no value could be written as them. */
const ODD_TEXTS = [
  "1e400",
  "-0",
  "1.0",
  "NaN",
  "01",
  "'x'",
  "undefined",
  "/**/1",
  "[".repeat(100),
  "12345678901234567890",
];
const ODD_TARGETS = [
  "/",
  "//",
  "/v1",
  "/v1/models/%zz",
  "/v1/models/a%2Fb",
  "/anthropic/../v1/models",
  "*",
  "/%",
  "/v1/\u00e9",
];
const ODD_HEADERS: readonly [string, string][] = [
  ["host", "x/healthz?"],
  ["host", "[::1"],
  ["authorization", "Bearer"],
  ["authorization", "Basic eDp5"],
  ["x-api-key", "\u00ff"],
  ["content-type", "multipart/form-data; boundary=x"],
  ["content-type", "application/json; charset=utf-16"],
  ["content-encoding", "gzip"],
  ["transfer-encoding", "gzip, chunked"],
  ["content-length", "1"],
  ["content-length", "99999999"],
  ["content-length", "-1"],
  ["anthropic-version", "tomorrow"],
  ["if-none-match", '"x", W/'],
  ["upgrade", "websocket"],
  ["x-long", "y".repeat(9000)],
  ["accept", "text/event-stream"],
  ["origin", "null"],
];
const METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH", "TRACE", "FOO", "get"];

/** Makes one request out of a sound one. */
export function mutate(seed: Seed, random: () => number): Mutant {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  let { method, path } = seed;
  const headers = { ...seed.headers };
  let soundHead = true;
  let body = new Uint8Array(0);
  if (seed.body !== undefined) {
    const changed = structuredClone(seed.body);
    const marks: string[] = [];
    for (let times = Math.floor(random() * 4); times > 0; times--) changeValue(changed, { random, pick, marks });
    let text = JSON.stringify(changed);
    for (const mark of marks) text = text.replace(`"${mark}"`, () => pick(ODD_TEXTS));
    body = new TextEncoder().encode(text);
    if (random() < 0.2) body = changeBytes(body, random);
  }
  if (random() < 0.15) {
    soundHead = false;
    const change = random();
    if (change < 0.2) method = pick(METHODS);
    else if (change < 0.4) path = pick(ODD_TARGETS);
    else {
      const [name, value] = pick(ODD_HEADERS);
      headers[name] = value;
    }
  }
  if (body.length > 0) headers["content-length"] ??= String(body.length);
  const lines = Object.entries({ host: "localhost", connection: "close", ...headers });
  const head = `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  const start = Uint8Array.from(head, (char) => char.charCodeAt(0));
  const bytes = new Uint8Array(start.length + body.length);
  bytes.set(start);
  bytes.set(body, start.length);
  return { bytes, soundHead, isNative: /^\/anthropic(?![^/?#])/.test(path) };
}

interface Change {
  random: () => number;
  pick: <T>(values: readonly T[]) => T;
  /** Strings that stand where the JSON text is to be changed. */
  marks: string[];
}

/** Changes one place in a value: replaces, removes, repeats, renames or adds. */
function changeValue(value: JsonObject, { random, pick, marks }: Change): void {
  const places = [...containers(value)];
  const place = pick(places);
  const keys = Object.keys(place);
  const key = keys.length === 0 ? "" : pick(keys);
  const set = (name: string, member: Json): void => {
    Object.defineProperty(place, name, { value: member, enumerable: true, writable: true, configurable: true });
  };
  const odd = (): Json => structuredClone(pick(ODD_VALUES));
  const change = random();
  if (Array.isArray(place)) {
    if (change < 0.3 || place.length === 0) place.push(odd());
    else if (change < 0.5) place.splice(Number(key), 1);
    else if (change < 0.7) place.push(...structuredClone(place));
    else place[Number(key)] = odd();
  } else if (change < 0.2) set(pick(ODD_NAMES), odd());
  else if (change < 0.35) delete place[key];
  else if (change < 0.45) {
    const mark = `mark ${marks.length}`;
    marks.push(mark);
    set(key, mark);
  } else if (change < 0.6) set(key, structuredClone(pick(places)) as Json);
  else set(key, odd());
}

function* containers(value: Json | undefined): Generator<JsonObject | Json[]> {
  if (!isObject(value) && !Array.isArray(value)) return;
  yield value;
  for (const member of Object.values(value)) yield* containers(member);
}

/** Cuts, repeats or overwrites bytes. */
function changeBytes(bytes: Uint8Array<ArrayBuffer>, random: () => number): Uint8Array<ArrayBuffer> {
  const at = Math.floor(random() * bytes.length);
  const change = random();
  if (change < 0.3) return bytes.slice(0, at);
  if (change < 0.5) return Uint8Array.from([...bytes.subarray(0, at), ...bytes.subarray(Math.floor(at / 2))]);
  const changed = bytes.slice();
  for (let times = 1 + Math.floor(random() * 3); times > 0; times--) {
    changed[Math.floor(random() * changed.length)] = Math.floor(random() * 256);
  }
  return changed;
}
