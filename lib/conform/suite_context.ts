/**
 * The context that all checks share: it sends requests to the gateway under test and keeps answers that several checks
 * need.
 */
import { reasonOf } from "../causes.ts";
import { isObject, type JsonObject } from "../json/mod.ts";
import { Mismatch, show, Skip, type SuitePart } from "./check.ts";
import { objectOf, readWire, type WireStream } from "./sse.ts";

/** The gateway under test, with the key and the models to test. */
export interface Subject {
  /** Base URL of the gateway, without a trailing slash and without `/v1`. */
  origin: string;
  key: string;
  model: string;
  /** Absent: images are not tested. */
  imageModel?: string;
  /** Absent: embeddings are not tested. */
  embeddingModel?: string;
  /** Absent: reranking is not tested. */
  rerankModel?: string;
  timeoutMs: number;
  /** Size of a body that the gateway must refuse as too large, in bytes; absent: 34 MiB. */
  largeBytes?: number;
}

/** A request to the gateway under test. */
export interface SuiteRequest {
  /** Absent: POST. */
  method?: string;
  path: string;
  /** Sent as JSON; a string is sent unchanged. */
  body?: JsonObject | string | FormData;
  headers?: Record<string, string>;
  /** Replaces the subject's key; `null` for none. */
  key?: string | null;
  /** The header that carries the key; absent: the usual one of the path's protocol. */
  credential?: "bearer" | "x-api-key" | "x-goog-api-key";
}

/** An answer that was read to its end. */
export interface HttpAnswer {
  status: number;
  header(name: string): string | null;
  text: string;
}

/** An answer whose body is still open, for checks of disconnecting clients. */
export interface OpenAnswer {
  status: number;
  /** Waits for the first bytes of the body; false if the body is empty. @throws {Mismatch} if it breaks off before */
  first(): Promise<boolean>;
  disconnect(): void;
}

/** An optional capability of a model: a value of `supported_parameters`, or `image` from its input modalities. */
export type Capability = "tools" | "tool_choice" | "response_format" | "stop" | "reasoning" | "image";

/** Longest answer read, in UTF-16 code units. */
const MAX_ANSWER_UNITS = 64 * 1024 * 1024;
/** Number of times a rate-limited request is sent, and the longest `retry-after` that is waited for. */
const MAX_ATTEMPTS = 3;
const MAX_RETRY_WAIT_MS = 20_000;
/** Version of the messages protocol in requests, except in checks of versions. */
const MESSAGES_VERSION = "2023-06-01";
/** Statuses by which a gateway may refuse what a model does not support. */
const UNSUPPORTED_STATUSES = [400, 404, 422, 501];

/** The state of one run against one gateway. */
export class SuiteContext {
  readonly subject: Subject;
  readonly #cache = new Map<string, Promise<unknown>>();
  readonly #paths: Partial<Record<SuitePart, string>>;
  /** Requests sent so far. */
  requests = 0;

  constructor(subject: Subject, paths: Partial<Record<SuitePart, string>> = {}) {
    this.subject = subject;
    this.#paths = paths;
  }

  /** Returns the path of a part's endpoint. @throws {Skip} if the gateway has none */
  path(part: SuitePart): string {
    const path = this.#paths[part];
    if (path === undefined) throw new Skip("the gateway does not serve it");
    return path;
  }

  /** Returns the value of `make`, which is called only for the first check that asks for this name. */
  once<T>(name: string, make: () => Promise<T>): Promise<T> {
    const cached = this.#cache.get(name);
    if (cached !== undefined) return cached as Promise<T>;
    const value = make();
    this.#cache.set(name, value);
    return value;
  }

