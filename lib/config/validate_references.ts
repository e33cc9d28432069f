/** Validates references between members of a configuration, and to the environment. */
import type { ReadEnvironment } from "../secret.ts";
import { EMBEDDED_MODELS, EMBEDDED_TARGETS, EMBEDDED_UPSTREAM } from "../catalog/embedded.ts";
import { listenSchema, secretSchema } from "../config.ts";
import { kindOfModalities, type ModelKind } from "../catalog/model.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import { spokenBy, type VendorName, vendorOf, VENDORS } from "../upstreams/vendors.ts";
import { validatePrices } from "./validate_prices.ts";
import { formatProblem, type Path, pathText } from "./problems.ts";

/**
 * Validates references between members of the unparsed file. Skips malformed values, so that all problems are reported
 * together.
 */
export function validateReferences(file: Json, env: ReadEnvironment): string[] {
  if (!isObject(file)) return [];
  return [
    ...upstreamProblems(file, env),
    ...modelProblems(file),
    ...embeddingProblems(file),
    ...validatePrices(file),
    ...keyProblems(file, env),
    ...adminProblems(file, env),
    ...alertProblems(file, env),
    ...nodeProblems(file),
    ...reusePortProblems(file),
  ];
}

/** Every protocol that any vendor speaks. */
const PROTOCOLS: ReadonlySet<string> = new Set(Object.values(VENDORS).flatMap(spokenBy));

/** Requires a shared store for a shared configuration. */
function nodeProblems({ nodes, store }: JsonObject): string[] {
  if (!isObject(nodes) || nodes.config !== "store") return [];
  if (isPostgres(store)) return [];
  return [
    formatProblem(["nodes", "config"], '"store" needs a shared store: set `store` to a Postgres database'),
  ];
}

/** Requires a shared store and a fixed port for processes that share the port. */
function reusePortProblems({ listen, store, limits_store }: JsonObject): string[] {
  if (!isObject(listen) || listen.reuse_port !== true) return [];
  const problems: string[] = [];
  if (listen.port === 0) {
    problems.push(
      formatProblem(["listen", "port"], "Processes cannot share port 0 (any free port): set a port"),
    );
  }
  if (!isPostgres(store)) {
    problems.push(formatProblem(
      ["listen", "reuse_port"],
      "Processes that share a port need a shared store: set `store` to a Postgres database",
    ));
  }
  if (typeof limits_store !== "string" || !/^rediss?:/.test(limits_store)) {
    problems.push(formatProblem(
      ["listen", "reuse_port"],
      "Processes that share a port would count limits separately: set `limits_store` to a Redis server",
    ));
  }
  return problems;
}

function isPostgres(store: Json | undefined): boolean {
  return typeof store === "string" && /^postgres(ql)?:/.test(store);
}

/** Requires an address, a key if the vendor needs one, and protocols that the vendor supports. */
function upstreamProblems(file: JsonObject, env: ReadEnvironment): string[] {
  const problems: string[] = [];
  for (const [name, row] of Object.entries(isObject(file.upstreams) ? file.upstreams : {})) {
    if (!isObject(row) || typeof row.vendor !== "string" || !Object.hasOwn(VENDORS, row.vendor)) continue;
    const path: Path = ["upstreams", name];
    const vendor = vendorOf(row.vendor as VendorName);
    if (row.base_url === undefined && vendor.baseUrl === undefined) {
      problems.push(formatProblem([...path, "base_url"], `Missing: vendor "${row.vendor}" has no default address`));
    }
    if (row.api_key === undefined && vendor.keyless !== true) {
      problems.push(formatProblem([...path, "api_key"], `Missing: vendor "${row.vendor}" requires a key`));
    }
    const variable = variableOf(row.api_key);
    const wrong = variable !== undefined ? upstreamSecretProblem(variable, env(variable)) : undefined;
    if (wrong !== undefined) problems.push(formatProblem([...path, "api_key", "env"], wrong));
    const supported: readonly string[] = spokenBy(vendor);
    for (const protocol of Array.isArray(row.protocols) ? row.protocols : []) {
      if (typeof protocol !== "string" || supported.includes(protocol) || !PROTOCOLS.has(protocol)) continue;
      problems.push(
        formatProblem(
          [...path, "protocols"],
          `Vendor "${row.vendor}" does not support protocol "${protocol}"; it supports: ${supported.join(", ")}`,
        ),
      );
    }
  }
  return problems;
}

