/** The body of a relayed request: the client's own text, with the few edits that it needs. */
import { type Json, type JsonObject, writeJson } from "../json.ts";
import { removeAt, spliceMembers } from "../json_splice.ts";
import type { Relay } from "../protocols/relay.ts";
import { requireAll } from "../translate/require_all.ts";
import type { Mend } from "./mends/mend.ts";
import type { Call } from "./upstream.ts";

/** Chat has two ways to ask for reasoning: neither stays where one was dropped. */
const REASONING = ["reasoning_effort", "reasoning"];
const SPELLINGS: ReadonlyMap<string, readonly string[]> = new Map(REASONING.map((name) => [name, REASONING]));

/** Changes of top-level members, as JSON text; `undefined` removes one. */
type Edits = Record<string, string | undefined>;

/**
 * Everything but these keeps the client's spelling: members that were dropped already, those only the gateway reads, what
 * the relay needs, what the vendor words differently, and the model's id.
 * @throws {GatewayError} `invalid`, where the client required every parameter and one is lost
 */
export function relayBody(
  { client, prompt, target, dropped }: Call,
  { relay, mend }: { relay: Relay; mend: Mend },
): string {
  const lost = dropped.names.flatMap((name) => SPELLINGS.get(name) ?? [name]);
  const text = lost.reduce((body, name) => removeAt(body, name.split(".")), client.text);
  const needed = relay.bodyEdits({ streamed: prompt.stream, text });
  const mended = mend.body === undefined
    ? {}
    : mendEdits(sentBody(client.echo.request, { lost, needed }), (body) => mend.body?.(body, prompt, dropped) ?? body);
  requireAll(prompt, dropped);
  return spliceMembers(text, {
    provider: undefined,
    models: undefined,
    // What is not for the gateway is for the vendor.
    ...(prompt.protocol === "messages" && prompt.rest?.members.fallbacks === undefined && { fallbacks: undefined }),
    ...needed,
    ...mended,
    model: JSON.stringify(target.model),
  });
}

/** The body as a value, as it stands before it is mended. */
function sentBody(request: JsonObject, { lost, needed }: { lost: readonly string[]; needed: Edits }): JsonObject {
  const parsed = Object.entries(needed).map(([name, text]): [string, Json | undefined] => [
    name,
    text === undefined ? undefined : JSON.parse(text),
  ]);
  return {
    ...Object.fromEntries(Object.entries(request).filter(([name]) => !lost.includes(name))),
    ...Object.fromEntries(parsed),
  };
}

function mendEdits(body: JsonObject, reword: (body: JsonObject) => JsonObject): Edits {
  const mended = reword(body);
  const edits: Edits = {};
  for (const name of new Set([...Object.keys(body), ...Object.keys(mended)])) {
    const value = mended[name];
    if (value !== body[name]) edits[name] = value === undefined ? undefined : writeJson(value);
  }
  return edits;
}
