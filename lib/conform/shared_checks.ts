/** Checks of answers and tools that apply to every text protocol. */
import type { Json, JsonObject } from "../json/mod.ts";
import { type CheckFunction, type Checks, Mismatch, must, show, Skip } from "./check.ts";
import { type CommonForm, streaming, streamOf, wholeOf } from "./http_checks.ts";
import type { Ability, HttpAnswer, SuiteContext } from "./suite_context.ts";
import { ARGUMENTS, BOTH, MAKE_PERSON, personProblem, RESULT, SEE, WEATHER } from "./prompts.ts";
import { objectOf, type WireStream } from "./sse.ts";

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

/** The result of a tool call. */
export interface ToolResult {
  id: string;
  output: string;
  isError: boolean;
}

/** The differences of a protocol, for these checks. */
export interface ProtocolForm extends CommonForm {
  readWhole(answer: HttpAnswer): PlainAnswer;
  readStream(stream: WireStream): PlainAnswer;
  /** Validates a usage and returns its totals. */
  tokens(usage: unknown): { input: number; output: number };
  tools(count?: number): JsonObject[];
  choices: Record<"forced" | "required" | "none", Json>;
  /** Members that allow parallel tool calls. */
  parallel: JsonObject;
  /** Finish reason of an answer with tool calls; absent: there is none. */
  toolFinish?: string;
  /** Members of the request that follows tool calls. */
  goOn(words: string, answer: PlainAnswer, results: readonly ToolResult[]): JsonObject;
  /** Members of a request with this text and an image. */
  withImage(words: string): JsonObject;
  /** Members that request JSON by the schema of a person. */
  schema: JsonObject;
}

/** Sends a valid request and returns its answer. */
export async function ask(
  grammar: ProtocolForm,
  context: SuiteContext,
  { body, ability }: { body: JsonObject; ability?: Ability },
): Promise<PlainAnswer> {
  return grammar.readWhole(await context.good({ path: context.path(grammar.part), body }, ability));
}

/** The answer to a prompt for tools, cached per body. */
function askTools(
  grammar: ProtocolForm,
  context: SuiteContext,
  [words, more]: [string, JsonObject],
): Promise<PlainAnswer> {
  const body = grammar.body(context, words, more);
  return context.once(
    `${grammar.part} ${JSON.stringify(body)}`,
    () => ask(grammar, context, { body, ability: "tools" }),
  );
}

/** A tool call forced by the request. */
export async function forcedCall(grammar: ProtocolForm, context: SuiteContext): Promise<PlainAnswer> {
  const tool_choice = grammar.choices.forced;
  return await askTools(grammar, context, [WEATHER, { tools: grammar.tools(), tool_choice }]);
}

/** The answer to a prompt for two calls, which may contain fewer. */
export function parallelCalls(grammar: ProtocolForm, context: SuiteContext): Promise<PlainAnswer> {
  return askTools(grammar, context, [BOTH, { tools: grammar.tools(), ...grammar.parallel }]);
}

/** Sends the model's answer back with a result for each call. */
export async function goOn(
  grammar: ProtocolForm,
  context: SuiteContext,
  { words, answer, isError = false }: { words: string; answer: PlainAnswer; isError?: boolean },
): Promise<PlainAnswer> {
  must(answer.calls.length > 0, { expected: "a call to answer", seen: answer.history });
  const results = answer.calls.map(({ id }) => ({ id, output: RESULT, isError }));
  const more = { tools: grammar.tools(), ...grammar.goOn(words, answer, results) };
  return await ask(grammar, context, { body: grammar.body(context, words, more), ability: "tools" });
}

