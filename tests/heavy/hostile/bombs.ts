/** Bodies that are expensive to read. */
import { PATHS } from "../../support/gateway.ts";

export interface Bomb {
  name: string;
  /** Absent: that of the Chat protocol. */
  path?: string;
  body: () => string;
}

const MB = 1_000_000;
const COUNT = `${PATHS.messages}/count_tokens`;

function chat(members: object): () => string {
  return () => JSON.stringify({ model: "sluice/echo", messages: [{ role: "user", content: "Hello" }], ...members });
}

function chatBody(content: () => unknown, members: object = {}): () => string {
  return () => JSON.stringify({ model: "sluice/echo", messages: [{ role: "user", content: content() }], ...members });
}

/** A body with text that JSON.stringify would not write. */
function raw(member: () => string): () => string {
  return () => `{"model":"sluice/echo","messages":[{"role":"user","content":"Hello"}],${member()}}`;
}

/** All bombs; none needs an upstream. */
export const BOMBS: readonly Bomb[] = [
  { name: "5 million brackets", body: raw(() => `"metadata":${"[".repeat(5 * MB)}${"]".repeat(5 * MB)}`) },
  { name: "a million members", body: raw(() => `"metadata":{${Array.from({ length: MB }, (_, i) => `"m${i}":0`)}}`) },
  { name: "10 million numbers", body: raw(() => `"metadata":[${"0,".repeat(10 * MB)}0]`) },
  { name: "a number of 10 million digits", body: raw(() => `"seed":${"9".repeat(10 * MB)}`) },
  { name: "30 MB of escapes", body: raw(() => `"user":"${"\\u0041".repeat(5 * MB)}"`) },
  { name: "100,000 letters", body: chatBody(() => "a".repeat(100_000)) },
  { name: "a million letters, counted", path: COUNT, body: chatBody(() => "a".repeat(MB)) },
  { name: "a million spaces, counted", path: COUNT, body: chatBody(() => " ".repeat(MB)) },
  {
    name: "64,000 messages",
    body: () =>
      JSON.stringify({
        model: "sluice/echo",
        messages: Array.from({ length: 64_000 }, () => ({ role: "user", content: "x" })),
      }),
  },
  { name: "100,000 parts", body: chatBody(() => Array.from({ length: 100_000 }, () => ({ type: "text", text: "x" }))) },
  {
    name: "an image of 30 MB",
    body: chatBody(() => [{ type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(30 * MB)}` } }]),
  },
  { name: "n of 1,000,000,000", body: chat({ n: 1e9 }) },
  { name: "max_tokens of 1e15", body: chat({ max_tokens: 1e15 }) },
  { name: "negative max_tokens", body: chat({ max_tokens: -1 }) },
  { name: "max_tokens of 1e400", body: raw(() => `"max_tokens":1e400`) },
  { name: "max_tokens as text", body: chat({ max_tokens: "10" }) },
];
