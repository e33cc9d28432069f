/** The types of requests for embeddings and reranking, and of the upstreams that answer them. */
import type { Model, Target } from "../catalog/model.ts";
import type { JsonObject, ObjectText } from "../json/mod.ts";
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";

/** One input of an embeddings request: a text, or token ids. */
export type EmbeddingInput = string | readonly number[];

/** A body: the client's text, and its value. */
export type RetrievalBody = ObjectText & { value: JsonObject };

/** A request for embeddings. */
export interface EmbeddingsRequest {
  kind: "embeddings";
  body: RetrievalBody;
  inputs: readonly EmbeddingInput[];
  /** Requested vector length; absent: the length of the model's vectors. */
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
  /** Maximum number of results; absent: all. */
  topN?: number;
  /** True if the results repeat the documents. */
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
  /** Collects members that the upstream does not support. */
  dropped: UnsupportedParameters;
  /** Called with the upstream's id of a request that it answers. If a call has several requests, the last id counts. */
  identify: (requestId: string) => void;
}

/** The vectors of one request. */
export interface Embeddings {
  /** One per input, in order, as JSON text in the requested format. */
  vectors: readonly string[];
  /** Tokens that the upstream reports; absent if it reports none, or an implausible number. */
  tokens?: number;
}

/** The reranked documents of one request. */
export interface Reranking {
  /** The text of the upstream's answer. */
  body: ObjectText;
  /** The value of the upstream's answer. */
  value: JsonObject;
  /** Tokens that the upstream reports; absent if it reports none, or an implausible number. */
  tokens?: number;
  /** Searches that the upstream reports; absent if it reports none. */
  searches?: number;
}

/** A source of embeddings and of reranked documents. */
export interface RetrievalUpstream {
  /**
   * Requests embeddings.
   * @throws {GatewayError} with fault `unfit` if the upstream does not support the request, so that nothing was sent
   */
  embed(call: RetrievalCall<EmbeddingsRequest>): Promise<Embeddings>;
  /** Requests a reranking. @throws {GatewayError} as `embed` */
  rerank(call: RetrievalCall<RerankRequest>): Promise<Reranking>;
  /** Frees connections. */
  close(): void;
}
