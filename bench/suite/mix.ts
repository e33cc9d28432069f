/** The load of the soak: all kinds of valid and invalid requests, in the proportions of a busy day. */
import { bodyOf, type Protocol, type Size } from "./bodies.ts";
import type { Play } from "./answers.ts";
import { ENTRANCES } from "./sluice.ts";

/** One request, ready to be sent. */
export interface MixRequest {
  /** The kind under which it is counted. */
  kind: string;
  method: "GET" | "POST";
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Time from the first bytes of the answer until the client disconnects, in milliseconds; absent: it stays. */
  leaveMs?: number;
}

/** Keys for the requests. */
export interface Keys {
  /** Keys of clients, of which some have a budget. */
  clients: readonly string[];
  /** Key of the operator. */
  admin: string;
}

/** Kinds of requests, and their share in thousandths. */
export const SHARES = {
  whole: 400,
  whole60k: 90,
  answer60k: 60,
  burst: 70,
  paced: 60,
  left: 60,
  leftEarly: 20,
  echo: 60,
  bad: 50,
  wrongKey: 40,
  fault: 60,
  count: 10,
  lists: 12,
  image: 2,
  metrics: 3,
  report: 2.6,
  audit: 0.4,
} as const;

/** Name of a kind. */
export type Kind = keyof typeof SHARES;

const PROTOCOLS: readonly Protocol[] = ["chat", "responses", "messages"];

/** Longest time until a client disconnects from a stream, in milliseconds; the stream takes two seconds. */
const STAY_MS = 1_500;

/** Faults of the misbehaving upstream. Half of the entries are not faults, so that the upstream stays in use. */
const FAULTS = [
  "status:429",
  "status:500",
  "cut-after:3",
  "error-after:2",
  "garbage-after:2",
  "half-event-after:2",
  "no-end",
  "no-usage",
  "reset-after:2",
  "refuse",
  "redirect",
  "wrong-type",
  "junk",
  "long-line:200kb",
];

/** Bodies that are refused, each for a different reason. */
const BAD = [
  "{",
  "[]",
  '{"model":"chat/json"}',
  '{"model":"no/such-model","messages":[{"role":"user","content":"x"}]}',
  '{"model":"chat/json","messages":[{"role":"user","content":"x"}],"temperature":9}',
  `{"model":"chat/json","messages":${"[".repeat(2_000)}${"]".repeat(2_000)}}`,
  `{"model":"messages/json","messages":[{"role":"tool","tool_call_id":"x","content":"x"}]}`,
  "\u0000\u0001 not JSON at all ".repeat(50),
];

/** Makes requests, one after the other. `random` gives numbers from 0 to 1. */
export function mixOf(keys: Keys, random: () => number): () => MixRequest {
  const kinds = Object.entries(SHARES) as [Kind, number][];
  const total = kinds.reduce((sum, [, share]) => sum + share, 0);
  return () => {
    let left = random() * total;
    const [kind] = kinds.find(([, share]) => (left -= share) < 0) ?? ["whole" as const];
    return { kind, ...askOf(kind, { keys, random }) };
  };
}

type Source = { keys: Keys; random: () => number };

function askOf(kind: Kind, { keys, random }: Source): Omit<MixRequest, "kind"> {
  const one = <T>(of: readonly [T, ...T[]] | readonly T[], otherwise: T): T =>
    of[Math.floor(random() * of.length)] ?? otherwise;
  const client = one(PROTOCOLS, "chat");
  const key = one(keys.clients, "");
  const model = (play: Play) => `${one(PROTOCOLS, "chat")}/${play}`;
  const talk = (play: Play, { size = "1k", stream = false }: { size?: Size; stream?: boolean } = {}) =>
    post(ENTRANCES[client], { key, body: bodyOf({ protocol: client, size, model: model(play), stream }) });
  const get = (path: string, bearer: string) => ({ method: "GET" as const, path, headers: bearerOf(bearer), body: "" });
  switch (kind) {
    case "whole":
      return talk("json");
    case "whole60k":
      return talk("json", { size: "60k" });
    case "answer60k":
      return talk("json60");
    case "burst":
      return talk("burst", { stream: true });
    case "paced":
      return talk("paced", { stream: true });
    case "left":
      return { ...talk(random() < 0.8 ? "paced" : "slow", { stream: true }), leaveMs: random() * STAY_MS };
    case "leftEarly":
      // The client disconnects before the answer begins.
      return { ...talk("first", { stream: true, size: one(["1k", "60k"], "1k") }), leaveMs: -1 };
    case "echo":
      return textRequest(client, { key, model: "sluice/echo", text: "Say it again, please.", stream: random() < 0.5 });
    case "bad":
      return post(ENTRANCES[client], { key, body: one(BAD, "{") });
    case "wrongKey":
      return { ...talk("json"), headers: headersOf(`sk-sluice-${crypto.randomUUID()}`) };
    case "fault": {
      const text = random() < 0.5 ? "Nothing is wrong." : one(FAULTS, "status:500");
      return textRequest(client, {
        key,
        model: one(["soak/embedded", "soak/wire"], ""),
        text,
        stream: random() < 0.6,
      });
    }
    case "count":
      return textRequest("messages", { key, model: "messages/json", text: "Count this.", path: "/count_tokens" });
    case "lists":
      return get(one(["/v1/models", "/anthropic/v1/models", "/healthz", "/nowhere"], "/healthz"), key);
    case "image":
      return post("/v1/images/generations", {
        key,
        body: JSON.stringify({
          model: "sluice/canvas",
          prompt: `a fox in ${Math.floor(random() * 1e6)} colours`,
          quality: "low",
          size: one(["1024x1024", "1536x1024"], "1024x1024"),
          output_format: one(["png", "jpeg", "webp"], "png"),
          ...(random() < 0.3 && { stream: true, partial_images: 2 }),
        }),
      });
    case "metrics":
      return get("/metrics", keys.admin);
    case "report":
      return get(
        one(
          ["usage?by=key", "usage?by=model", "usage?by=day", "keys", "health"].map((path) => `/admin/v1/${path}`),
          "",
        ),
        keys.admin,
      );
    case "audit":
      return { ...get("/admin/v1/audit", keys.admin), method: "POST" };
  }
}

function textRequest(
  client: Protocol,
  { key, model, text, stream = false, path = "" }: {
    key: string;
    model: string;
    text: string;
    stream?: boolean;
    path?: string;
  },
): Omit<MixRequest, "kind"> {
  const body = {
    model,
    ...(stream && { stream: true }),
    ...(client === "responses" ? { input: text } : { messages: [{ role: "user", content: text }] }),
    ...(client === "messages" && path === "" && { max_tokens: 1024 }),
  };
  return post(ENTRANCES[client] + path, { key, body: JSON.stringify(body) });
}

function post(path: string, { key, body }: { key: string; body: string }): Omit<MixRequest, "kind"> {
  return { method: "POST", path, headers: headersOf(key), body };
}

function headersOf(key: string): Record<string, string> {
  return { "content-type": "application/json", "anthropic-version": "2023-06-01", ...bearerOf(key) };
}

function bearerOf(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}` };
}
