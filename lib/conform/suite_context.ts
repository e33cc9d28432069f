/** The context of the checks: requests to the gateway under test, and cached answers. */
import { isObject, type JsonObject } from "../json/mod.ts";
import { Mismatch, show, Skip, type SuitePart } from "./check.ts";
import { objectOf, readWire, type WireStream } from "./sse.ts";

/** The gateway under test, and the key. */
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
  /** Timeout of a request, in milliseconds. */
  timeoutMs: number;
  /** Size of a body that the gateway must refuse as too large; absent: 34 MiB. */
  largeBytes?: number;
}

/** A request. */
export interface SuiteRequest {
  method?: string;
  path: string;
  /** Sent as JSON; a string is sent unchanged. */
  body?: JsonObject | string | FormData;
  headers?: Record<string, string>;
  /** Replaces the subject's key; `null` for none. */
  key?: string | null;
  /** The header of the key; absent: the usual one of the path's protocol. */
  credential?: "bearer" | "x-api-key" | "x-goog-api-key";
}

/** A whole answer. */
export interface HttpAnswer {
  status: number;
  header(name: string): string | null;
  text: string;
}

/** An answer whose events can be read one by one. */
export interface OpenAnswer {
  status: number;
  /** Waits for the first bytes of the body. */
  first(): Promise<boolean>;
  disconnect(): void;
}

/** A capability of a model, as in `supported_parameters`; `image` as in its modalities. */
export type Ability = "tools" | "tool_choice" | "response_format" | "stop" | "reasoning" | "image";

/** Longest answer read, in UTF-16 code units. */
const ANSWER_LENGTH = 64 * 1024 * 1024;
/** Most retries after a rate limit, and the longest wait. */
const LIMITED_TIMES = 3;
const LIMITED_MS = 20_000;
/** Version of the messages protocol in requests, except in checks of versions. */
const VERSION = "2023-06-01";
/** Statuses of requests that the model does not support. */
const REFUSED = [400, 404, 422, 501];

/** One run against one gateway. */
export class SuiteContext {
  readonly subject: Subject;
  readonly #memory = new Map<string, Promise<unknown>>();
  readonly #paths: Partial<Record<SuitePart, string>>;
  /** Requests sent so far. */
  requests = 0;

  constructor(subject: Subject, paths: Partial<Record<SuitePart, string>> = {}) {
    this.subject = subject;
    this.#paths = paths;
  }

  /** Path of a part's endpoint. @throws {Skip} if the gateway has none */
  path(part: SuitePart): string {
    const path = this.#paths[part];
    if (path === undefined) throw new Skip("the gateway does not serve it");
    return path;
  }

  /** Caches the value of `make` for all checks. */
  once<T>(name: string, make: () => Promise<T>): Promise<T> {
    const known = this.#memory.get(name);
    if (known !== undefined) return known as Promise<T>;
    const result = make();
    this.#memory.set(name, result);
    return result;
  }

