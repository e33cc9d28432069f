/** Requests for embeddings and reranking, and the upstreams that answer them. */
import type { Model, Target } from "../catalog/model.ts";
import type { JsonObject, ObjectText } from "../json/mod.ts";
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";

/** One input of an embeddings request: a text, or token ids. */
export type EmbeddingInput = string | readonly number[];

/** A body in the client's text, and its value. */
export type RetrievalBody = ObjectText & { value: JsonObject };

/** A request for embeddings. */
export interface EmbeddingsRequest {
  kind: "embeddings";
  body: RetrievalBody;
  inputs: readonly EmbeddingInput[];
  /** Requested vector length; absent: the model's. */
  dimensions?: number;
  /** True for base64 of little-endian 32-bit floats, false for arrays of numbers. */
  base64: boolean;
}

/** A request to rerank documents. */
export interface RerankRequest {
  kind: "rerank";
  body: RetrievalBody;
  query: string;
  documents: readonly string[];
  /** Most results; absent: all. */
  topN?: number;
  returnDocuments: boolean;
}

/** A request of either kind. */
export type RetrievalRequest = EmbeddingsRequest | RerankRequest;

/** One call of an upstream. */
export interface RetrievalCall<R extends RetrievalRequest> {
  request: R;
  model: Model;
  target: Target;
  /** Aborts when the client disconnects or the process ends. */
  signal: AbortSignal;
  /** Collects members that the upstream cannot express. */
  dropped: UnsupportedParameters;
  /** Takes the upstream's id of a request that it answers. Of several requests for one call, the last id counts. */
  identify: (requestId: string) => void;
}

/** The vectors of one request. */
export interface Embeddings {
  /** One per input, in order, as JSON text in the requested format. */
  vectors: readonly string[];
  /** Tokens reported by the upstream; absent: none, or an implausible number. */
  tokens?: number;
}

/** The reranked documents of one request. */
export interface Reranking {
  /** The upstream's answer. */
  body: ObjectText;
  value: JsonObject;
  /** As in `Embeddings`. */
  tokens?: number;
  /** Searches reported by the upstream; absent: none. */
  searches?: number;
}

/** A source of embeddings and of reranked documents. */
export interface RetrievalUpstream {
  /**
   * Requests embeddings. @throws {GatewayError} with fault `unfit` if the upstream cannot express the request and was
   * not asked
   */
  embed(call: RetrievalCall<EmbeddingsRequest>): Promise<Embeddings>;
  /** Requests a reranking. @throws {GatewayError} as `embed` */
  rerank(call: RetrievalCall<RerankRequest>): Promise<Reranking>;
  /** Frees connections. */
  close(): void;
}
