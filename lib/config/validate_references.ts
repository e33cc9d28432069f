/** Validates references between members of a configuration, and references to environment variables. */
import { embeddingProblems, modelProblems, namesWith, objects } from "./validate_models.ts";
import type { ReadEnvironment } from "../secret.ts";
import { listenSchema, secretSchema } from "../config.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import { isVendorName, protocolsOf, vendorOf, VENDORS } from "../upstreams/vendors.ts";
import { validatePrices } from "./validate_prices.ts";
import { formatProblem, type Path } from "./problems.ts";

/**
 * Returns the problems with references in the unparsed file. Malformed values are skipped; the schema reports them, and
 * all problems are shown together.
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

const PROTOCOLS: ReadonlySet<string> = new Set(Object.values(VENDORS).flatMap(protocolsOf));

/** Requires a shared store for a shared configuration. */
function nodeProblems({ nodes, store }: JsonObject): string[] {
  if (!isObject(nodes) || nodes.config !== "store" || isPostgres(store)) return [];
  return [formatProblem(["nodes", "config"], '"store" needs a shared store: set `store` to a Postgres database')];
}

/** Requires a shared store and a fixed port for processes that share the port. */
function* reusePortProblems({ listen, store, limits_store }: JsonObject): Generator<string> {
  if (!isObject(listen) || listen.reuse_port !== true) return;
  if (listen.port === 0) {
    yield formatProblem(["listen", "port"], "Processes cannot share port 0 (any free port): set a port");
  }
  if (!isPostgres(store)) {
    yield formatProblem(
      ["listen", "reuse_port"],
      "Processes that share a port need a shared store: set `store` to a Postgres database",
    );
  }
  if (typeof limits_store !== "string" || !/^rediss?:/.test(limits_store)) {
    yield formatProblem(
      ["listen", "reuse_port"],
      "Processes that share a port would count limits separately: set `limits_store` to a Redis server",
    );
  }
}

function isPostgres(store: Json | undefined): boolean {
  return typeof store === "string" && /^postgres(ql)?:/.test(store);
}

/** Requires an address, a key if the vendor needs one, and protocols that the vendor supports. */
function* upstreamProblems(file: JsonObject, env: ReadEnvironment): Generator<string> {
  for (const [name, row] of Object.entries(isObject(file.upstreams) ? file.upstreams : {})) {
    if (!isObject(row) || !isVendorName(row.vendor)) continue;
    const path: Path = ["upstreams", name];
    const vendor = vendorOf(row.vendor);
    if (row.base_url === undefined && vendor.baseUrl === undefined) {
      yield formatProblem([...path, "base_url"], `Missing: vendor "${row.vendor}" has no default address`);
    }
    if (row.api_key === undefined && vendor.keyless !== true) {
      yield formatProblem([...path, "api_key"], `Missing: vendor "${row.vendor}" requires a key`);
    }
    const variable = variableOf(row.api_key);
    const problem = variable === undefined ? undefined : secretProblem(variable, env(variable), FOREIGN_SECRET);
    if (problem !== undefined) yield formatProblem([...path, "api_key", "env"], problem);
    const supported: readonly string[] = protocolsOf(vendor);
    for (const protocol of Array.isArray(row.protocols) ? row.protocols : []) {
      if (typeof protocol !== "string" || supported.includes(protocol) || !PROTOCOLS.has(protocol)) continue;
      yield formatProblem(
        [...path, "protocols"],
        `Vendor "${row.vendor}" does not support protocol "${protocol}"; it supports: ${supported.join(", ")}`,
      );
    }
  }
}

function* keyProblems(file: JsonObject, env: ReadEnvironment): Generator<string> {
  const groups = namesWith(isObject(file.groups) ? file.groups : {}, "default");
  const names = new Map<string, number>();
  const values = new Map<string, number>();
  for (const [index, key] of objects(file.keys)) {
    const path: Path = ["keys", index];
    if (typeof key.group === "string" && !groups.includes(key.group)) {
      yield formatProblem([...path, "group"], `Unknown group "${key.group}"; known: ${groups.join(", ")}`);
    }
    if (typeof key.name === "string") {
      const first = names.get(key.name);
      if (first !== undefined) {
        yield formatProblem([...path, "name"], `"${key.name}" is already keys[${first}]`);
      } else names.set(key.name, index);
    }
    const variable = variableOf(key.key);
    if (variable === undefined) continue;
    const value = env(variable);
    const problem = secretProblem(variable, value);
    if (problem !== undefined) yield formatProblem([...path, "key", "env"], problem);
    if (value === undefined || problem !== undefined) continue;
    const first = values.get(value);
    if (first !== undefined) yield formatProblem([...path, "key"], `The same key as keys[${first}]`);
    else values.set(value, index);
  }
}

