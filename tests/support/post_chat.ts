/** A chat request as any HTTP client sends it. */
import type { JsonObject } from "../../lib/json/mod.ts";

/** Sends "Hello" to the embedded model; the given members replace the defaults. */
export function postChat(origin: string, key: string, members: JsonObject = {}): Promise<Response> {
  const body = { model: "sluice/echo", messages: [{ role: "user", content: "Hello" }], ...members };
  return fetch(`${origin}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}
