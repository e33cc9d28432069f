/** Sends requests of one text protocol to the gateway under test. */
import type { Json, JsonObject } from "../json/mod.ts";
import { type CheckFunction, type Checks, expectThat, type TextPart } from "./check.ts";
import { BOTH, READY, RESULT, WEATHER } from "./prompts.ts";
import type { WireStream } from "./sse.ts";
import type { Capability, HttpAnswer, SuiteContext, SuiteRequest } from "./suite_context.ts";

/** A tool call. */
export interface PlainCall {
  id: string;
  name: string;
  /** JSON text. */
  arguments: string;
}

/** An answer in a form that is independent of protocols. It was not streamed, or was aggregated from a stream. */
export interface PlainAnswer {
  /** The body of the answer; empty for a stream of the chat protocol. */
  body: JsonObject;
  text: string;
  calls: PlainCall[];
  /** The finish reason, in the protocol's terms. */
  finish: string | null;
  /** The usage as sent, not validated. */
  usage: unknown;
  /** Messages, blocks or items to send back in the next request. */
  history: Json[];
  /** True if the model reasoned, so that equal texts may have different token counts. */
  hasReasoned: boolean;
}

interface ToolResult {
  id: string;
  output: string;
  isError: boolean;
}

/** Vendor whose form the errors of a protocol have. */
export type VendorErrors = "openai" | "anthropic" | "google";

/** The facts about a text protocol that the suite needs. */
export interface ProtocolForm<Answer extends PlainAnswer = PlainAnswer, Event = unknown> {
  part: TextPart;
  errors: VendorErrors;
  /** Moves members of a body to the path of the request; absent: the path is always the same. */
  address?(path: string, body: JsonObject, model: string): { path: string; body: JsonObject };
  /** Returns a request body with a user message. */
  body(model: string, words: string): JsonObject;
  /** Returns a body that lacks a required member, or has an invalid one. */
  incomplete(model: string): JsonObject;
  /** Harmless optional members of the official API. */
  known: JsonObject;
  /** Members that request a stream with usage. */
  streaming: JsonObject;
  /** Parses and validates an answer that is not streamed. */
  readWhole(answer: HttpAnswer): Answer;
  /** Parses and validates the events of a stream. */
  readEvents(stream: WireStream): Event[];
  /** Aggregates the events of a stream to an answer. */
  aggregate(events: readonly Event[]): Answer;
  /** Validates a usage and returns its totals. */
  tokens(usage: unknown): { input: number; output: number };
  /** Returns the members that limit the answer to `SHORT` tokens. */
  limit(client: ProtocolClient): JsonObject | Promise<JsonObject>;
  /** Finish reason of an answer that the limit cut. */
  cutFinish: string;
  /** Returns the first `count` tools of the suite; absent: all. */
  tools(count?: number): JsonObject[];
  /** Members that force a call of get_weather, require a call, or forbid calls. */
  choices: Record<"forced" | "required" | "none", JsonObject>;
  /** Members that allow parallel tool calls. */
  parallel: JsonObject;
  /** Finish reason of an answer with tool calls; absent: there is none. */
  toolFinish?: string;
  /** Returns the members of the request that sends the results of tool calls. */
  withResults(words: string, answer: PlainAnswer, results: readonly ToolResult[]): JsonObject;
  /** Returns the members of a request with a text and an image. */
  withImage(words: string): JsonObject;
  /** Members that request JSON by the schema `PERSON`. */
  schema: JsonObject;
}

/** Checks of a protocol by id. */
export type ProtocolChecks<Answer extends PlainAnswer = PlainAnswer, Event = unknown> = Readonly<
  Record<string, (client: ProtocolClient<Answer, Event>) => ReturnType<CheckFunction>>
>;

/** Turns checks of a protocol into checks of the suite, by giving them the client that they need. */
export function withClient<Answer extends PlainAnswer, Event>(
  form: ProtocolForm<Answer, Event>,
  checks: ProtocolChecks<Answer, Event>,
): Checks {
  return Object.fromEntries(
    Object.entries(checks).map(([id, run]) => [id, (context) => run(new ProtocolClient(form, context))]),
  );
}

