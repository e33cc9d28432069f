/** Validates the models of a configuration: their names, targets and embedding options. */
import { EMBEDDED_MODELS, EMBEDDED_TARGETS, EMBEDDED_UPSTREAM } from "../catalog/embedded.ts";
import { kindOfModalities, type ModelKind } from "../catalog/model.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import { isVendorName, type Vendor, type VendorName, vendorOf, VENDORS } from "../upstreams/vendors.ts";
import { formatProblem, type Path, pathText } from "./problems.ts";

/** Returns the configured protocols of an upstream, or its vendor's protocols. */
function upstreamProtocols(row: JsonObject): readonly string[] {
  if (Array.isArray(row.protocols)) return row.protocols.filter((name) => typeof name === "string");
  const { vendor } = row;
  return isVendorName(vendor) ? vendorOf(vendor).protocols : [];
}

/** Yields the problems with names, targets and prices of the configured models. */
export function* modelProblems(file: JsonObject): Generator<string> {
  yield* modelNameProblems(file);
  for (const [index, model] of objects(file.models)) {
    const path: Path = ["models", index];
    for (const [targetIndex, target] of objects(model.targets)) {
      yield* targetProblems(file, { target, kind: modelKindOf(model) }, [...path, "targets", targetIndex]);
    }
    yield* kindPriceProblems(model, path);
  }
}

/** Requires that each id, canonical slug or alias belongs to one row. Ids take precedence over the other names. */
function* modelNameProblems(file: JsonObject): Generator<string> {
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
      ...(Array.isArray(aliases) ? aliases : []).map((alias, aliasIndex): [Path, Json] => [
        ["models", index, "aliases", aliasIndex],
        alias,
      ]),
    ]),
  ];
  for (const [path, name] of names) {
    if (typeof name !== "string") continue;
    const holder = holders.get(name);
    if (holder !== undefined) yield formatProblem(path, `"${name}" is already ${holder}`);
    else holders.set(name, pathText(path.slice(0, 2)));
  }
}

/**
 * Validates that prices fit the kind of the model: models with text output count uploaded images as prompt tokens, and
 * image models bill images by size.
 */
function kindPriceProblems(model: JsonObject, path: Path): string[] {
  const [member, purpose] = modelKindOf(model) === "text"
    ? ["input_image", "make images"]
    : ["context_tiers", "answer in text"];
  const withWindows = priceListsOf(model, path).flatMap(([listPath, prices]): [Path, JsonObject][] => [
    [listPath, prices],
    ...[...objects(prices.time_windows)].map(([index, window]): [Path, JsonObject] => [
      [...listPath, "time_windows", index],
      window,
    ]),
  ]);
  return withWindows.flatMap(([listPath, prices]) =>
    prices[member] === undefined ? [] : [formatProblem([...listPath, member], `Only for models that ${purpose}`)]
  );
}

/** Returns the price lists of a model with their paths: its own, and those of its price changes and targets. */
export function priceListsOf({ pricing, price_changes, targets }: JsonObject, path: Path): [Path, JsonObject][] {
  return [
    ...isObject(pricing) ? [[[...path, "pricing"], pricing] satisfies [Path, JsonObject]] : [],
    ...[...objects(price_changes)].map(([index, change]): [Path, JsonObject] => [
      [...path, "price_changes", index],
      change,
    ]),
    ...[...objects(targets)].flatMap(([index, { pricing }]): [Path, JsonObject][] =>
      isObject(pricing) ? [[[...path, "targets", index, "pricing"], pricing]] : []
    ),
  ];
}

/** Returns the kind of a configured model by its output modalities; `text` if they are absent or malformed. */
function modelKindOf(model: JsonObject): ModelKind {
  const output = isObject(model.architecture) ? model.architecture.output_modalities : undefined;
  return Array.isArray(output) ? kindOfModalities(output) : "text";
}

interface TargetOfModel {
  target: JsonObject;
  kind: ModelKind;
}

function targetProblems(file: JsonObject, { target, kind }: TargetOfModel, path: Path): Iterable<string> {
  if (typeof target.upstream !== "string") return [];
  const upstreams = isObject(file.upstreams) ? file.upstreams : {};
  const known = namesWith(upstreams, EMBEDDED_UPSTREAM);
  if (!known.includes(target.upstream)) {
    return [formatProblem([...path, "upstream"], `Unknown upstream "${target.upstream}"; known: ${known.join(", ")}`)];
  }
  const upstream = Object.hasOwn(upstreams, target.upstream) ? upstreams[target.upstream] : { vendor: "embedded" };
  if (!isObject(upstream)) return [];
  if (upstream.vendor === "embedded") return embeddedTargetProblems({ target, kind }, path);
  return kind === "image" || kind === "embedding" || kind === "rerank"
    ? vendorProblems(upstream, { target, kind }, path)
    : textTargetProblems(upstream, target, path);
}