/** The protocols of an upstream: configured, or those of its vendor. */
function protocolsOf(row: JsonObject): readonly string[] {
  if (Array.isArray(row.protocols)) return row.protocols.filter((name) => typeof name === "string");
  const { vendor } = row;
  return typeof vendor === "string" && Object.hasOwn(VENDORS, vendor) ? vendorOf(vendor as VendorName).protocols : [];
}

function modelProblems(file: JsonObject): string[] {
  const problems: string[] = modelNameProblems(file);
  for (const [index, model] of objects(file.models)) {
    const path: Path = ["models", index];
    for (const [place, target] of objects(model.targets)) {
      problems.push(...targetProblems(file, { target, makes: makesOf(model) }, [...path, "targets", place]));
    }
    problems.push(...kindPriceProblems(model, path));
  }
  return problems;
}

/** Requires that each id, canonical slug or alias belongs to one row. Ids take precedence over the other names. */
function modelNameProblems(file: JsonObject): string[] {
  const holders = new Map<string, string>();
  if (file.embedded_models !== false) {
    for (const { id } of EMBEDDED_MODELS) {
      holders.set(id, 'an embedded model (set "embedded_models" to false to replace it)');
    }
  }
  const models = [...objects(file.models)];
  const names: [path: Path, name: Json | undefined][] = [
    ...models.map(([index, { id }]): [Path, Json | undefined] => [["models", index, "id"], id]),
    ...models.flatMap(([index, { id, canonical_slug, aliases }]): [Path, Json | undefined][] => [
      [["models", index, "canonical_slug"], canonical_slug === id ? undefined : canonical_slug],
      ...(Array.isArray(aliases) ? aliases : []).map((alias, place): [Path, Json] => [
        ["models", index, "aliases", place],
        alias,
      ]),
    ]),
  ];
  const problems: string[] = [];
  for (const [path, name] of names) {
    if (typeof name !== "string") continue;
    const holder = holders.get(name);
    if (holder !== undefined) problems.push(formatProblem(path, `"${name}" is already ${holder}`));
    else holders.set(name, pathText(path.slice(0, 2)));
  }
  return problems;
}

/**
 * Validates that prices fit the kind of the model: models with text output count uploaded images as prompt tokens, and
 * image models bill images by size.
 */
function kindPriceProblems(model: JsonObject, path: Path): string[] {
  const makes = makesOf(model);
  if (makes === undefined) return [];
  const [member, kind] = makes === "text" ? ["input_image", "make images"] : ["context_tiers", "answer in text"];
  const places: [Path, Json | undefined][] = [
    [["pricing"], model.pricing],
    ...[...objects(model.price_changes)].map(([index, change]): [Path, Json] => [["price_changes", index], change]),
    ...[...objects(model.targets)].map(([index, { pricing }]): [Path, Json | undefined] => [
      ["targets", index, "pricing"],
      pricing,
    ]),
  ];
  const all = places.flatMap(([place, prices]): [Path, Json | undefined][] => [
    [place, prices],
    ...[...objects(isObject(prices) ? prices.time_windows : undefined)].map(([index, window]): [Path, Json] => [
      [...place, "time_windows", index],
      window,
    ]),
  ]);
  return all.flatMap(([place, prices]) =>
    isObject(prices) && prices[member] !== undefined
      ? [formatProblem([...path, ...place, member], `Only for models that ${kind}`)]
      : []
  );
}

