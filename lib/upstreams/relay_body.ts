/** The body of a relayed request: the client's own text, with the few edits that it needs. */
import { isObject, type JsonLimits, type JsonObject, parseJson, writeJson } from "../json/json.ts";
import {
  type Edits,
  type ObjectText,
  objectText,
  removeAt,
  spliceBytes,
  spliceMembers,
  spliceObject,
} from "../json/splice.ts";
import type { Relay } from "../protocols/relay.ts";
import { requireAll } from "../protocols/translate/require_all.ts";
import type { Mend } from "../protocols/quirks/mend.ts";
import type { Call } from "./upstream.ts";
import type { WholeBody } from "./transport.ts";

/** Chat has two ways to ask for reasoning: neither stays where one was dropped. */
const REASONING = ["reasoning_effort", "reasoning"];
const SPELLINGS: ReadonlyMap<string, readonly string[]> = new Map(
  [...REASONING, "reasoning.effort"].map((name) => [name, REASONING]),
);

const NOTHING: Edits = {};
const NO_LIMITS: JsonLimits = { depth: Infinity, nodes: Infinity, keys: Infinity };

/**
 * Everything but these keeps the client's spelling: members that were dropped already, those only the gateway reads, what
 * the relay needs, what the vendor words differently, and the model's id.
 * @throws {GatewayError} `invalid`, where the client required every parameter and one is lost
 */
export function relayBody(
  { client, prompt, target, dropped }: Call,
  { relay, mend }: { relay: Relay; mend: Mend },
): WholeBody {
  const lost = dropped.names.flatMap((name) => SPELLINGS.get(name) ?? [name]);
  const body = lost.length === 0 ? client.body : without(client.body.text, lost);
  const needed = prompt.stream ? relay.streamEdits?.(body) ?? NOTHING : NOTHING;
  const mended = mend.body === undefined
    ? NOTHING
    : mendEdits(sentBody(client.echo.request, { lost, needed }), (body) => mend.body?.(body, prompt, dropped) ?? body);
  requireAll(prompt, dropped);
  const edits: Edits = {
    provider: undefined,
    models: undefined,
    // What is not for the gateway is for the vendor.
    ...(prompt.protocol === "messages" && prompt.rest?.members.fallbacks === undefined && { fallbacks: undefined }),
    ...needed,
    ...mended,
    model: JSON.stringify(target.model),
  };
  // To make bytes of a text of 60 KB takes 4 µs, and 50 where it is Chinese.
  return body.utf8 === undefined ? spliceObject(body, edits) : spliceBytes(body.utf8, edits);
}

/** The body's text without what was dropped, by names or paths of names. */
function without(text: string, lost: readonly string[]): ObjectText {
  return objectText(lost.reduce((body, name) => removeAt(body, name.split(".")), text));
}

/** The body as a value, as it stands before it is mended. */
function sentBody(request: JsonObject, { lost, needed }: { lost: readonly string[]; needed: Edits }): JsonObject {
  if (lost.length === 0 && needed === NOTHING) return request;
  const sent = Object.fromEntries(Object.entries(request).filter(([name]) => !lost.includes(name)));
  // The client's own text, in its place in a body: nothing is too much of it that the body was not refused for.
  const parsed = parseJson(spliceMembers("{}", needed), NO_LIMITS);
  return isObject(parsed) ? { ...sent, ...parsed } : sent;
}

function mendEdits(body: JsonObject, reword: (body: JsonObject) => JsonObject): Edits {
  const mended = reword(body);
  if (mended === body) return NOTHING;
  const edits: Record<string, string | undefined> = {};
  for (const name of new Set([...Object.keys(body), ...Object.keys(mended)])) {
    const value = mended[name];
    if (value !== body[name]) edits[name] = value === undefined ? undefined : writeJson(value);
  }
  return edits;
}