function* textTargetProblems(upstream: JsonObject, target: JsonObject, path: Path): Generator<string> {
  const supported = upstreamProtocols(upstream);
  if (typeof target.protocol === "string" && !supported.includes(target.protocol)) {
    yield formatProblem(
      [...path, "protocol"],
      `Upstream "${target.upstream}" does not support protocol "${target.protocol}"; it supports: ${
        supported.join(", ")
      }`,
    );
  }
  if (target.images !== undefined) {
    yield formatProblem([...path, "images"], "Only for models that make images");
  }
}

/** The ability that a vendor needs for models of a kind, and the words for a vendor without it. */
const ABILITIES = {
  image: { canDo: ({ images }: Vendor) => images === true, lack: "makes no images" },
  embedding: { canDo: ({ embeddings }: Vendor) => embeddings !== undefined, lack: "makes no embeddings" },
  rerank: { canDo: ({ rerank }: Vendor) => rerank === true, lack: "does not rerank" },
};

/** Requires a vendor that is able to serve the kind of the model, and for images no protocol. */
function* vendorProblems(
  upstream: JsonObject,
  { target, kind }: { target: JsonObject; kind: keyof typeof ABILITIES },
  path: Path,
): Generator<string> {
  const { canDo, lack } = ABILITIES[kind];
  if (isVendorName(upstream.vendor) && !canDo(vendorOf(upstream.vendor))) {
    const able = (Object.keys(VENDORS) as VendorName[]).filter((name) => canDo(vendorOf(name)));
    yield formatProblem(
      [...path, "upstream"],
      `Upstream "${target.upstream}" ${lack}: its vendor must be one of ${able.join(", ")}, or embedded`,
    );
  }
  if (kind === "image" && target.protocol !== undefined) {
    yield formatProblem([...path, "protocol"], "Only for models that answer in text");
  }
}

/** Requires `embedding` exactly on models that make embeddings, and equal vector lengths within a vector space. */
export function* embeddingProblems(file: JsonObject): Generator<string> {
  const spaces = new Map<string, { dimensions: Json | undefined; firstModel: string }>();
  for (const [index, model] of objects(file.models)) {
    const path: Path = ["models", index, "embedding"];
    const isEmbedding = modelKindOf(model) === "embedding";
    if (isEmbedding !== (model.embedding !== undefined)) {
      yield formatProblem(
        path,
        isEmbedding ? "Missing: the model makes embeddings" : "Only for models that make embeddings",
      );
    }
    if (!isObject(model.embedding)) continue;
    const { space, dimensions, min_dimensions: min } = model.embedding;
    if (typeof min === "number" && typeof dimensions === "number" && min > dimensions) {
      yield formatProblem([...path, "min_dimensions"], "More than `dimensions`");
    }
    if (typeof space !== "string") continue;
    const known = spaces.get(space);
    if (known === undefined) spaces.set(space, { dimensions, firstModel: `models[${index}]` });
    else if (known.dimensions !== dimensions) {
      yield formatProblem(
        [...path, "dimensions"],
        `Vectors of the space "${space}" have ${known.dimensions} dimensions in ${known.firstModel}: all vectors of a ` +
          "space need the same length",
      );
    }
  }
}

function embeddedTargetProblems({ target, kind }: TargetOfModel, path: Path): string[] {
  const known = kind === "other" ? [] : EMBEDDED_TARGETS[kind];
  if (typeof target.model !== "string" || known.includes(target.model)) return [];
  const noun = {
    text: "language model",
    image: "image model",
    embedding: "embedding model",
    rerank: "rerank model",
    other: "model of this kind",
  }[kind];
  const list = known.length === 0 ? "" : `; known: ${known.join(", ")}`;
  return [formatProblem([...path, "model"], `The embedded upstream has no ${noun} "${target.model}"${list}`)];
}

/** Yields the objects of a list with their indices. Other items are skipped; the schema reports them. */
export function* objects(list: Json | undefined): Iterable<[number, JsonObject]> {
  if (!Array.isArray(list)) return;
  for (const [index, item] of list.entries()) {
    if (isObject(item)) yield [index, item];
  }
}

/** Returns the names in a record, and a name that always exists. */
export function namesWith(record: JsonObject, always: string): string[] {
  return [...new Set([...Object.keys(record), always])];
}