/** Returns the kind of a row's model. */
function makesOf(model: JsonObject): ModelKind {
  const output = isObject(model.architecture) ? model.architecture.output_modalities : undefined;
  return Array.isArray(output) ? kindOfModalities(output) : "text";
}

interface TargetOfModel {
  target: JsonObject;
  makes: ModelKind;
}

function targetProblems(file: JsonObject, { target, makes }: TargetOfModel, path: Path): string[] {
  if (typeof target.upstream !== "string") return [];
  const upstreams = isObject(file.upstreams) ? file.upstreams : {};
  const known = namesWith(upstreams, EMBEDDED_UPSTREAM);
  if (!known.includes(target.upstream)) {
    return [formatProblem([...path, "upstream"], `Unknown upstream "${target.upstream}"; known: ${known.join(", ")}`)];
  }
  const upstream = Object.hasOwn(upstreams, target.upstream) ? upstreams[target.upstream] : { vendor: "embedded" };
  if (!isObject(upstream)) return [];
  if (upstream.vendor === "embedded") return embeddedTargetProblems({ target, makes }, path);
  if (makes === "image") return imageTargetProblems(upstream, target, path);
  if (makes === "embedding" || makes === "rerank") return retrievalTargetProblems(upstream, { target, makes }, path);
  return textTargetProblems(upstream, target, path);
}

function textTargetProblems(upstream: JsonObject, target: JsonObject, path: Path): string[] {
  const problems: string[] = [];
  const supported = protocolsOf(upstream);
  if (typeof target.protocol === "string" && !supported.includes(target.protocol)) {
    problems.push(
      formatProblem(
        [...path, "protocol"],
        `Upstream "${target.upstream}" does not support protocol "${target.protocol}"; it supports: ${
          supported.join(", ")
        }`,
      ),
    );
  }
  if (target.images !== undefined) {
    problems.push(formatProblem([...path, "images"], "Only for models that make images"));
  }
  return problems;
}

/** Requires a vendor with embeddings or reranking. */
function retrievalTargetProblems(
  upstream: JsonObject,
  { target, makes }: { target: JsonObject; makes: "embedding" | "rerank" },
  path: Path,
): string[] {
  const { vendor } = upstream;
  if (typeof vendor !== "string" || !Object.hasOwn(VENDORS, vendor)) return [];
  const canDo = (name: VendorName) =>
    makes === "embedding" ? vendorOf(name).embeddings !== undefined : vendorOf(name).rerank === true;
  if (canDo(vendor as VendorName)) return [];
  const able = (Object.keys(VENDORS) as VendorName[]).filter(canDo);
  const what = makes === "embedding" ? "makes no embeddings" : "does not rerank";
  return [
    formatProblem(
      [...path, "upstream"],
      `Upstream "${target.upstream}" ${what}: its vendor must be one of ${able.join(", ")}, or embedded`,
    ),
  ];
}

/** Requires vector facts on rows for embeddings, and equal vector lengths within a space. */
function* embeddingProblems(file: JsonObject): Generator<string> {
  const spaces = new Map<string, { dimensions: Json | undefined; holder: string }>();
  for (const [index, model] of objects(file.models)) {
    const path: Path = ["models", index, "embedding"];
    const isEmbedding = makesOf(model) === "embedding";
    if (isEmbedding !== (model.embedding !== undefined)) {
      yield formatProblem(
        path,
        isEmbedding ? "Missing: the model makes embeddings" : "Only for models that make embeddings",
      );
    }
    if (!isObject(model.embedding)) continue;
    const { space, dimensions, min_dimensions: least } = model.embedding;
    if (typeof least === "number" && typeof dimensions === "number" && least > dimensions) {
      yield formatProblem([...path, "min_dimensions"], "More than `dimensions`");
    }
    if (typeof space !== "string") continue;
    const known = spaces.get(space);
    if (known === undefined) spaces.set(space, { dimensions, holder: `models[${index}]` });
    else if (known.dimensions !== dimensions) {
      yield formatProblem(
        [...path, "dimensions"],
        `Vectors of the space "${space}" have ${known.dimensions} dimensions in ${known.holder}: one space has one length`,
      );
    }
  }
}

