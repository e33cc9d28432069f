/** Validates the models of a configuration: their names, targets and embedding options. */
import { EMBEDDED_MODELS, EMBEDDED_TARGETS, EMBEDDED_UPSTREAM } from "../catalog/embedded.ts";
import { kindOfModalities, type ModelKind } from "../catalog/model.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import { isVendorName, type VendorName, vendorOf, VENDORS } from "../upstreams/vendors.ts";
import { formatProblem, type Path, pathText } from "./problems.ts";

/** The protocols of an upstream: configured, or those of its vendor. */
function protocolsOf(row: JsonObject): readonly string[] {
  if (Array.isArray(row.protocols)) return row.protocols.filter((name) => typeof name === "string");
  const { vendor } = row;
  return isVendorName(vendor) ? vendorOf(vendor).protocols : [];
}

export function* modelProblems(file: JsonObject): Generator<string> {
  yield* modelNameProblems(file);
  for (const [index, model] of objects(file.models)) {
    const path: Path = ["models", index];
    for (const [place, target] of objects(model.targets)) {
      yield* targetProblems(file, { target, makes: makesOf(model) }, [...path, "targets", place]);
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
      ...(Array.isArray(aliases) ? aliases : []).map((alias, place): [Path, Json] => [
        ["models", index, "aliases", place],
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

function targetProblems(file: JsonObject, { target, makes }: TargetOfModel, path: Path): Iterable<string> {
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

function* textTargetProblems(upstream: JsonObject, target: JsonObject, path: Path): Generator<string> {
  const supported = protocolsOf(upstream);
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

/** Requires a vendor with embeddings or reranking. */
function retrievalTargetProblems(
  upstream: JsonObject,
  { target, makes }: { target: JsonObject; makes: "embedding" | "rerank" },
  path: Path,
): string[] {
  const { vendor } = upstream;
  if (!isVendorName(vendor)) return [];
  const canDo = (name: VendorName) =>
    makes === "embedding" ? vendorOf(name).embeddings !== undefined : vendorOf(name).rerank === true;
  if (canDo(vendor)) return [];
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
export function* embeddingProblems(file: JsonObject): Generator<string> {
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
    const { space, dimensions, min_dimensions: minDimensions } = model.embedding;
    if (typeof minDimensions === "number" && typeof dimensions === "number" && minDimensions > dimensions) {
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
function* imageTargetProblems(upstream: JsonObject, target: JsonObject, path: Path): Generator<string> {
  const { vendor } = upstream;
  if (isVendorName(vendor) && vendorOf(vendor).images !== true) {
    const able = (Object.keys(VENDORS) as VendorName[]).filter((name) => vendorOf(name).images === true);
    yield formatProblem(
      [...path, "upstream"],
      `Upstream "${target.upstream}" makes no images: its vendor must be one of ${able.join(", ")}, or embedded`,
    );
  }
  if (target.protocol !== undefined) {
    yield formatProblem([...path, "protocol"], "Only for models that answer in text");
  }
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

export function* objects(list: Json | undefined): Iterable<[number, JsonObject]> {
  if (!Array.isArray(list)) return;
  for (const [index, item] of list.entries()) {
    if (isObject(item)) yield [index, item];
  }
}

export function namesWith(record: JsonObject, always: string): string[] {
  return [...new Set([...Object.keys(record), always])];
}