  /** Sends a request and reads the whole answer. Waits and retries after a rate limit. */
  async ask(ask: SuiteRequest): Promise<HttpAnswer> {
    for (let time = 1;; time++) {
      const answer = await this.#askOnce(ask);
      const waitMs = Number(answer.header("retry-after") ?? NaN) * 1000;
      if (answer.status !== 429 || time === LIMITED_TIMES || !(waitMs <= LIMITED_MS)) return answer;
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  async #askOnce(ask: SuiteRequest): Promise<HttpAnswer> {
    const { response, end } = await this.#send(ask);
    try {
      // Keeps a byte order mark, which is an error: strict clients fail on it.
      const reader = response.body?.pipeThrough(new TextDecoderStream("utf-8", { ignoreBOM: true })).getReader();
      let text = "";
      for (let piece = await reader?.read(); piece?.value !== undefined; piece = await reader?.read()) {
        text += piece.value;
        if (text.length <= ANSWER_LENGTH) continue;
        void reader?.cancel().catch(() => {});
        throw new Mismatch("an answer of less than 64 MiB", "more");
      }
      return { status: response.status, header: (name) => response.headers.get(name), text };
    } catch (error) {
      throw error instanceof Mismatch ? error : new Mismatch("a whole answer", causeOf(error));
    } finally {
      end();
    }
  }

  /** Sends a request and opens its answer, for checks of disconnecting clients. */
  async open(ask: SuiteRequest): Promise<OpenAnswer> {
    const { response, end, abort } = await this.#send(ask);
    const reader = response.body?.getReader();
    return {
      status: response.status,
      first: async () => (await reader?.read())?.value !== undefined,
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
    const native = path.endsWith("/messages") || path.includes("/messages/") || path.includes("/anthropic/");
    const googles = /^\/v1beta\//.test(path);
    const style = credential ?? (native ? "x-api-key" : googles ? "x-goog-api-key" : "bearer");
    const isJson = body !== undefined && !(body instanceof FormData);
    try {
      const response = await fetch(this.subject.origin + path, {
        method,
        redirect: "manual",
        signal: call.signal,
        headers: {
          ...(isJson && { "content-type": "application/json" }),
          ...(native && { "anthropic-version": VERSION }),
          ...(key !== null && (style === "bearer" ? { authorization: `Bearer ${key}` } : { [style]: key })),
          ...headers,
        },
        ...(body !== undefined && { body: isJson && typeof body !== "string" ? JSON.stringify(body) : body as string }),
      });
      return { response, end: () => clearTimeout(timer), abort: () => call.abort() };
    } catch (error) {
      clearTimeout(timer);
      throw error instanceof Mismatch ? error : new Mismatch("an answer", causeOf(error));
    }
  }

  /** The model's entry in the model list; `undefined` if it cannot be read. */
  row(): Promise<JsonObject | undefined> {
    return this.once("row", async () => {
      const answer = await this.ask({ method: "GET", path: this.path("models") });
      if (answer.status !== 200) return undefined;
      const { data } = objectOf(answer.text, "the catalog");
      return Array.isArray(data) ? data.filter(isObject).find(({ id }) => id === this.subject.model) : undefined;
    }).catch(() => undefined);
  }

  /** True if the catalog lists the ability; `undefined` if the catalog does not list abilities. */
  async claims(ability: Ability): Promise<boolean | undefined> {
    const row = await this.row();
    if (ability === "image") {
      const inputs = isObject(row?.architecture) ? row.architecture.input_modalities : undefined;
      return Array.isArray(inputs) ? inputs.includes("image") : undefined;
    }
    const known = row?.supported_parameters;
    return Array.isArray(known) ? known.includes(ability) : undefined;
  }

  /**
   * Sends a request that must succeed. For an optional ability, the model list decides whether the model supports it;
   * without a list, a refusal does.
   * @throws {Skip} if the model does not support it @throws {Mismatch} for any other status than 200
   */
  async good(ask: SuiteRequest, ability?: Ability): Promise<HttpAnswer> {
    if (ability !== undefined && await this.claims(ability) === false) {
      throw new Skip(`the catalog does not list "${ability}" for this model`);
    }
    const answer = await this.ask(ask);
    if (answer.status === 200) return answer;
    if (ability !== undefined && REFUSED.includes(answer.status) && await this.claims(ability) === undefined) {
      throw new Skip(`the model refuses it with ${answer.status}: ${show(answer.text)}`);
    }
    throw new Mismatch("status 200", `${answer.status}: ${show(answer.text)}`);
  }

  /** Sends a streaming request that must succeed. */
  async stream(ask: SuiteRequest, ability?: Ability): Promise<WireStream & { answer: HttpAnswer }> {
    const answer = await this.good(ask, ability);
    return { ...readWire(answer.text), answer };
  }
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  return cause instanceof Error && !message.includes(cause.message) ? `${message}: ${cause.message}` : message;
}
