/** The context of the checks: the gateway under test, requests to it, and the answers so far. */
import { isObject, type JsonObject } from "../json/mod.ts";
import { Mismatch, show, Skip, type SuitePart } from "./check.ts";
import { objectOf, readWire, type WireStream } from "./sse.ts";

/** The gateway under test, and the key. */
export interface Subject {
  /** Address of the gateway, without a slash at the end and without `/v1`. */
  origin: string;
  key: string;
  model: string;
  /** Absent: pictures are not tried. */
  imageModel?: string;
  /** Absent: embeddings are not tried. */
  embeddingModel?: string;
  /** Absent: reranking is not tried. */
  rerankModel?: string;
  /** Time that one request may take, in milliseconds. */
  timeoutMs: number;
}

/** A request. */
export interface SuiteRequest {
  method?: string;
  path: string;
  /** Sent as JSON; a text is sent as it is. */
  body?: JsonObject | string | FormData;
  headers?: Record<string, string>;
  /** Another key than the subject's; `null` for none. */
  key?: string | null;
  /** The header of the key; absent: that of the path's protocol. */
  credential?: "bearer" | "x-api-key";
}

/** A whole answer. */
export interface HttpAnswer {
  status: number;
  header(name: string): string | null;
  text: string;
}

/** An answer whose events may be read one by one. */
export interface OpenAnswer {
  status: number;
  /** Waits for the first bytes of the body. */
  first(): Promise<boolean>;
  leave(): void;
}

/** Abilities of a model, by its `supported_parameters`; `image` by its modalities. */
export type Ability = "tools" | "tool_choice" | "response_format" | "stop" | "reasoning" | "image";

/** Largest answer that is read, in UTF-16 code units. */
const ANSWER_LENGTH = 64 * 1024 * 1024;
/** Retries after a rate limit, and the longest wait. */
const LIMITED_TIMES = 3;
const LIMITED_MS = 20_000;
/** Version of the messages protocol that is asked in, but where another is tried. */
const VERSION = "2023-06-01";
/** Statuses by which a request is refused that the model cannot serve. */
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

  /** Returns the value of `make`, which runs once for all checks. */
  once<T>(name: string, make: () => Promise<T>): Promise<T> {
    const known = this.#memory.get(name);
    if (known !== undefined) return known as Promise<T>;
    const made = make();
    this.#memory.set(name, made);
    return made;
  }

  /** Sends a request and reads the whole answer. Waits where a limit of rate asks for it. */
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
      // As it came: a byte order mark at the beginning is a fault, which strict clients stumble over.
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

  /** Begins to read an answer, for clients that leave. */
  async open(ask: SuiteRequest): Promise<OpenAnswer> {
    const { response, end, abort } = await this.#send(ask);
    const reader = response.body?.getReader();
    return {
      status: response.status,
      first: async () => (await reader?.read())?.value !== undefined,
      leave() {
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
    const named = credential ?? (native ? "x-api-key" : "bearer");
    const isJson = body !== undefined && !(body instanceof FormData);
    try {
      const response = await fetch(this.subject.origin + path, {
        method,
        redirect: "manual",
        signal: call.signal,
        headers: {
          ...(isJson && { "content-type": "application/json" }),
          ...(native && { "anthropic-version": VERSION }),
          ...(key !== null && (named === "bearer" ? { authorization: `Bearer ${key}` } : { "x-api-key": key })),
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

  /** The catalog's row of the model; `undefined` where it cannot be read. */
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
   * An answer that must be good. Where it needs what not every model can, the catalog's word decides; where it has none,
   * a refusal does.
   *
   * @throws {Skip} if the model cannot @throws {Mismatch} for every other status than 200
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

  /** A stream that must be good. */
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
