/** Attempts that relay the client's own body with a few edits. */
import {
  type Edits,
  isObject,
  type JsonLimits,
  type JsonObject,
  type ObjectText,
  parseJson,
  removePaths,
  scanMembers,
  spliceBody,
  spliceMembers,
  writeJson,
} from "../json/mod.ts";
import type { Prompt } from "../protocols/canonical/types.ts";
import type { Relay } from "../protocols/relay.ts";
import type { Quirk } from "../protocols/quirks/quirk.ts";
import type { Call, UpstreamAttempt, UpstreamAttemptOptions } from "./upstream.ts";
import type { ResendableBody } from "./transport.ts";
import { readReply } from "./long_inputs.ts";
import { relayFeed, RelayTranslator } from "./answer_feeds.ts";
import { RELAYS, UPSTREAM_CODECS } from "./protocols.ts";

/** Chat has two parameters for reasoning. If one is dropped, both are removed. */
const REASONING_MEMBERS = ["reasoning_effort", "reasoning"];
/** The members to remove for a dropped parameter, if not the parameter alone. */
const SPELLINGS: ReadonlyMap<string, readonly string[]> = new Map(
  [...REASONING_MEMBERS, "reasoning.effort"].map((name) => [name, REASONING_MEMBERS]),
);

const NO_EDITS: Edits = {};
const NO_LIMITS: JsonLimits = { depth: Infinity, nodes: Infinity, keys: Infinity };

/**
 * Writes the body. It removes dropped members, members that ask for the default or are only for the gateway, and applies
 * the edits of the relay, the vendor's quirks, and the target's model id. Everything else keeps the client's spelling.
 * @throws {GatewayError} `invalid` if the client requires all parameters and one is dropped
 */
export function relayBody(
  { client, prompt, model, target, dropped }: Call,
  { relay, quirk }: { relay: Relay; quirk: Quirk },
): ResendableBody {
  const unset = relay.unsetMembers?.(client.body) ?? [];
  const removed = dropped.names.flatMap((name) => SPELLINGS.get(name) ?? [name]);
  const body = removed.length === 0 ? client.body : withoutPaths(client.body.text, removed);
  const streamEdits = prompt.stream ? relay.streamEdits?.(body) ?? NO_EDITS : NO_EDITS;
  const keeperEdits = relay.keeperEdits?.(client.responseContext, body) ?? NO_EDITS;
  const relayEdits = keeperEdits === NO_EDITS ? streamEdits : { ...streamEdits, ...keeperEdits };
  const quirkChanges = quirk.body === undefined ? NO_EDITS : quirkEdits(
    sentBody(parsedPart(client, { prompt, quirk }), { removed: [...removed, ...unset], relayEdits }),
    (body) => quirk.body?.(body, prompt, dropped, model) ?? body,
  );
  dropped.refuseIfRequired(prompt);
  const edits: Edits = {
    provider: undefined,
    models: undefined,
    ...Object.fromEntries(unset.map((name) => [name, undefined])),
    // Anthropic has a member `fallbacks` of its own. It stays if the gateway did not read it.
    ...(prompt.protocol === "messages" && prompt.unknownMembers?.members.fallbacks === undefined &&
      { fallbacks: undefined }),
    ...relayEdits,
    ...quirkChanges,
    ...relay.modelEdits?.(target.model) ?? { model: JSON.stringify(target.model) },
  };
  // Bytes are spliced because encoding a text of 60 KB would take 4 µs, or 50 µs for Chinese.
  return spliceBody(body, edits);
}

/** Returns the part of the body that the quirk may change. Most quirks do not change plain messages in common forms. */
function parsedPart(
  { body: { scanned }, responseContext }: Call["client"],
  { prompt: { plain }, quirk }: { prompt: Prompt; quirk: Quirk },
): JsonObject {
  const isUsual = plain !== undefined && !plain.hasRareForms && quirk.changesAllMessages !== true;
  return isUsual && scanned !== undefined ? scanned.head : responseContext.request;
}

/** Returns the body's text without the dropped members, given by names or paths. */
function withoutPaths(text: string, removed: readonly string[]): ObjectText {
  return scanMembers(removePaths(text, removed.map((name) => name.split("."))));
}

/** Returns the body as a value, before the vendor's quirk is applied. */
function sentBody(
  request: JsonObject,
  { removed, relayEdits }: { removed: readonly string[]; relayEdits: Edits },
): JsonObject {
  if (removed.length === 0 && relayEdits === NO_EDITS) return request;
  const removedNames = new Set(removed);
  const sent = Object.fromEntries(Object.entries(request).filter(([name]) => !removedNames.has(name)));
  // The edits repeat parts of the client's body, which is already within the limits.
  const parsed = parseJson(spliceMembers("{}", relayEdits), NO_LIMITS);
  return isObject(parsed) ? { ...sent, ...parsed } : sent;
}

function quirkEdits(body: JsonObject, applyQuirk: (body: JsonObject) => JsonObject): Edits {
  const changed = applyQuirk(body);
  if (changed === body) return NO_EDITS;
  const edits: Record<string, string | undefined> = {};
  for (const name of new Set([...Object.keys(body), ...Object.keys(changed)])) {
    const value = changed[name];
    if (value !== body[name]) edits[name] = value === undefined ? undefined : writeJson(value);
  }
  return edits;
}

/** Returns the text of a whole answer with the public id of its model. */
export function replyWithModel({ text, members }: ObjectText, model: string, { replyModel = "model" }: Relay): string {
  for (const { name, start, end } of members) {
    if (name === replyModel) return text.slice(0, start) + JSON.stringify(model) + text.slice(end);
  }
  return text;
}

/** Relays the client's body with edited members. */
export function relayAttempt(call: Call, { protocol, quirk, origin, filter }: UpstreamAttemptOptions): UpstreamAttempt {
  const { client } = call;
  const relay = RELAYS[protocol];
  const body = relayBody(call, { relay, quirk });
  const codec = UPSTREAM_CODECS[protocol];
  return {
    protocol,
    body,
    stream(incoming) {
      const translator = new RelayTranslator(codec.reader(origin), relay.machine(client.responseContext));
      return { type: "frames", feed: relayFeed(incoming, filter, translator) };
    },
    readWhole(answer) {
      const { finish, usage } = codec.readSummary(answer.value, origin);
      const shown = relay.editReply?.(answer, client.responseContext) ?? answer;
      const reply = {
        finish,
        usage,
        text: replyWithModel(shown, client.responseContext.model, relay),
        readBlocks: async () => (await readReply(answer, codec, origin)).blocks,
      };
      return { type: "text", reply };
    },
  };
}
