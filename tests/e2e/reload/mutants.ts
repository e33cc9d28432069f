/** Valid configurations made invalid: each mutant must be rejected with an error that names the member. */
import { isObject, type Json, type JsonObject } from "../../../lib/json/mod.ts";
import type { Random } from "../../support/random.ts";
import { plainModel } from "../../support/plain_model.ts";

/** Secrets of the good file, and an empty one. */
export const SECRETS = {
  HOST_KEY: "host-key-0123456789",
  CI_KEY: "ci-key-0123456789abcdef",
  OPERATOR_KEY: "operator-key-0123456789",
  EMPTY_KEY: "",
};

/** A file with a little of everything. */
export function goodFile(): JsonObject {
  const model = (name: string, target: JsonObject): JsonObject =>
    plainModel({
      id: `acme/${name}`,
      context_length: 131_072,
      pricing: { prompt: "0.00000125", completion: "0.00001" },
      targets: [target],
    });
  return {
    listen: { hostname: "127.0.0.1", port: 8790 },
    upstreams: {
      host: { vendor: "openai-compatible", base_url: "http://127.0.0.1:9/v1", api_key: { env: "HOST_KEY" } },
    },
    models: [
      model("one", { upstream: "embedded", model: "echo", priority: 1, weight: 2 }),
      model("two", { upstream: "host", model: "two", protocol: "chat" }),
    ],
    groups: { team: { models: ["acme/*"], price_factor: "1.5", limits: { requests_per_minute: 60 } } },
    keys: [{ name: "ci", key: { env: "CI_KEY" }, group: "team" }],
    admin: { key: { env: "OPERATOR_KEY" } },
    resource_limits: { json_body_bytes: 1_000_000 },
    keep_alive_seconds: 15,
  };
}

/** An invalid file, and a part of the expected error line. */
export interface Mutant {
  text: string;
  names: string;
}

/** Makes a mutant, by chance. */
export function mutantOf(random: Random): Mutant {
  const kinds = [broken, wrongType, wrongType, wrongType, unknownMember, unknownMember, wrongReference, wrongReference];
  const kind = kinds[random.below(kinds.length)] ?? broken;
  return kind(random);
}

/** Text that is not a configuration at all. */
function broken(random: Random): Mutant {
  const text = JSON.stringify(goodFile(), null, 2);
  const texts = [
    "",
    " \n",
    "null",
    "[]",
    '"sluice"',
    "[".repeat(50_000),
    "\0",
    text.slice(0, 1 + random.below(text.length - 2)),
  ];
  const chosen = texts[random.below(texts.length)] ?? "";
  const isJson = ["null", "[]", '"sluice"'].includes(chosen);
  return { text: chosen, names: isJson ? "Expected an object" : "sluice.jsonc:" };
}

interface Place {
  holder: JsonObject | Json[];
  name: string | number;
  path: string;
}

/** Every member and item below a value. */
function placesIn(value: Json, path = ""): Place[] {
  if (Array.isArray(value)) {
    return value.flatMap((item, name) => {
      const at = `${path}[${name}]`;
      return [{ holder: value, name, path: at }, ...placesIn(item, at)];
    });
  }
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const at = path === "" ? name : `${path}.${name}`;
    return [{ holder: value, name, path: at }, ...placesIn(member ?? null, at)];
  });
}

function valueAt({ holder, name }: Place): Json | undefined {
  return Reflect.get(holder, name);
}

function wrongType(random: Random): Mutant {
  const file = goodFile();
  const places = placesIn(file);
  const place = places[random.below(places.length)];
  if (place === undefined) throw new RangeError("The good file is empty");
  const value = valueAt(place);
  const wrong: Json[] = typeof value === "string"
    ? [0, {}, [], true]
    : typeof value === "number"
    ? ["x", {}, -1e300, false]
    : Array.isArray(value)
    ? [{}, "x", 1]
    : ["x", [], 7];
  // Nothing here may be null.
  const all = [...wrong, null];
  Reflect.set(place.holder, place.name, all[random.below(all.length)]);
  return { text: JSON.stringify(file), names: place.path };
}

function unknownMember(random: Random): Mutant {
  const file = goodFile();
  const objects = [
    { value: file as Json, path: "" },
    ...placesIn(file).map((place) => ({
      value: valueAt(place) ?? null,
      path: `${place.path}.`,
    })),
  ].filter(({ value }) => isObject(value));
  const { value, path } = objects[random.below(objects.length)] ?? { value: file, path: "" };
  const name = `zz_${random.below(1000)}`;
  Reflect.set(value as JsonObject, name, 1);
  return { text: JSON.stringify(file), names: `${path}${name}` };
}

type Change = [path: string, value: Json, names?: string];

/** Members that are well formed, and wrong beside the others. */
function wrongReference(random: Random): Mutant {
  const file = goodFile();
  const changes: Change[] = [
    ["models[0].pricing.prompt", "0.0000000000001"],
    ["models[1].pricing.completion", "0.1234567890123"],
    ["groups.team.price_factor", "1.000001"],
    ["models[1].targets[0].upstream", "nobody"],
    ["models[1].targets[0].upstream", "acme/two"],
    ["models[0].targets[0].model", "acme/one"],
    ["models[1].targets[0].protocol", "messages"],
    ["models[1].id", "acme/one"],
    ["models[0].id", "sluice/echo"],
    ["models[0].id", "x".repeat(300)],
    ["keys[0].group", "nobody"],
    ["keys[0].key.env", "EMPTY_KEY"],
    ["keys[0].key.env", "NOT_SET"],
    ["keys[0].key.env", "OPERATOR_KEY", "admin.key"],
    ["upstreams.host.api_key.env", "EMPTY_KEY"],
    ["upstreams.host.base_url", "http://user:secret@host/v1"],
    ["admin.key.env", "NOT_SET"],
    ["keep_alive_seconds", 1e9],
    ["resource_limits.json_body_bytes", 0],
    ["groups.team.limits.requests_per_minute", 0],
    ["groups.team.models[0]", ""],
  ];
  const [path, value, names = path] = changes[random.below(changes.length)] ?? ["keep_alive_seconds", 0];
  const place = placesIn(file).find((place) => place.path === path);
  if (place === undefined) throw new RangeError(`The good file has no "${path}"`);
  Reflect.set(place.holder, place.name, value);
  return { text: JSON.stringify(file), names };
}
