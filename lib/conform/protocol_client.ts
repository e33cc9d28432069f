/** Requests of one text protocol to the gateway under test. */
import type { Json, JsonObject } from "../json/mod.ts";
import { type CheckFunction, type Checks, expectThat, type TextPart } from "./check.ts";
import { BOTH, READY, RESULT, WEATHER } from "./prompts.ts";
import type { WireStream } from "./sse.ts";
import type { Ability, HttpAnswer, SuiteContext, SuiteRequest } from "./suite_context.ts";

/** A tool call. */
export interface PlainCall {
  id: string;
  name: string;
  /** JSON text. */
  arguments: string;
}

/** An answer, whole or assembled from a stream, independent of protocols. */
export interface PlainAnswer {
  /** The body as sent; empty for a chat stream. */
  body: JsonObject;
  text: string;
  calls: PlainCall[];
  /** The finish reason, in the protocol's terms. */
  finish: string | null;
  /** As sent, not validated. */
  usage: unknown;
  /** Messages, blocks or items to send back in the next request. */
  history: Json[];
  /** True if the model reasoned, so equal texts may have different token counts. */
  hasReasoned: boolean;
}

interface ToolResult {
  id: string;
  output: string;
  isError: boolean;
}

/** Vendor whose errors a protocol has. */
export type VendorErrors = "openai" | "anthropic" | "google";

/** The differences between text protocols. */
export interface ProtocolForm<Answer extends PlainAnswer = PlainAnswer, Event = unknown> {
  part: TextPart;
  errors: VendorErrors;
  /** Returns the path of a method of the model, and the members that the path does not have. Absent: all are members. */
  address?(path: string, body: JsonObject, model: string): { path: string; body: JsonObject };
  /** A request body with this user message. */
  body(model: string, words: string): JsonObject;
  /** A body without a required member. */
  incomplete(model: string): JsonObject;
  /** Harmless optional members of the official API. */
  known: JsonObject;
  /** Members that request a stream with usage. */
  streaming: JsonObject;
  readWhole(answer: HttpAnswer): Answer;
  /** Parses the events of a stream and validates each. */
  readEvents(stream: WireStream): Event[];
  /** Assembles the answer of a stream. */
  fold(events: readonly Event[]): Answer;
  /** Validates a usage and returns its totals. */
  tokens(usage: unknown): { input: number; output: number };
  /** Members that limit the answer to `SHORT` tokens. */
  limit(client: ProtocolClient): JsonObject | Promise<JsonObject>;
  /** Finish reason of an answer that the limit cut. */
  cutFinish: string;
  tools(count?: number): JsonObject[];
  /** Members that force a call of get_weather, require a call, or forbid calls. */
  choices: Record<"forced" | "required" | "none", JsonObject>;
  /** Members that allow parallel tool calls. */
  parallel: JsonObject;
  /** Finish reason of an answer with tool calls; absent: there is none. */
  toolFinish?: string;
  /** Members of the request that follows tool calls. */
  continueConversation(words: string, answer: PlainAnswer, results: readonly ToolResult[]): JsonObject;
  /** Members of a request with this text and an image. */
  withImage(words: string): JsonObject;
  /** Members that request JSON by the schema of a person. */
  schema: JsonObject;
}

/** Checks of a protocol, by id. */
export type ProtocolChecks<Answer extends PlainAnswer = PlainAnswer, Event = unknown> = Readonly<
  Record<string, (client: ProtocolClient<Answer, Event>) => ReturnType<CheckFunction>>
>;

/** Gives checks of a protocol the client that they need. */
export function withClient<Answer extends PlainAnswer, Event>(
  form: ProtocolForm<Answer, Event>,
  checks: ProtocolChecks<Answer, Event>,
): Checks {
  return Object.fromEntries(
    Object.entries(checks).map(([id, run]) => [id, (context) => run(new ProtocolClient(form, context))]),
  );
}