/** Requires an upstream and settings that can make images. */
function imageTargetProblems(upstream: JsonObject, target: JsonObject, path: Path): string[] {
  const problems: string[] = [];
  const { vendor } = upstream;
  if (typeof vendor === "string" && Object.hasOwn(VENDORS, vendor) && vendorOf(vendor as VendorName).images !== true) {
    const able = (Object.keys(VENDORS) as VendorName[]).filter((name) => vendorOf(name).images === true);
    problems.push(
      formatProblem(
        [...path, "upstream"],
        `Upstream "${target.upstream}" makes no images: its vendor must be one of ${able.join(", ")}, or embedded`,
      ),
    );
  }
  if (target.protocol !== undefined) {
    problems.push(formatProblem([...path, "protocol"], "Only for models that answer in text"));
  }
  return problems;
}

function embeddedTargetProblems({ target, makes }: TargetOfModel, path: Path): string[] {
  const known = makes === "other" ? [] : EMBEDDED_TARGETS[makes];
  if (typeof target.model !== "string" || known.includes(target.model)) return [];
  const kind = {
    text: "language model",
    image: "image model",
    embedding: "embedding model",
    rerank: "rerank model",
    other: "model of this kind",
  }[makes];
  const list = known.length === 0 ? "" : `; known: ${known.join(", ")}`;
  return [formatProblem([...path, "model"], `The embedded upstream has no ${kind} "${target.model}"${list}`)];
}

function keyProblems(file: JsonObject, env: ReadEnvironment): string[] {
  const problems: string[] = [];
  const groups = namesWith(isObject(file.groups) ? file.groups : {}, "default");
  const names = new Map<string, number>();
  const values = new Map<string, number>();
  for (const [index, key] of objects(file.keys)) {
    const path: Path = ["keys", index];
    if (typeof key.group === "string" && !groups.includes(key.group)) {
      problems.push(formatProblem([...path, "group"], `Unknown group "${key.group}"; known: ${groups.join(", ")}`));
    }
    if (typeof key.name === "string") {
      const first = names.get(key.name);
      if (first !== undefined) {
        problems.push(formatProblem([...path, "name"], `"${key.name}" is already keys[${first}]`));
      } else names.set(key.name, index);
    }
    const variable = variableOf(key.key);
    if (variable === undefined) continue;
    const value = env(variable);
    const wrong = secretProblem(variable, value);
    if (wrong !== undefined) problems.push(formatProblem([...path, "key", "env"], wrong));
    if (value === undefined || wrong !== undefined) continue;
    const first = values.get(value);
    if (first !== undefined) problems.push(formatProblem([...path, "key"], `The same key as keys[${first}]`));
    else values.set(value, index);
  }
  return problems;
}

/**
 * Lists the problems of the admin settings: weak keys, keys shared with clients, and an address used by another
 * listener.
 */
function adminProblems(file: JsonObject, env: ReadEnvironment): string[] {
  const { admin } = file;
  if (!isObject(admin)) return [];
  const problems: string[] = [];
  for (const name of ["key", "viewer_key"]) {
    const variable = variableOf(admin[name]);
    if (variable === undefined) continue;
    const value = env(variable);
    const wrong = secretProblem(variable, value);
    if (wrong !== undefined) problems.push(formatProblem(["admin", name, "env"], wrong));
    for (const [index, { key }] of wrong === undefined ? objects(file.keys) : []) {
      const other = variableOf(key);
      if (other === undefined || env(other) !== value) continue;
      problems.push(
        formatProblem(["admin", name], `The same key as keys[${index}]: that client would have admin access`),
      );
    }
  }
  const [key, viewerKey] = [variableOf(admin.key), variableOf(admin.viewer_key)];
  if (key !== undefined && viewerKey !== undefined && env(key) === env(viewerKey)) {
    problems.push(formatProblem(["admin", "viewer_key"], "The same key as `key`: viewers would have admin access"));
  }
  if (isObject(admin.listen) && isSameAddress(admin.listen, isObject(file.listen) ? file.listen : {})) {
    problems.push(
      formatProblem(
        ["admin", "listen"],
        "The same address as `listen`: leave it out to serve both there, or change the port",
      ),
    );
  }
  return problems;
}