/** Sends requests of one protocol. Answers that several checks need are requested only once. */
export class ProtocolClient<Answer extends PlainAnswer = PlainAnswer, Event = unknown> {
  readonly form: ProtocolForm<Answer, Event>;
  readonly context: SuiteContext;
  readonly path: string;

  constructor(form: ProtocolForm<Answer, Event>, context: SuiteContext) {
    this.form = form;
    this.context = context;
    this.path = context.path(form.part);
  }

  /** Returns a request body with a user message and further members. */
  body(words: string, more: JsonObject = {}): JsonObject {
    return { ...this.form.body(this.context.subject.model, words), ...more };
  }

  /** Returns the value of `make`, which is called once for all checks of the protocol. */
  once<T>(name: string, make: () => Promise<T>): Promise<T> {
    return this.context.once(`${this.form.part} ${name}`, make);
  }

  request(body: JsonObject): { path: string; body: JsonObject } {
    const { form, path, context } = this;
    return form.address?.(path, body, context.subject.model) ?? { path, body };
  }

  /** Sends a request that may be refused, and returns the answer with any status. */
  post({ body, ...others }: Omit<SuiteRequest, "path"> & { body: JsonObject | string }): Promise<HttpAnswer> {
    const request = typeof body === "string" ? { ...this.request({}), body } : this.request(body);
    return this.context.ask({ ...request, ...others });
  }

  /**
   * Sends a user message and reads the answer.
   * @throws {Mismatch} if it is refused
   * @throws {Skip} without the ability
   */
  async ask(words: string, more: JsonObject = {}, ability?: Capability): Promise<Answer> {
    return this.form.readWhole(await this.context.good(this.request(this.body(words, more)), ability));
  }

  /** Sends a user message and reads the streamed answer. */
  async events(words: string, more: JsonObject = {}, ability?: Capability): Promise<Event[]> {
    const body = this.body(words, { ...more, ...this.form.streaming });
    return this.form.readEvents(await this.context.stream(this.request(body), ability));
  }

  /** Returns the answer to a short request. */
  readyAnswer(): Promise<HttpAnswer> {
    return this.once("whole", () => this.context.good(this.request(this.body(READY))));
  }

  /** Reads the answer to a short request. */
  async ready(): Promise<Answer> {
    return this.form.readWhole(await this.readyAnswer());
  }

  /** Returns the streamed answer to a short request. */
  readyStream(): Promise<WireStream & { answer: HttpAnswer }> {
    const body = this.body(READY, this.form.streaming);
    return this.once("stream", () => this.context.stream(this.request(body)));
  }

  /** Reads the events of the streamed answer to a short request. */
  async readyEvents(): Promise<Event[]> {
    return this.form.readEvents(await this.readyStream());
  }

  /** Sends a user message to a model with tools, once for all checks of the protocol. */
  askTools(words: string, more: JsonObject): Promise<Answer> {
    return this.once(`${words} ${JSON.stringify(more)}`, () => this.ask(words, more, "tools"));
  }

  forcedCall(): Promise<Answer> {
    return this.askTools(WEATHER, { tools: this.form.tools(), ...this.form.choices.forced });
  }

  /** Returns an answer with two tool calls, if the model makes parallel calls. */
  parallelCalls(): Promise<Answer> {
    return this.askTools(BOTH, { tools: this.form.tools(), ...this.form.parallel });
  }

  /** Returns the events of such an answer, streamed. */
  parallelEvents(): Promise<Event[]> {
    return this.once(
      "tools stream",
      () => this.events(BOTH, { tools: this.form.tools(), ...this.form.parallel }, "tools"),
    );
  }

  /** Sends an answer back with a result for each of its calls, and reads the next answer. */
  async sendResults(words: string, answer: PlainAnswer, isError = false): Promise<Answer> {
    expectThat(answer.calls.length > 0, "a call to answer", answer.history);
    const results = answer.calls.map(({ id }) => ({ id, output: RESULT, isError }));
    return await this.ask(
      words,
      { tools: this.form.tools(), ...this.form.withResults(words, answer, results) },
      "tools",
    );
  }
}
