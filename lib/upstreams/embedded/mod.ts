/**
 * The embedded models as upstreams. The modules that answer are imported with the first request, so that a start does
 * not wait for them.
 */
import { endIdleWorkers } from "../../images/codec_pool.ts";
import type { ImageUpstream } from "../../images/types.ts";
import type { RetrievalUpstream } from "../../retrieval/types.ts";
import type { Upstream } from "../upstream.ts";
import { ISSUER } from "./thinking.ts";

/** Creates the upstream of the language models. */
export function createEmbedded(): Upstream {
  return {
    checksContext: false,
    issuerOf: () => ISSUER,
    generate: async (call) => await (await import("./echo.ts")).generateEmbedded(call),
    close() {},
  };
}

/** Creates the upstream of the image model. */
export function createCanvas(): ImageUpstream {
  return {
    isLocal: true,
    create: async (call) => (await import("./canvas.ts")).paintImages(call),
    close: endIdleWorkers,
  };
}

/** Creates the upstream of the models for embeddings and reranking. */
export function createEmbeddedRetrieval(): RetrievalUpstream {
  return {
    embed: async (call) => await (await import("./retrieval.ts")).embed(call),
    rerank: async (call) => await (await import("./retrieval.ts")).rerank(call),
    close() {},
  };
}

/** Yields functions that import the modules of all these models. */
export function* embeddedImports(): Generator<() => Promise<unknown>> {
  yield () => import("./echo.ts");
  yield () => import("./canvas.ts");
  yield () => import("./retrieval.ts");
}
