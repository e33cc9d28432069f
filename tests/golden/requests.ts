/** Golden files of requests: each holds a client's request beside its translation for every other protocol. */
import { UnsupportedParameters } from "../../lib/protocols/canonical/unsupported_parameters.ts";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../lib/errors.ts";
import { isObject, type JsonObject, parseJson } from "../../lib/json/mod.ts";
import { checkModelRules } from "../../lib/request/rules.ts";
import { checkBody } from "../../lib/protocols/fields.ts";
import { translatePrompt, type Translation } from "../../lib/upstreams/translation_attempt.ts";
import { CLIENTS, PROTOCOLS, rowOf, sideOf, UPSTREAMS } from "./crossings.ts";
import { formatJson } from "./format_json.ts";

/** A recorded request, or several that differ in a few members. */
export interface RequestCase {
  name: string;
  from: Protocol;
  /** Members that all variants share. */
  shared: JsonObject;
  /** Members of each variant by its name; a case without variants has one with an empty name. */
  variants: Readonly<Record<string, JsonObject>>;
  /** Whole bodies by the name of the variant. */
  bodies: Readonly<Record<string, JsonObject>>;
}

const FOLDER = new URL("./requests/", import.meta.url);

/** All recorded requests, which are written in their golden files. */
export const REQUESTS: readonly RequestCase[] = PROTOCOLS.flatMap((from) => {
  const folder = new URL(`${from}/`, FOLDER);
  const names = [...Deno.readDirSync(folder)].map(({ name }) => name.replace(".json", "")).sort();
  return names.map((name) => readCase(name, from, readObject(new URL(`${name}.json`, folder))));
});

function readCase(name: string, from: Protocol, file: JsonObject): RequestCase {
  const shared = asObject(file.request);
  const variants = isObject(file.variants)
    ? Object.fromEntries(
      Object.entries(file.variants).map(([name, value]) => [name, asObject(asObject(value).request)]),
    )
    : { "": {} };
  const bodies = Object.entries(variants).map(([name, members]) => [name, { ...shared, ...members }]);
  return { name, from, shared, variants, bodies: Object.fromEntries(bodies) };
}

function asObject(value: unknown): JsonObject {
  if (!isObject(value)) throw new TypeError("Cannot use a golden file: expected an object");
  return value;
}

function readObject(url: URL): JsonObject {
  return asObject(parseJson(Deno.readTextFileSync(url)));
}

/** Cases that show every pair of protocols. */
export const EVERY_PAIR: readonly string[] = [
  ...["text", "system", "media", "reasoning_depth", "reasoning_replay", "hosted_tools", "others"],
];

/**
 * The targets of a case: the other protocols, and for replayed reasoning the chat vendors that keep it. An upstream's
 * writer sees nothing but the prompt, so that cases of other clients than chat's, except those in `EVERY_PAIR`, show how
 * they are read by their translation to chat.
 */
function targetsFor({ name, from }: Pick<RequestCase, "name" | "from">): string[] {
  const others = UPSTREAMS.filter((protocol) => protocol !== from);
  if (name === "reasoning_replay") return [...others, "openrouter", "deepseek"];
  return from === "chat" || EVERY_PAIR.includes(name) ? others : ["chat"];
}

/** Translates a request. @throws {GatewayError} if it is refused */
export function crossRequest(
  from: Protocol,
  to: string,
  body: JsonObject,
): Translation & { dropped: readonly string[] } {
  const codec = CLIENTS[from];
  checkBody(codec.schema, body);
  const decoded = codec.readPrompt(body);
  const row = rowOf(decoded.model);
  const dropped = new UnsupportedParameters({ prompt: decoded, request: body });
  const prompt = checkModelRules(decoded, row, dropped);
  const translation = translatePrompt(prompt, { ...sideOf(to), model: "model-x", row, dropped });
  return { ...translation, dropped: dropped.names };
}

/** A translated request. */
interface Outcome {
  /** Members that differ from the client's, without the model's id. */
  body?: JsonObject;
  /** Names of unchanged members. */
  kept?: string[];
  dropped?: string[];
  refused?: JsonObject;
}