/** Creates the shared checks for a protocol. */
export function sharedChecks(grammar: ProtocolForm): Checks {
  const { part, tools, choices, toolFinish } = grammar;
  const both = async (context: SuiteContext): Promise<PlainAnswer> => {
    const answer = await parallelCalls(grammar, context);
    if (answer.calls.length < 2) throw new Skip("the model made one call at most");
    return answer;
  };
  return {
    "stream.same": (context) => checkSame(grammar, context),
    "json.schema": async (context) => {
      const body = grammar.body(context, MAKE_PERSON, grammar.schema);
      checkPerson((await ask(grammar, context, { body, ability: "response_format" })).text);
    },
    image: async (context) =>
      void await ask(grammar, context, { body: grammar.body(context, SEE, grammar.withImage(SEE)), ability: "image" }),
    "tools.forced": async (context) => {
      const { calls } = await forcedCall(grammar, context);
      must(calls[0]?.name === "get_weather", { expected: "a call of get_weather", seen: calls });
      checkCalls(calls);
    },
    [part === "messages" ? "tools.any" : "tools.required"]: async (context) => {
      const request = { tools: tools(1), tool_choice: choices.required };
      const { calls } = await askTools(grammar, context, [WEATHER, request]);
      must(calls.length > 0, { expected: "a call", seen: calls });
      checkCalls(calls);
    },
    "tools.none": async (context) => {
      const request = { tools: tools(), tool_choice: choices.none };
      const { calls, finish } = await askTools(grammar, context, [WEATHER, request]);
      must(calls.length === 0, { expected: "no call", seen: calls });
      must(toolFinish === undefined || finish !== toolFinish, { expected: "another reason to stop", seen: finish });
    },
    "tools.parallel": async (context) => checkCalls((await both(context)).calls),
    "tools.back": async (context) => {
      const answer = await forcedCall(grammar, context);
      const { text, calls, history } = await goOn(grammar, context, { words: WEATHER, answer });
      // In chat, an empty answer still has a message to send back; in messages, empty answers are common.
      const isEmpty = part === "chat"
        ? text === "" && calls.length === 0
        : part === "responses" && history.length === 0;
      must(!isEmpty, { expected: "a text or a call", seen: "nothing" });
    },
    "tools.back_many": async (context) =>
      void await goOn(grammar, context, { words: BOTH, answer: await both(context) }),
  };
}

/** As the check of a schema, streamed, for protocols that have it. */
export function schemaStream(grammar: ProtocolForm): CheckFunction {
  return async (context) => {
    const body = grammar.body(context, MAKE_PERSON, { ...grammar.schema, ...streaming(grammar.part) });
    const stream = await context.stream({ path: context.path(grammar.part), body }, "response_format");
    checkPerson(grammar.readStream(stream).text);
  };
}

async function checkSame(grammar: ProtocolForm, context: SuiteContext): Promise<string | void> {
  const whole = grammar.readWhole(await wholeOf(grammar, context));
  const streamed = grammar.readStream(await streamOf(grammar, context));
  const [one, other] = [grammar.tokens(whole.usage), grammar.tokens(streamed.usage)];
  must(one.input === other.input, { expected: "equal numbers of input tokens", seen: [one, other] });
  if (whole.text !== streamed.text || whole.hasReasoned || streamed.hasReasoned) {
    return "the two answers differ, so that only the prompt was compared";
  }
  must(one.output === other.output, { expected: "equal output tokens of equal texts", seen: [one, other] });
}

function checkPerson(text: string): void {
  const problem = personProblem(text);
  if (problem !== undefined) throw new Mismatch("JSON of the schema", `${problem}: ${show(text)}`);
}

/** Checks calls: known names, unique ids, and matching arguments. */
export function checkCalls(calls: readonly PlainCall[]): void {
  must(new Set(calls.map(({ id }) => id)).size === calls.length, { expected: "an id for each call", seen: calls });
  for (const call of calls) {
    const member = ARGUMENTS[call.name];
    must(member !== undefined, { expected: "a call of one of the tools", seen: call.name });
    const read = objectOf(call.arguments, "arguments");
    must(typeof read[member] === "string", { expected: `arguments with "${member}"`, seen: call.arguments });
  }
}
