/** Requests of clients, crossed to what upstreams are sent. */
import { Dropped } from "../../lib/protocols/canonical/dropped.ts";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../lib/errors.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../../lib/json/json.ts";
import { checkModelRules } from "../../lib/request/rules.ts";
import { checkBody } from "../../lib/protocols/fields.ts";
import { translatePrompt, type Translation } from "../../lib/upstreams/translation.ts";
import { CLIENTS, PROTOCOLS, rowOf, sideOf, UPSTREAMS } from "./crossings.ts";
import { spellJson } from "./spell.ts";

/** A request, or several that differ in a few members. */
export interface RequestCase {
  name: string;
  from: Protocol;
  /** Bodies by the name of the variant; one without variants has the empty name. */
  bodies: Readonly<Record<string, JsonObject>>;
}

const FOLDER = new URL("../fixtures/", import.meta.url);

/** All recorded requests. */
export const REQUESTS: readonly RequestCase[] = PROTOCOLS.flatMap((from) => {
  const folder = new URL(`${from}/requests/`, FOLDER);
  const names = [...Deno.readDirSync(folder)].map(({ name }) => name.replace(".json", "")).sort();
  return names.map((name) => ({ name, from, bodies: bodiesOf(readObject(new URL(`${name}.json`, folder))) }));
});

function bodiesOf({ variants, ...base }: JsonObject): Record<string, JsonObject> {
  if (!isObject(variants)) return { "": base };
  return Object.fromEntries(
    Object.entries(variants).map(([name, members]) => [name, { ...base, ...isObject(members) ? members : {} }]),
  );
}

function readObject(url: URL): JsonObject {
  const value = parseJson(Deno.readTextFileSync(url));
  if (!isObject(value)) throw new TypeError(`Cannot use ${url}: expected an object`);
  return value;
}

/** Where a case goes: reasoning also to the vendors of chat that keep it. */
function sidesFor({ name }: RequestCase): string[] {
  return name === "reasoning_replay" ? [...UPSTREAMS, "openrouter", "deepseek"] : [...UPSTREAMS];
}

/** A translated request. @throws {GatewayError} where it is refused */
export function crossRequest(
  from: Protocol,
  to: string,
  body: JsonObject,
): Translation & { dropped: readonly string[] } {
  const codec = CLIENTS[from];
  checkBody(codec.schema, body);
  const asked = codec.readPrompt(body);
  const row = rowOf(asked.model);
  const dropped = new Dropped({ prompt: asked, request: body });
  const prompt = checkModelRules(asked, row, dropped);
  const translation = translatePrompt(prompt, { ...sideOf(to), model: "model-x", row, dropped });
  return { ...translation, dropped: dropped.names };
}

/** What becomes of a case: the body and what was lost, or the refusal; by variant, where there are several. */
export function goldenOf({ from, bodies }: RequestCase, to: string): Json {
  const outcomes = Object.entries(bodies).map(([name, body]): [string, JsonObject] => [name, outcome(from, to, body)]);
  return outcomes.length === 1 && outcomes[0]?.[0] === "" ? outcomes[0][1] : Object.fromEntries(outcomes);
}

function outcome(from: Protocol, to: string, request: JsonObject): JsonObject {
  try {
    const { body, dropped } = crossRequest(from, to, request);
    return { body, dropped: [...dropped] };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { status, message, param } = error;
    return { refused: { status, message, param: param ?? null } };
  }
}

/** Golden files by name: `<case>.<from>-<to>.json`. */
export function requestFiles(): Map<string, string> {
  const crossings = REQUESTS.flatMap((request) => sidesFor(request).map((to) => ({ request, to })));
  return new Map(crossings.map(({ request, to }) => {
    const name = `${request.name}.${request.from}-${to}.json`;
    return [name, spellJson(goldenOf(request, to))];
  }));
}