  /**
   * Sends a request and reads the whole answer. Waits and retries after a rate limit.
   * @throws {Mismatch} if no whole answer arrives in time
   */
  async ask(request: SuiteRequest): Promise<HttpAnswer> {
    for (let attempt = 1;; attempt++) {
      const answer = await this.#askOnce(request);
      const waitMs = Number(answer.header("retry-after") ?? NaN) * 1000;
      if (answer.status !== 429 || attempt === MAX_ATTEMPTS || !(waitMs <= MAX_RETRY_WAIT_MS)) return answer;
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  async #askOnce(request: SuiteRequest): Promise<HttpAnswer> {
    const { response, end } = await this.#send(request);
    try {
      // Keeps a byte order mark, which is an error: strict clients fail on it.
      const reader = response.body?.pipeThrough(new TextDecoderStream("utf-8", { ignoreBOM: true })).getReader();
      let text = "";
      for (let chunk = await reader?.read(); chunk?.value !== undefined; chunk = await reader?.read()) {
        text += chunk.value;
        if (text.length <= MAX_ANSWER_UNITS) continue;
        void reader?.cancel().catch(() => {});
        throw new Mismatch("an answer of less than 64 MiB", "more");
      }
      return { status: response.status, header: (name) => response.headers.get(name), text };
    } catch (error) {
      throw error instanceof Mismatch ? error : new Mismatch("a whole answer", reasonOf(error));
    } finally {
      end();
    }
  }

  /** Sends a request and opens its answer, for checks of disconnecting clients. */
  async open(request: SuiteRequest): Promise<OpenAnswer> {
    const { response, end, abort } = await this.#send(request);
    const reader = response.body?.getReader();
    return {
      status: response.status,
      async first() {
        try {
          return (await reader?.read())?.value !== undefined;
        } catch (error) {
          throw error instanceof Mismatch ? error : new Mismatch("a body", reasonOf(error));
        }
      },
      disconnect() {
        end();
        abort();
        void reader?.cancel().catch(() => {});
      },
    };
  }

  async #send({ method = "POST", path, body, headers = {}, key = this.subject.key, credential }: SuiteRequest) {
    this.requests++;
    const call = new AbortController();
    const { timeoutMs } = this.subject;
    const timer = setTimeout(
      () => call.abort(new Mismatch(`an answer within ${timeoutMs / 1000} s`, "none")),
      timeoutMs,
    );
    const isMessages = path.endsWith("/messages") || path.includes("/messages/") || path.includes("/anthropic/");
    const otherHeader = path.startsWith("/v1beta/") ? "x-goog-api-key" : "bearer";
    const keyHeader = credential ?? (isMessages ? "x-api-key" : otherHeader);
    const isJson = body !== undefined && !(body instanceof FormData);
    try {
      const response = await fetch(this.subject.origin + path, {
        method,
        redirect: "manual",
        signal: call.signal,
        headers: {
          ...(isJson && { "content-type": "application/json" }),
          ...(isMessages && { "anthropic-version": MESSAGES_VERSION }),
          ...(key !== null && (keyHeader === "bearer" ? { authorization: `Bearer ${key}` } : { [keyHeader]: key })),
          ...headers,
        },
        ...(body !== undefined && { body: isJson && typeof body !== "string" ? JSON.stringify(body) : body as string }),
      });
      return { response, end: () => clearTimeout(timer), abort: () => call.abort() };
    } catch (error) {
      clearTimeout(timer);
      throw error instanceof Mismatch ? error : new Mismatch("an answer", reasonOf(error));
    }
  }

  /** Returns the model's entry in the model list; `undefined` if there is none or the list cannot be read. */
  row(): Promise<JsonObject | undefined> {
    return this.once("row", async () => {
      const answer = await this.ask({ method: "GET", path: this.path("models") });
      if (answer.status !== 200) return undefined;
      const { data } = objectOf(answer.text, "the catalog");
      return Array.isArray(data) ? data.filter(isObject).find(({ id }) => id === this.subject.model) : undefined;
    }).catch(() => undefined);
  }

  /** Returns whether the model list says that the model has the ability; `undefined` if it lists no abilities. */
  async claims(ability: Capability): Promise<boolean | undefined> {
    const row = await this.row();
    if (ability === "image") {
      const inputs = isObject(row?.architecture) ? row.architecture.input_modalities : undefined;
      return Array.isArray(inputs) ? inputs.includes("image") : undefined;
    }
    const abilities = row?.supported_parameters;
    return Array.isArray(abilities) ? abilities.includes(ability) : undefined;
  }

  /**
   * Sends a request that must succeed. For an optional ability, the model list decides whether the model supports it;
   * without a list, a refusal does.
   * @throws {Skip} if the model does not support it @throws {Mismatch} for any other status than 200
   */
  async good(request: SuiteRequest, ability?: Capability): Promise<HttpAnswer> {
    if (ability !== undefined && await this.claims(ability) === false) {
      throw new Skip(`the catalog does not list "${ability}" for this model`);
    }
    const answer = await this.ask(request);
    if (answer.status === 200) return answer;
    if (
      ability !== undefined && UNSUPPORTED_STATUSES.includes(answer.status) && await this.claims(ability) === undefined
    ) {
      throw new Skip(`the model refuses it with ${answer.status}: ${show(answer.text)}`);
    }
    throw new Mismatch("status 200", `${answer.status}: ${show(answer.text)}`);
  }

  /** Sends a streaming request that must succeed, as in `good`, and parses its events. */
  async stream(request: SuiteRequest, ability?: Capability): Promise<WireStream & { answer: HttpAnswer }> {
    const answer = await this.good(request, ability);
    return { ...readWire(answer.text), answer };
  }
}