function outcomeFor(from: Protocol, to: string, request: JsonObject): Outcome {
  try {
    const { body, dropped } = crossRequest(from, to, request);
    if (to !== "gemini" && body.model !== "model-x") throw new Error(`Expected the target's model, got ${body.model}`);
    const same = (name: string) => JSON.stringify(body[name]) === JSON.stringify(request[name]);
    const others = Object.entries(body).filter(([name]) => name !== "model" && !same(name));
    return { body: Object.fromEntries(others), kept: Object.keys(body).filter(same), dropped: [...dropped] };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { status, message, param } = error;
    return { refused: { status, message, param: param ?? null } };
  }
}

type Outcomes = Readonly<Record<string, Outcome>>;

/** Body members that every variant has at a target, by target. */
function commonMembers(variants: readonly Outcomes[]): Record<string, JsonObject> {
  const [first = {}] = variants;
  return Object.fromEntries(
    Object.keys(first).map((to) => {
      const bodies = variants.flatMap((outcomes) => outcomes[to]?.body === undefined ? [] : [outcomes[to].body]);
      const [one = {}, ...others] = bodies;
      const isCommon = (name: string) =>
        others.every((body) => JSON.stringify(body[name]) === JSON.stringify(one[name]));
      return [
        to,
        others.length === 0 ? {} : Object.fromEntries(Object.entries(one).filter(([name]) => isCommon(name))),
      ];
    }),
  );
}

/**
 * Removes the common members, refers to the first variant with the same large member ("as in none"), and joins targets
 * with the same outcome ("chat, gemini").
 */
function describe(
  outcomes: Outcomes,
  { variant, common, seen }: {
    variant: string;
    common: Readonly<Record<string, JsonObject>>;
    /** Variants by target and member. */
    seen: Map<string, string>;
  },
): JsonObject {
  const targets = new Map<string, string[]>();
  for (const [to, { body = {}, ...others }] of Object.entries(outcomes)) {
    const own = Object.entries(body).filter(([name]) => common[to]?.[name] === undefined).map(([name, value]) => {
      const text = JSON.stringify([to, name, value]);
      const before = seen.get(text);
      if (before === undefined) seen.set(text, variant);
      return [name, before === undefined || text.length < 100 ? value : `as in ${before}`];
    });
    const members = Object.entries({ body: Object.fromEntries(own), ...others });
    const shown = members.filter(([, value]) => Object.keys(value ?? {}).length > 0);
    const text = JSON.stringify(Object.fromEntries(shown));
    targets.set(text, [...targets.get(text) ?? [], to]);
  }
  return Object.fromEntries([...targets].map(([text, names]) => [names.join(", "), parseJson(text)]));
}

function fileOf(request: RequestCase): string {
  const { from, shared, variants, bodies } = request;
  const outcomes = Object.entries(bodies).map(([name, body]) => {
    const byTarget = targetsFor(request).map((to) => [to, outcomeFor(from, to, body)]);
    return [name, Object.fromEntries(byTarget)] as [string, Outcomes];
  });
  const common = commonMembers(outcomes.map(([, outcome]) => outcome));
  const seen = new Map<string, string>();
  const described = outcomes.map(([name, outcome]) =>
    [name, describe(outcome, { variant: name, common, seen })] as const
  );
  const [[name, only] = ["", {}]] = described;
  if (name === "") return formatJson({ request: shared, ...only });
  return formatJson({
    request: shared,
    "in every variant": Object.fromEntries(Object.entries(common).filter(([, body]) => Object.keys(body).length > 0)),
    variants: Object.fromEntries(
      described.map(([name, outcome]) => [name, { request: variants[name] ?? {}, ...outcome }]),
    ),
  });
}

/** Golden files by name: `<from>/<case>.json`. */
export function requestFiles(): Map<string, string> {
  return new Map(REQUESTS.map((request) => [`${request.from}/${request.name}.json`, fileOf(request)]));
}