/** Sends requests of one protocol. Answers that several checks read are requested once. */
export class ProtocolClient<Answer extends PlainAnswer = PlainAnswer, Event = unknown> {
  readonly form: ProtocolForm<Answer, Event>;
  readonly context: SuiteContext;
  readonly path: string;

  constructor(form: ProtocolForm<Answer, Event>, context: SuiteContext) {
    this.form = form;
    this.context = context;
    this.path = context.path(form.part);
  }

  /** A request body with a user message and more members. */
  body(words: string, more: JsonObject = {}): JsonObject {
    return { ...this.form.body(this.context.subject.model, words), ...more };
  }

  /** Caches the value of `make` for all checks of the protocol. */
  once<T>(name: string, make: () => Promise<T>): Promise<T> {
    return this.context.once(`${this.form.part} ${name}`, make);
  }

  /** A request with this body. */
  request(body: JsonObject): { path: string; body: JsonObject } {
    const { form, path, context } = this;
    return form.address?.(path, body, context.subject.model) ?? { path, body };
  }

  /** Sends a request that may be refused. */
  post({ body, ...others }: Omit<SuiteRequest, "path"> & { body: JsonObject | string }): Promise<HttpAnswer> {
    const request = typeof body === "string" ? { ...this.request({}), body } : this.request(body);
    return this.context.ask({ ...request, ...others });
  }

  /** Sends a user message and reads the answer. */
  async ask(words: string, more: JsonObject = {}, ability?: Ability): Promise<Answer> {
    return this.form.readWhole(await this.context.good(this.request(this.body(words, more)), ability));
  }

  /** Sends a user message and reads the streamed answer. */
  async events(words: string, more: JsonObject = {}, ability?: Ability): Promise<Event[]> {
    const body = this.body(words, { ...more, ...this.form.streaming });
    return this.form.readEvents(await this.context.stream(this.request(body), ability));
  }

  /** The answer to a short request. */
  readyAnswer(): Promise<HttpAnswer> {
    return this.once("whole", () => this.context.good(this.request(this.body(READY))));
  }

  /** The answer to a short request, read. */
  async ready(): Promise<Answer> {
    return this.form.readWhole(await this.readyAnswer());
  }

  /** The streamed answer to a short request. */
  readyStream(): Promise<WireStream & { answer: HttpAnswer }> {
    const body = this.body(READY, this.form.streaming);
    return this.once("stream", () => this.context.stream(this.request(body)));
  }

  /** The events of the streamed answer to a short request. */
  async readyEvents(): Promise<Event[]> {
    return this.form.readEvents(await this.readyStream());
  }

  askTools(words: string, more: JsonObject): Promise<Answer> {
    return this.once(`${words} ${JSON.stringify(more)}`, () => this.ask(words, more, "tools"));
  }

  /** A tool call forced by the request. */
  forcedCall(): Promise<Answer> {
    return this.askTools(WEATHER, { tools: this.form.tools(), ...this.form.choices.forced });
  }

  /** An answer with both tool calls, if the model makes parallel calls. */
  parallelCalls(): Promise<Answer> {
    return this.askTools(BOTH, { tools: this.form.tools(), ...this.form.parallel });
  }

  /** As {@linkcode parallelCalls}, streamed. */
  parallelEvents(): Promise<Event[]> {
    return this.once(
      "tools stream",
      () => this.events(BOTH, { tools: this.form.tools(), ...this.form.parallel }, "tools"),
    );
  }

  /** Sends the model's answer back with a result for each call. */
  async continueConversation(words: string, answer: PlainAnswer, isError = false): Promise<Answer> {
    expectThat(answer.calls.length > 0, { expected: "a call to answer", seen: answer.history });
    const results = answer.calls.map(({ id }) => ({ id, output: RESULT, isError }));
    return await this.ask(words, {
      tools: this.form.tools(),
      ...this.form.continueConversation(words, answer, results),
    }, "tools");
  }
}