/**
 * Yields the problems of the admin settings: weak keys, keys that clients have too, and an address that another
 * listener uses.
 */
function* adminProblems(file: JsonObject, env: ReadEnvironment): Generator<string> {
  const { admin } = file;
  if (!isObject(admin)) return;
  for (const name of ["key", "viewer_key"]) {
    const variable = variableOf(admin[name]);
    if (variable === undefined) continue;
    const value = env(variable);
    const problem = secretProblem(variable, value);
    if (problem !== undefined) yield formatProblem(["admin", name, "env"], problem);
    for (const [index, { key }] of problem === undefined ? objects(file.keys) : []) {
      const other = variableOf(key);
      if (other === undefined || env(other) !== value) continue;
      yield formatProblem(["admin", name], `The same key as keys[${index}]: that client would have admin access`);
    }
  }
  const [key, viewerKey] = [variableOf(admin.key), variableOf(admin.viewer_key)];
  if (key !== undefined && viewerKey !== undefined && env(key) === env(viewerKey)) {
    yield formatProblem(["admin", "viewer_key"], "The same key as `key`: viewers would have admin access");
  }
  if (isObject(admin.listen) && isSameAddress(admin.listen, isObject(file.listen) ? file.listen : {})) {
    yield formatProblem(
      ["admin", "listen"],
      "The same address as `listen`: leave it out to serve both there, or change the port",
    );
  }
}

/** Requires an address, and a signing key unless the format is `slack`. */
function* alertProblems({ alerts }: JsonObject, env: ReadEnvironment): Generator<string> {
  if (!isObject(alerts)) return;
  const webhook = variableOf(alerts.webhook);
  const problem = webhook === undefined ? undefined : webhookProblem(webhook, env(webhook));
  if (problem !== undefined) yield formatProblem(["alerts", "webhook", "env"], problem);
  const secret = variableOf(alerts.secret);
  const weak = secret === undefined ? undefined : secretProblem(secret, env(secret));
  if (weak !== undefined) yield formatProblem(["alerts", "secret", "env"], weak);
  if (alerts.secret === undefined && alerts.format !== "slack") {
    yield formatProblem(["alerts", "secret"], 'Missing: alerts in the format "sluice" must be signed');
  }
}

/** Returns the problem with a webhook's address, without quoting the address; `undefined` if there is none. */
function webhookProblem(variable: string, value: string | undefined): string | undefined {
  const problem = secretProblem(variable, value, FOREIGN_SECRET);
  if (problem !== undefined || value === undefined) return problem;
  const url = URL.parse(value);
  const isAddress = url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "" &&
    url.hash === "";
  if (isAddress) return undefined;
  return `The environment variable "${variable}" must hold an http or https address without a user`;
}

const WILDCARD_ADDRESSES: readonly string[] = ["0.0.0.0", "::"];

/** Returns whether two addresses are the same, so that one process cannot listen on both. */
function isSameAddress(one: JsonObject, other: JsonObject): boolean {
  const [a, b] = [listenSchema.safeParse(one).data, listenSchema.safeParse(other).data];
  if (a === undefined || b === undefined || a.port !== b.port || a.port === 0) return false;
  return a.hostname === b.hostname || [a, b].some(({ hostname }) => WILDCARD_ADDRESSES.includes(hostname));
}

/** Returns the name of the variable that holds a secret. An invalid name is ignored: it may be the secret itself. */
function variableOf(secret: Json | undefined): string | undefined {
  return secretSchema.safeParse(secret).data?.env;
}

/** A secret that clients send to Sluice or that signs its alerts. */
const OWN_SECRET = { pattern: /^[\x21-\x7e]{16,256}$/, expected: "16 to 256 visible ASCII characters, no spaces" };

/** A secret that others chose. Sluice sends it in a header or connects to it. */
const FOREIGN_SECRET = { pattern: /^[\x21-\x7e]{1,4096}$/, expected: "visible ASCII characters, no spaces" };

/** Returns the problem with a secret, without quoting it; `undefined` if there is none. */
function secretProblem(
  variable: string,
  value: string | undefined,
  { pattern, expected } = OWN_SECRET,
): string | undefined {
  if (value === undefined) return `The environment variable "${variable}" is not set`;
  if (value === "") return `The environment variable "${variable}" is empty`;
  return pattern.test(value) ? undefined : `The environment variable "${variable}" must hold ${expected}`;
}