/** Requires an address, and a key if the receiver verifies signatures. */
function alertProblems({ alerts }: JsonObject, env: ReadEnvironment): string[] {
  if (!isObject(alerts)) return [];
  const problems: string[] = [];
  const webhook = variableOf(alerts.webhook);
  const wrong = webhook === undefined ? undefined : webhookProblem(webhook, env(webhook));
  if (wrong !== undefined) problems.push(formatProblem(["alerts", "webhook", "env"], wrong));
  const secret = variableOf(alerts.secret);
  const weak = secret === undefined ? undefined : secretProblem(secret, env(secret));
  if (weak !== undefined) problems.push(formatProblem(["alerts", "secret", "env"], weak));
  if (alerts.secret === undefined && alerts.format !== "slack") {
    problems.push(formatProblem(["alerts", "secret"], 'Missing: webhooks of format "sluice" are signed'));
  }
  return problems;
}

/** Describes the problem of a webhook without its value. */
function webhookProblem(variable: string, value: string | undefined): string | undefined {
  const problem = upstreamSecretProblem(variable, value);
  if (problem !== undefined || value === undefined) return problem;
  const url = URL.parse(value);
  const isAddress = url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "" &&
    url.hash === "";
  if (isAddress) return undefined;
  return `The environment variable "${variable}" must hold an http or https address without a user`;
}

/** Wildcard addresses. */
const EVERYWHERE: readonly string[] = ["0.0.0.0", "::"];

/** Returns whether one process cannot listen on both addresses. */
function isSameAddress(one: JsonObject, other: JsonObject): boolean {
  const [a, b] = [listenSchema.safeParse(one).data, listenSchema.safeParse(other).data];
  if (a === undefined || b === undefined || a.port !== b.port || a.port === 0) return false;
  return a.hostname === b.hostname || [a, b].some(({ hostname }) => EVERYWHERE.includes(hostname));
}

/** The variable that holds a secret. An invalid name may be the secret itself, and is ignored. */
function variableOf(secret: Json | undefined): string | undefined {
  return secretSchema.safeParse(secret).data?.env;
}

/** Describes the problem of a secret without its value. */
function secretProblem(variable: string, value: string | undefined): string | undefined {
  if (value === undefined) return `The environment variable "${variable}" is not set`;
  if (value === "") return `The environment variable "${variable}" is empty`;
  if (/^[\x21-\x7e]{16,256}$/.test(value)) return undefined;
  return `The environment variable "${variable}" must hold 16 to 256 visible ASCII characters, no spaces`;
}

/** The problem of a secret that a header cannot carry, without its value. */
function upstreamSecretProblem(variable: string, value: string | undefined): string | undefined {
  if (value === undefined) return `The environment variable "${variable}" is not set`;
  if (value === "") return `The environment variable "${variable}" is empty`;
  if (/^[\x21-\x7e]{1,4096}$/.test(value)) return undefined;
  return `The environment variable "${variable}" must hold visible ASCII characters, no spaces`;
}

function* objects(list: Json | undefined): Iterable<[number, JsonObject]> {
  if (!Array.isArray(list)) return;
  for (const [index, item] of list.entries()) {
    if (isObject(item)) yield [index, item];
  }
}

function namesWith(record: JsonObject, always: string): string[] {
  return [...new Set([...Object.keys(record), always])];
}
